import type { Recognised } from "../adapters/ocr.ts";
import { QuarryError } from "../errors.ts";
import { attempt } from "../outcomes.ts";
import { defineLane } from "../queue/lane.ts";
import { done } from "../queue/outcome.ts";
import { cleanText } from "../queue/text.ts";
import type { DocumentFacts } from "./facts.ts";
import type { LaneParts } from "./lane-parts.ts";
import { stepKey } from "./step-cache.ts";

/** Text pages are quick and OCR has its own limit; a few more tasks keep both busy. */
const CONCURRENCY_BESIDE_OCR = 4;

/** Gets the text of a page: from the file where it has one, else from its picture. */
export function ocrLane(parts: LaneParts) {
  const { queues, files, facts, reader, pollMs, ocrThreads } = parts;
  return defineLane({
    queue: queues.pageOcr,
    concurrency: ocrThreads + CONCURRENCY_BESIDE_OCR,
    pollMs,
    handle: (task) =>
      attempt(
        task,
        async () => {
          const { row, signal } = task;
          const document = (await facts.of([row.document_id])).get(row.document_id);
          if (!document) throw new QuarryError("not_found", "the document was deleted");
          const name = { documentId: row.document_id, pageNumber: row.page_number };
          const page = await reader.page(document, row.page_number, signal);
          const common = { headings: page.headings ?? null };
          if (!page.needsOcr) {
            const path = await files.writePage(name, cleanText(page.markdown));
            return done({ ...common, page_file_path: path, text_source: "text" });
          }
          const picture = await reader.picture(document, row.page_number, signal);
          const picturePath = await files.writePicture(name, picture);
          const { markdown, confidence } = await recognise(parts, document, row.page_number, picture, signal);
          const path = await files.writePage(name, cleanText(joined(page.markdown, markdown)));
          return done({
            ...common,
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
    const recognition = await ocr.recognise(picture, signal);
    const output = Buffer.from(JSON.stringify(recognition));
    await cache.put([{ key, step: "ocr", documentId: document.id, output }]);
    return new Map([[key, recognition]]);
  });
  return found.get(key)!;
}

function joined(...parts: readonly string[]): string {
  return parts.filter((part) => part.trim() !== "").join("\n\n");
}
