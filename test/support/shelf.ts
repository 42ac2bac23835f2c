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
      const { vectors } = await embedder.embed(texts, signal);
      const extractions = await entities.extract(texts, signal);
      const chunks = document.chunks.map((chunk, position) => ({
        place: { chunkId: chunk.id, documentId, tenant, collection },
        chunkKey: randomUUID(),
        content: chunk.content,
        headings: chunk.headings ?? [],
        vector: vectors[position]!,
        extraction: extractions[position]!,
      }));
      for (const [position, { place, chunkKey, content, headings }] of chunks.entries()) {
        const pageId = randomUUID();
        await insert(database, "task_queue_page", {
          id: pageId,
          document_id: documentId,
          page_number: position + 1,
        });
        await insert(database, "task_queue_chunk", {
          id: chunkKey,
          page_id: pageId,
          document_id: documentId,
          chunk_id: place.chunkId,
          chunk_index: 0,
          content,
          heading_path: JSON.stringify(headings),
        });
      }
      await index.vectors.upsert(chunks.map(({ place, vector }) => ({ ...place, vector })));
      await index.fulltext.upsert(
        chunks.map(({ place, content, headings }) => ({
          ...place,
          context: [title, ...headings].filter(Boolean).join("\n"),
          content,
        })),
      );
      await graph.put(chunks.map(({ place, chunkKey, extraction }) => ({ ...place, chunkKey, extraction })));
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
