import { z } from "zod";
import { DOCUMENT_STATES } from "../documents/views.ts";
import { ITEM_STATUSES } from "../ingest/queue.ts";
import { defineTool, type Tool } from "./tool.ts";
import { count, type McpParts } from "./tool-parts.ts";
import { counted } from "./words.ts";

const countsOf = (names: readonly string[]) =>
  z.strictObject(Object.fromEntries(names.map((name) => [name, count(name)])));

const Worker = z.strictObject({
  id: z.string(),
  host: z.string(),
  pid: z.int().nullable(),
  is_here: z.boolean().describe("It is this server itself."),
  lanes: z.array(z.string()),
});

export const StatusShape = z.strictObject({
  items: countsOf(ITEM_STATUSES).describe("What was handed in, by state."),
  documents: countsOf(DOCUMENT_STATES).describe("partial: some pages failed; failed: nothing can be found."),
  open_documents: count("Documents that are still being worked on."),
  steps: z
    .record(z.string(), z.record(z.string(), z.int()))
    .describe("The work inside documents: rows of each queue by state."),
  working: z.enum(["here", "elsewhere", "nobody"]).describe("Who does the work."),
  why_nobody: z.string().optional(),
  workers: z.array(Worker),
  paused_lanes: z.array(z.string()).describe("Kinds of work that somebody has paused."),
});

export type Status = z.input<typeof StatusShape>;

export async function readStatus({ quarry, hands }: McpParts): Promise<Status> {
  const [items, documents, progress, counts, working, workers, paused] = await Promise.all([
    quarry.queue.counts(),
    quarry.documents.states(),
    quarry.documents.progress(),
    quarry.counts(),
    hands.current(),
    quarry.workers(),
    quarry.lanes.paused(),
  ]);
  return {
    items: Object.fromEntries(ITEM_STATUSES.map((name) => [name, items[name] ?? 0])),
    documents,
    open_documents: progress.open,
    steps: Object.fromEntries(counts.map(({ queue, counts: byStatus }) => [queue, { ...byStatus }])),
    working: working.by,
    ...(working.by === "nobody" && { why_nobody: working.why }),
    workers: workers.map(({ id, host, pid, lanes }) => ({
      ...{ id, host, pid, lanes: [...lanes] },
      is_here: pid === process.pid && working.by === "here",
    })),
    paused_lanes: [...paused],
  };
}

export function statusTool(parts: McpParts): Tool {
  return defineTool({
    name: "queue_status",
    title: "Status of the queue",
    description:
      "Tells how much is waiting, running, done and failed, how many documents can be searched, and whether somebody works on it. Use it to see how far an ingest_path or add_content is.",
    annotations: { readOnlyHint: true, openWorldHint: false },
    input: z.strictObject({}),
    output: StatusShape,
    call: async () => {
      const status = await readStatus(parts);
      return { text: statusText(status), structured: status };
    },
  });
}

export function statusText(status: Status): string {
  const listed = (counts: Readonly<Record<string, number>>) =>
    Object.entries(counts)
      .map(([name, total]) => `${total} ${name}`)
      .join(", ");
  const who = {
    here: "This server does the work.",
    elsewhere: `${counted(status.workers.length, "worker")} elsewhere at work.`,
    nobody: `Nobody works: ${status.why_nobody}.`,
  }[status.working];
  const lines = [
    `Items: ${listed(status.items)}.`,
    `Documents: ${listed(status.documents)}; ${status.open_documents} with work to do.`,
    who,
    ...(status.paused_lanes.length > 0 ? [`Paused: ${status.paused_lanes.join(", ")}.`] : []),
    ...(Number(status.items.failed) > 0 ? ["list_queue with status failed shows what failed and why."] : []),
  ];
  return lines.join("\n");
}
