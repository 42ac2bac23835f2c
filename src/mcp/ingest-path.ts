import { realpath, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { messageOf, QuarryError } from "../errors.ts";
import type { Item } from "../ingest/item-rows.ts";
import type { EnqueuedItem, NewItem } from "../ingest/items.ts";
import { PRIORITIES } from "../ingest/queue.ts";
import { aboutOf } from "./item-shapes.ts";
import { openText, singleOutcome } from "./outcomes.ts";
import { defineTool, type Tool, type ToolAnswer } from "./tool.ts";
import { collection, count, type McpParts, Reached, tenant, Verdict } from "./tool-parts.ts";
import { look, type ReachedItem, WAIT_MAX_MS, waitFor } from "./waiting.ts";
import { counted, oneLine } from "./words.ts";

const FAILURES_SHOWN_MAX = 20;

const Input = z.strictObject({
  path: z
    .string()
    .min(1)
    .max(4_096)
    .regex(/^(\/|~(\/|$)|[A-Za-z]:[\\/])/, "give an absolute path, or one that begins with ~/")
    .describe("A file or a folder on the machine that this server runs on: absolute, or beginning with ~/."),
  as_project: z
    .boolean()
    .default(false)
    .describe("For a folder with a .git: take it in as a project, which remembers what it is written in."),
  collection,
  tenant,
  wait: z
    .boolean()
    .default(true)
    .describe(
      `Answer when everything can be searched, or after ${WAIT_MAX_MS / 1_000} s. false: answer at once.`,
    ),
});

const Failure = z.strictObject({ queue_id: z.string(), path: z.string(), reason: z.string() });

const Output = z.strictObject({
  queue_id: z.string().describe("For show_queue_item."),
  verdict: Verdict,
  item_type: z.enum(["file", "folder", "project"]),
  path: z.string(),
  status: Reached,
  is_complete: z.boolean().describe("Nothing of it is waiting or being worked on any more."),
  document_id: z.string().optional(),
  change: z.string().optional().describe("added, replaced, retried, metadata_changed or unchanged."),
  files: count("Files that were found.").optional(),
  skipped: count("Files that were left out: ignored, hidden, without text.").optional(),
  gone: count("Documents that are removed, as their file is gone from the folder.").optional(),
  waiting: count("Files that are not done yet.").optional(),
  failures: z.array(Failure).optional().describe(`What failed and why; the first ${FAILURES_SHOWN_MAX}.`),
  error: z.string().optional(),
});

type Answer = ToolAnswer<z.input<typeof Output>>;

export function ingestPathTool({ quarry, hands, clock }: McpParts): Tool {
  return defineTool({
    name: "ingest_path",
    title: "Take in a file or folder",
    description:
      "Makes a file, or all files below a folder, searchable: PDF, DOCX, HTML, Markdown, text, code, and pictures and scans by OCR. Files that have not changed cost nothing; files that are gone from a folder are removed from the index. Answers when everything can be searched; if that takes longer, it goes on by itself and queue_status tells how far it is. For text that is in no file use add_content.",
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    input: Input,
    output: Output,
    call: async ({ path, as_project: isProject, wait, ...place }, call) => {
      const item = await itemFor(path, isProject);
      const payload = { ...item.payload, seen_on: quarry.settings.machine };
      const enqueued = await quarry.queue.enqueue({
        ...{ ...item, payload },
        tenant_id: place.tenant,
        collection: place.collection,
        priority: PRIORITIES.immediate,
      });
      const parts = { queue: quarry.queue, hands, clock };
      const about = { ...enqueued, item_type: item.item_type, path: item.path };
      if (!wait) {
        void hands.needed();
        return answerOf(about, await look(parts, enqueued.queue_id, { by: "elsewhere" }), []);
      }
      const reached = await waitFor(parts, enqueued.queue_id, call);
      const failed = { parent_id: enqueued.queue_id, status: "failed", limit: FAILURES_SHOWN_MAX } as const;
      const failures = reached.files ? (await quarry.queue.list(failed)).items : [];
      return answerOf(about, reached, failures);
    },
  });
}

type PathItem = NewItem & { item_type: "file" | "folder" | "project"; path: string; payload: object };

/** By its real path, so that a file is the same document whichever way it came in. */
async function itemFor(given: string, isProject: boolean): Promise<PathItem> {
  const named = given.startsWith("~") ? join(homedir(), given.slice(1)) : given;
  const path = await realpath(named).catch((error) => {
    throw new QuarryError("not_found", `${named}: ${whyNotOpened(error)}`);
  });
  const info = await stat(path);
  if (info.isFile()) return { item_type: "file", op: "ingest", payload: { file_path: path }, path };
  if (!info.isDirectory()) throw new QuarryError("invalid_input", `${path} is neither a file nor a folder`);
  if (!isProject) return { item_type: "folder", op: "ingest", payload: { folder_path: path }, path };
  await stat(join(path, ".git")).catch(() => {
    throw new QuarryError(
      "invalid_input",
      `${path} has no .git: leave as_project out to take it in as a folder`,
    );
  });
  return { item_type: "project", op: "ingest", payload: { project_root: path }, path };
}

function whyNotOpened(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ENOENT" || code === "ENOTDIR") return "no such file or folder on this machine";
  if (code === "EACCES") return "it may not be read: its permissions do not allow it";
  return `it cannot be opened: ${messageOf(error)}`;
}

type About = EnqueuedItem & Pick<PathItem, "item_type" | "path">;

function answerOf(about: About, reached: ReachedItem, failures: readonly Item[]): Answer {
  const { queue_id, verdict, item_type, path } = about;
  const base = { queue_id, verdict, item_type, path, is_complete: reached.isOver };
  if (reached.files && reached.item?.status === "done") {
    const structured = { ...base, ...folderOutcome(reached.item, failures), waiting: reached.files.open };
    return { text: folderText(structured, reached), structured };
  }
  const { text, isError, isSearchable: _, ...fields } = singleOutcome(queue_id, reached);
  return { text, structured: { ...base, ...fields }, isError };
}

function folderOutcome({ status, result }: Item, failures: readonly Item[]) {
  const found = (name: string) => Number(result?.[name] ?? 0);
  return {
    ...{ status, files: found("files"), skipped: found("skipped"), gone: found("gone") },
    failures: failures.map((failure) => ({
      queue_id: failure.queue_id,
      path: aboutOf(failure),
      reason: oneLine(failure.error_message ?? "no reason is known"),
    })),
  };
}

function folderText(
  {
    queue_id: id,
    path,
    files = 0,
    skipped = 0,
    gone = 0,
    waiting = 0,
    failures = [],
  }: z.input<typeof Output>,
  { working }: ReachedItem,
): string {
  const state =
    waiting === 0
      ? "Everything is done."
      : `${openText("in_progress", working)} ${counted(waiting, "file")} still to do; it goes on by itself. queue_status tells how far it is.`;
  const lines = [
    `${path}: ${counted(files, "file")} found, ${skipped} skipped, ${gone} gone. ${state} (queue id ${id})`,
    ...(failures.length > 0 ? ["These failed; mend them, then call again or use retry_queue_item:"] : []),
    ...failures.map((failure) => `- ${failure.path}: ${failure.reason} (queue id ${failure.queue_id})`),
  ];
  return lines.join("\n");
}
