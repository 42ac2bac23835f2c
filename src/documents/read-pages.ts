import type { Recognised } from "../adapters/ocr.ts";
import { QuarryError } from "../errors.ts";
import { attempt } from "../outcomes.ts";
import type { Task } from "../queue/held.ts";
import { defineLane } from "../queue/lane.ts";
import { done, released } from "../queue/outcome.ts";
import { cleanText } from "../queue/text.ts";
import type { DocumentFacts } from "./facts.ts";
import type { LaneParts } from "./lane-parts.ts";
import type { PagePayload } from "./queues.ts";
import { stepKey } from "./step-cache.ts";

/** Enough to keep the readers of files busy. */
const TEXT_PAGES_AT_ONCE = 4;

/** Gets the text of a page from its file. One that is a picture is handed on to the lane that can read it. */
export function ocrLane(parts: LaneParts) {
  const { queues, files, pollMs } = parts;
  return defineLane({
    queue: queues.pageOcr,
    concurrency: TEXT_PAGES_AT_ONCE,
    pollMs,
    handle: (task) =>
      attempt(
        task,
        async () => {
          const { document, page } = await read(parts, task);
          if (page.needsOcr) {
            await markScan(parts, task);
            return released();
          }
          const name = { documentId: document.id, pageNumber: task.row.page_number };
          const path = await files.writePage(name, cleanText(page.markdown));
          return done({ headings: page.headings ?? null, page_file_path: path, text_source: "text" });
        },
        `page ${task.row.page_number}`,
      ),
  });
}

/** Gets the text of a page from its picture. */
export function scanLane(parts: LaneParts) {
  const { queues, files, reader, pollMs, ocrThreads } = parts;
  return defineLane({
    queue: queues.pageScan,
    // One more is drawn while the others are read.
    concurrency: ocrThreads + 1,
    pollMs,
    handle: (task) =>
      attempt(
        task,
        async () => {
          const { row, signal } = task;
          const { document, page } = await read(parts, task);
          const name = { documentId: document.id, pageNumber: row.page_number };
          const picture = await reader.picture(document, row.page_number, signal);
          const picturePath = await files.writePicture(name, picture);
          const { markdown, confidence } = await recognise(parts, document, row.page_number, picture, signal);
          const path = await files.writePage(name, cleanText(joined(page.markdown, markdown)));
          return done({
            headings: page.headings ?? null,
            page_file_path: path,
            page_picture_path: picturePath,
            text_source: "ocr",
            ocr_confidence: confidence,
          });
        },
        `page ${task.row.page_number}`,
      ),
  });
}

async function read({ facts, reader }: LaneParts, { row, signal }: Task<PagePayload>) {
  const document = (await facts.of([row.document_id])).get(row.document_id);
  if (!document) throw new QuarryError("not_found", "the document was deleted");
  return { document, page: await reader.page(document, row.page_number, signal) };
}

/** $1 page, $2 token. Only for whoever holds the page. */
async function markScan({ database }: LaneParts, { key, token }: Task<PagePayload>): Promise<void> {
  const { mark } = database.dialect;
  const sql = `update task_queue_page set is_scan = true where id = ${mark(1)} and ocr_lease_token = ${mark(2)}`;
  await database.query({ name: "pages.mark_scan", sql }, [key, token]);
}

async function recognise(
  { ocr, cache, recognising }: LaneParts,
  document: DocumentFacts,
  pageNumber: number,
  picture: Uint8Array,
  signal: AbortSignal,
): Promise<Recognised> {
  const key = stepKey("ocr", ocr.version, `${document.contentHash} ${pageNumber}`);
  const found = await recognising.many([key], async () => {
    const known = (await cache.get([key])).get(key);
    if (known) return new Map([[key, JSON.parse(Buffer.from(known).toString("utf8"))]]);
    const { tokens = 0, ...recognition } = await ocr.recognise(picture, signal);
    const output = Buffer.from(JSON.stringify(recognition));
    await cache.put([{ key, step: "ocr", documentId: document.id, output, tokens }]);
    return new Map([[key, recognition]]);
  });
  return found.get(key)!;
}

function joined(...parts: readonly string[]): string {
  return parts.filter((part) => part.trim() !== "").join("\n\n");
}
