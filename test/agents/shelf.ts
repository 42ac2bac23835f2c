import { randomUUID } from "node:crypto";
import type { Database, Row } from "../../src/index.ts";

/** Rows as the pipeline leaves them, for tests that only look at the catalogue. */
export interface ShelvedDocument {
  readonly filename: string;
  readonly tenant?: string;
  readonly collection?: string;
  readonly title?: string;
  /** Passages by page. */
  readonly pages: readonly (readonly string[])[];
  /** Names that its first passage has, with their types. */
  readonly entities?: Readonly<Record<string, string>>;
}

export async function shelve(database: Database, documents: readonly ShelvedDocument[]): Promise<void> {
  for (const document of documents) await shelveOne(database, document);
}

async function shelveOne(database: Database, document: ShelvedDocument): Promise<void> {
  const {
    filename,
    tenant = "default",
    collection = "default",
    title = null,
    pages,
    entities = {},
  } = document;
  const documentId = randomUUID();
  const put = (table: string, row: Row) => insert(database, table, row);
  await put("documents", { id: documentId, filename, tenant, collection, title, total_pages: pages.length });
  let firstChunk: string | undefined;
  for (const [index, passages] of pages.entries()) {
    const pageId = randomUUID();
    await put("task_queue_page", {
      id: pageId,
      document_id: documentId,
      page_number: index + 1,
      text_source: "text",
      chunk_count: passages.length,
      ocr_status: "completed",
    });
    for (const [position, content] of passages.entries()) {
      const id = randomUUID();
      firstChunk ??= id;
      const row = { page_id: pageId, document_id: documentId, chunk_id: id, chunk_index: position, content };
      await put("task_queue_chunk", { id, ...row });
    }
  }
  if (firstChunk === undefined) return;
  const place = { document_id: documentId, tenant, collection };
  await put("graph_chunks", { chunk_key: firstChunk, chunk_id: firstChunk, ...place });
  for (const [name, type] of Object.entries(entities)) {
    const id = randomUUID();
    const normalised = name.toLowerCase();
    await put("entities", {
      id,
      tenant,
      collection,
      name,
      normalised_name: normalised,
      type,
      mention_count: 1,
    });
    const mention = { entity_id: id, chunk_key: firstChunk, start_offset: 0, end_offset: 1, confidence: 1 };
    await put("entity_mentions", mention);
  }
}

async function insert(database: Database, table: string, row: Row): Promise<void> {
  const names = Object.keys(row);
  const marks = names.map((_, index) => database.dialect.mark(index + 1));
  await database.query(
    `insert into ${table} (${names.join(", ")}) values (${marks.join(", ")})`,
    Object.values(row),
  );
}
