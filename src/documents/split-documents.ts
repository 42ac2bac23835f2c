import { attempt } from "../outcomes.ts";
import { defineLane } from "../queue/lane.ts";
import { openQueue } from "../queue/store.ts";
import type { LaneParts } from "./lane-parts.ts";

/** Looks what a document is and gives it a row for each of its pages. */
export function splitLane({ database, queues, files, extractor, pollMs }: LaneParts) {
  const pages = openQueue(database, queues.pageOcr);
  return defineLane({
    queue: queues.split,
    concurrency: 2,
    pollMs,
    handle: (task) =>
      attempt(task, async () => {
        const { key, row, signal } = task;
        const { filename, original_path: path, content_hash: contentHash } = row;
        const { pageCount, mediaType, title, furniture } = await files.withOriginal(
          { path, contentHash },
          (local) => extractor.inspect({ path: local, filename }, signal),
        );
        const rows = Array.from({ length: pageCount }, (_, index) => ({
          document_id: key,
          page_number: index + 1,
          max_retries: row.max_retries,
        }));
        return {
          kind: "done",
          result: {
            total_pages: pageCount,
            media_type: mediaType,
            title: row.title ?? title ?? null,
            furniture,
          },
          also: async (transaction) => {
            await pages.within(transaction).enqueue(rows);
          },
        };
      }),
  });
}
