import { z } from "zod";
import type { EnqueuedItem } from "../ingest/items.ts";
import { PRIORITIES } from "../ingest/queue.ts";
import { singleOutcome } from "./outcomes.ts";
import { defineTool, type Tool, type ToolAnswer } from "./tool.ts";
import { collection, type McpParts, Reached, tenant, Verdict } from "./tool-parts.ts";
import { look, type ReachedItem, WAIT_MAX_MS, waitFor } from "./waiting.ts";

const Input = z.strictObject({
  content: z.string().min(1).max(4_000_000).describe("The text itself, plain or Markdown."),
  title: z.string().min(1).max(1_000).optional().describe("What it is called; helps to find it."),
  source: z
    .string()
    .min(1)
    .max(1_000)
    .optional()
    .describe(
      "A name of your own for it, such as meeting-notes/2026-03-01. The same source again replaces the text; without one, the text is known by itself.",
    ),
  tags: z
    .array(z.string().min(1).max(90))
    .max(10)
    .optional()
    .describe(
      "From general to special. search finds the first as metadata main_tag, all joined by / as full_tag.",
    ),
  collection,
  tenant,
  wait: z
    .boolean()
    .default(true)
    .describe(`Answer when it can be searched, or after ${WAIT_MAX_MS / 1_000} s. false: answer at once.`),
});

const Output = z.strictObject({
  queue_id: z.string().describe("For show_queue_item."),
  verdict: Verdict,
  status: Reached,
  document_id: z.string().optional(),
  change: z.string().optional().describe("added, replaced, retried, metadata_changed or unchanged."),
  is_searchable: z.boolean(),
  error: z.string().optional(),
});

export function addContentTool({ quarry, hands, clock }: McpParts): Tool {
  return defineTool({
    name: "add_content",
    title: "Add text",
    description:
      "Keeps a text (a note, a decision, something the user pasted) so that search finds it from now on. For files and folders use ingest_path. Adding the same text again changes nothing. Answers when the text can be searched; if that takes longer, it goes on by itself.",
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    input: Input,
    output: Output,
    call: async ({ content, title, source, tags, wait, ...place }, call) => {
      const enqueued = await quarry.queue.enqueue({
        item_type: "content",
        op: "ingest",
        payload: {
          ...{ content, source_type: "mcp", title, source },
          ...(tags?.[0] !== undefined && { main_tag: tags[0], full_tag: tags.join("/") }),
        },
        tenant_id: place.tenant,
        collection: place.collection,
        priority: PRIORITIES.note,
      });
      const parts = { queue: quarry.queue, hands, clock };
      if (wait) return answerOf(enqueued, await waitFor(parts, enqueued.queue_id, call));
      void hands.needed();
      return answerOf(enqueued, await look(parts, enqueued.queue_id, { by: "elsewhere" }));
    },
  });
}

function answerOf(
  { queue_id, verdict }: EnqueuedItem,
  reached: ReachedItem,
): ToolAnswer<z.input<typeof Output>> {
  const { text, isSearchable, isError, ...fields } = singleOutcome(queue_id, reached);
  return {
    text,
    structured: { queue_id, verdict, is_searchable: isSearchable, ...fields },
    isError,
  };
}
