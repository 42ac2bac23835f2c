import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { Embedder } from "../../src/adapters/embed.ts";
import { type EmbeddedIndex, openEmbeddedIndex } from "../../src/adapters/embedded-index.ts";
import type { EntityExtractor } from "../../src/adapters/entities.ts";
import { openSqlGraph } from "../../src/adapters/graph/sql.ts";
import type { GraphStore } from "../../src/adapters/graph.ts";
import type { Database } from "../../src/index.ts";
import type { TestDatabase } from "./databases.ts";

export interface ShelvedDocument {
  readonly filename: string;
  readonly title?: string;
  readonly tenant?: string;
  readonly collection?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** Each on a page of its own. */
  readonly chunks: readonly { readonly id: string; readonly content: string; readonly headings?: string[] }[];
}

/** Documents as they are once the pipeline is done with them: rows, vectors, words and graph. */
export interface Shelf {
  readonly database: Database;
  readonly index: EmbeddedIndex;
  readonly graph: GraphStore;
  /** Returns the document's id. */
  add(document: ShelvedDocument): Promise<string>;
  close(): Promise<void>;
}

export async function openShelf(
  opened: TestDatabase,
  { embedder, entities }: { embedder: Embedder; entities: EntityExtractor },
): Promise<Shelf> {
  const { database, folder } = opened;
  const { model, dimensions } = embedder;
  const index = await openEmbeddedIndex({ path: join(folder, "index.db"), model, dimensions });
  const graph = openSqlGraph(database);
  const { signal } = new AbortController();
  return {
    database,
    index,
    graph,
    async add(document) {
      const { tenant = "default", collection = "default", title = null } = document;
      const documentId = randomUUID();
      await insert(database, "documents", {
        id: documentId,
        filename: document.filename,
        title,
        tenant,
        collection,
        metadata: JSON.stringify(document.metadata ?? {}),
      });
      const texts = document.chunks.map(({ content }) => content);
      const vectors = await embedder.embed(texts, signal);
      const extractions = await entities.extract(texts, signal);
      for (const [position, chunk] of document.chunks.entries()) {
        const [pageId, chunkKey] = [randomUUID(), randomUUID()];
        const { content, headings = [] } = chunk;
        await insert(database, "task_queue_page", {
          id: pageId,
          document_id: documentId,
          page_number: position + 1,
        });
        await insert(database, "task_queue_chunk", {
          id: chunkKey,
          page_id: pageId,
          document_id: documentId,
          chunk_id: chunk.id,
          chunk_index: 0,
          content,
          heading_path: JSON.stringify(headings),
        });
        const place = { chunkId: chunk.id, documentId, tenant, collection };
        const context = [title, ...headings].filter(Boolean).join("\n");
        await index.vectors.upsert([{ ...place, vector: vectors[position]! }]);
        await index.fulltext.upsert([{ ...place, context, content }]);
        await graph.put([{ ...place, chunkKey, extraction: extractions[position]! }]);
      }
      return documentId;
    },
    close: async () => {
      await index.close();
      await opened.close();
    },
  };
}

async function insert(
  database: Database,
  table: string,
  row: Readonly<Record<string, unknown>>,
): Promise<void> {
  const names = Object.keys(row);
  const mark = database.dialect.name === "postgres" ? "$" : "?";
  const marks = names.map((_name, index) => `${mark}${index + 1}`);
  await database.query(
    `insert into ${table} (${names.join(", ")}) values (${marks.join(", ")})`,
    Object.values(row),
  );
}
