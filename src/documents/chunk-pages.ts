import { QuarryError } from "../errors.ts";
import { attempt } from "../outcomes.ts";
import { defineLane } from "../queue/lane.ts";
import { openQueue } from "../queue/store.ts";
import { chunkIds, chunkPage, contentHash } from "./chunker.ts";
import type { DocumentChunking } from "./facts.ts";
import type { LaneParts } from "./lane-parts.ts";

const OVERLAP_TOKENS = 24;

/** Cuts a page into chunks that fit the embedder's window. A page without text has none and is done. */
export function chunkLane({ database, queues, files, facts, embedder, pollMs }: LaneParts) {
  const chunks = openQueue(database, queues.chunkVector);
  return defineLane({
    queue: queues.pageChunk,
    concurrency: 4,
    pollMs,
    handle: (task) =>
      attempt(
        task,
        async () => {
          const { key, row } = task;
          const document = (await facts.of([row.document_id])).get(row.document_id);
          if (!document) throw new QuarryError("not_found", "the document was deleted");
          const markdown = await files.readText(row.page_file_path);
          const { chunks: pieces } = chunkPage(markdown, {
            title: document.title,
            headingsBefore: row.headings ?? [],
            ...sizesFor(document.chunking, embedder.tokensMax),
            countTokens: (text) => embedder.tokenizer.count(text),
          });
          const sourceKey = JSON.stringify([document.tenant, document.collection, document.source]);
          const ids = chunkIds(sourceKey, pieces);
          const rows = pieces.map((piece, index) => ({
            page_id: key,
            document_id: row.document_id,
            chunk_id: ids[index],
            chunk_index: index,
            chunk_content_hash: contentHash(piece.content),
            content: piece.content,
            overlap: piece.overlap,
            heading_path: piece.headingPath,
            token_count: piece.tokenCount,
            start_offset: piece.start,
            end_offset: piece.end,
            max_retries: row.max_retries,
          }));
          return {
            kind: "done",
            result: { is_chunked: true, chunk_count: rows.length },
            also: async (transaction) => {
              await chunks.within(transaction).enqueue(rows);
            },
          };
        },
        `page ${task.row.page_number}`,
      ),
  });
}

/** Whoever asks for an overlap gets room for it. */
function sizesFor(chunking: DocumentChunking | undefined, window: number) {
  if (!chunking) return { tokensMax: window, overlapTokens: OVERLAP_TOKENS };
  const tokensMax = Math.min(chunking.tokens, window);
  return { tokensMax, tokensTarget: tokensMax - chunking.overlap, overlapTokens: chunking.overlap };
}
