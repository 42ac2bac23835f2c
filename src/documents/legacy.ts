import { stat } from "node:fs/promises";
import type { Database, Row, Transaction } from "../database/database.ts";
import { quoted } from "../database/dialect.ts";
import { isQuarryError, QuarryError } from "../errors.ts";
import { uuidv7 } from "../ids.ts";
import { cleanValue } from "../queue/text.ts";
import { type DocumentFiles, readForeign } from "./files.ts";
import { type LegacyChunk, type LegacyPage, readIndexingDetails, readOcrDetails } from "./legacy-details.ts";
import type { TaskStatus } from "./queues.ts";

export interface LegacyReport {
  readonly documents: number;
  readonly pages: number;
  readonly chunks: number;
  /** Documents that an earlier run has brought over. */
  readonly alreadyThere: number;
}

interface Plan {
  readonly document: Row;
  readonly pages: Row[];
  readonly chunks: Row[];
}

interface Parts {
  readonly database: Database;
  readonly files: DocumentFiles;
  readonly attemptsMax: number;
  readonly fileBytesMax: number;
}

/**
 * Brings over the documents of the system before: `convert_status` and `index_status` become the three statuses,
 * `ocr_details` and `indexing_details` become pages and chunks. All in one transaction; a second run finds nothing
 * left to do. The old columns stay as they are.
 */
export async function migrateLegacy(parts: Parts, from: Database = parts.database): Promise<LegacyReport> {
  const rows = await legacyRows(from);
  const done = await migratedIds(parts.database, from === parts.database);
  const open = rows.filter((row) => !done.has(String(row.id)));
  const plans: Plan[] = [];
  for (const row of open) plans.push(await planOf(parts, row));
  const written = await parts.database.transaction(async (transaction) => {
    const isInPlace = from === parts.database;
    for (const { document } of plans) await writeDocument(parts.database, transaction, document, isInPlace);
    await insert(
      parts.database,
      transaction,
      "task_queue_page",
      plans.flatMap(({ pages }) => pages),
    );
    await insert(
      parts.database,
      transaction,
      "task_queue_chunk",
      plans.flatMap(({ chunks }) => chunks),
    );
    return plans;
  });
  return {
    documents: written.length,
    pages: written.reduce((sum, { pages }) => sum + pages.length, 0),
    chunks: written.reduce((sum, { chunks }) => sum + chunks.length, 0),
    alreadyThere: rows.length - open.length,
  };
}

async function legacyRows(from: Database): Promise<Row[]> {
  const rows = await from.query("select * from documents").catch((cause) => {
    if (!isQuarryError(cause, "schema_mismatch")) throw cause;
    throw new QuarryError(
      "invalid_input",
      "there is no documents table in it, so it is not the database of the old system",
      { cause },
    );
  });
  const [first] = rows;
  if (first && !("convert_status" in first || "index_status" in first)) {
    throw new QuarryError(
      "invalid_input",
      "the documents table has neither convert_status nor index_status, so there is nothing of the old system in it; name the old database with --from",
    );
  }
  return rows.filter((row) => row.convert_status !== null || row.index_status !== null);
}

/** In its own table, a document that has pages or has left `pending` was brought over before. */
async function migratedIds(database: Database, isInPlace: boolean): Promise<Set<string>> {
  const isDone = isInPlace
    ? "d.ocr_status <> 'pending' or d.original_path is not null or exists (select 1 from task_queue_page as p where p.document_id = d.id)"
    : "true";
  const rows = await database.query(`select d.id from documents as d where ${isDone}`);
  return new Set(rows.map((row) => String(row.id)));
}

async function planOf(parts: Parts, row: Row): Promise<Plan> {
  const id = String(row.id);
  const isIndexed = row.index_status === "indexed";
  // What was indexed had been converted, whatever the column says.
  const isConverted = isIndexed || row.convert_status === "converted";
  const details = isConverted ? readOcrDetails(row.ocr_details) : [];
  const oldChunks = isIndexed ? readIndexingDetails(row.indexing_details) : [];
  const common = { max_retries: parts.attemptsMax };
  const pageIds = new Map<number, string>();
  const pages: Row[] = [];
  for (const page of withPagesOf(details, oldChunks)) {
    const pageId = uuidv7(parts.database.clock.now());
    pageIds.set(page.pageNumber, pageId);
    const count = oldChunks.filter(({ pageNumber }) => pageNumber === page.pageNumber).length;
    pages.push({
      ...common,
      id: pageId,
      document_id: id,
      page_number: page.pageNumber,
      page_file_path: await pageFile(parts.files, id, page),
      ocr_status: page.isFailed ? "failed" : "completed",
      ocr_error: page.error ?? null,
      ocr_retry_count: page.isFailed ? parts.attemptsMax : 0,
      vector_status: isIndexed && !page.isFailed ? "completed" : "pending",
      graphrag_status: isIndexed && !page.isFailed ? "completed" : "pending",
      is_chunked: isIndexed && !page.isFailed,
      chunk_count: page.isFailed ? 0 : count,
    });
  }
  const failedPages = new Set(details.filter(({ isFailed }) => isFailed).map(({ pageNumber }) => pageNumber));
  const chunks = oldChunks
    .filter(({ pageNumber }) => !failedPages.has(pageNumber))
    .map((chunk) => chunkRow(parts, id, pageIds.get(chunk.pageNumber)!, chunk));
  const original = await originalOf(parts, id, row);
  const statuses = statusesOf({
    isConverted,
    isIndexed,
    hasPages: pages.length > 0,
    hasFailed: failedPages.size > 0,
    hasOriginal: "original_path" in original,
    attemptsMax: parts.attemptsMax,
  });
  return {
    document: {
      id,
      filename: String(row.filename ?? row.file_name ?? row.name ?? id).slice(0, 500),
      total_pages: pages.length > 0 ? pages.length : null,
      ...statuses,
      ...original,
      ...common,
    },
    pages,
    chunks,
  };
}

interface LegacyFacts {
  readonly isConverted: boolean;
  readonly isIndexed: boolean;
  readonly hasPages: boolean;
  readonly hasFailed: boolean;
  readonly hasOriginal: boolean;
  readonly attemptsMax: number;
}

/** A document of which nothing is left to work on says so, instead of waiting for ever. */
function statusesOf(facts: LegacyFacts): Row {
  const { isConverted, isIndexed, hasPages, hasFailed, hasOriginal, attemptsMax } = facts;
  const indexed: TaskStatus = isIndexed && !hasFailed ? "completed" : "pending";
  const later = { vector_index_status: indexed, graphrag_index_status: indexed };
  if (hasPages) return { ...later, ocr_status: hasFailed ? "failed" : "completed" };
  const advice = hasOriginal ? "redo it from ocr on" : "its original file is gone, ingest it again";
  if (isConverted) {
    const missing = isIndexed ? {} : { vector_error: `its pages are not known: ${advice}` };
    return { ...later, ...missing, ocr_status: "completed", total_pages: 0 };
  }
  if (hasOriginal) return { ...later, ocr_status: "pending" };
  const spent = { ocr_retry_count: attemptsMax, ocr_error: `it was not converted: ${advice}` };
  return { ...later, ...spent, ocr_status: "failed" };
}

/** Pages that only their chunks tell of. */
function withPagesOf(pages: readonly LegacyPage[], chunks: readonly LegacyChunk[]): LegacyPage[] {
  const known = new Map(pages.map((page) => [page.pageNumber, page]));
  for (const { pageNumber } of chunks)
    if (!known.has(pageNumber)) known.set(pageNumber, { pageNumber, isFailed: false });
  return [...known.values()].sort((a, b) => a.pageNumber - b.pageNumber);
}

function chunkRow(parts: Parts, documentId: string, pageId: string, chunk: LegacyChunk): Row {
  return {
    id: uuidv7(parts.database.clock.now()),
    page_id: pageId,
    document_id: documentId,
    chunk_id: chunk.chunkId.slice(0, 64),
    chunk_index: chunk.chunkIndex,
    chunk_content_hash: chunk.contentHash ?? null,
    content: chunk.content ?? "",
    entities_extracted: chunk.entities,
    relationships_extracted: chunk.relationships,
    vector_status: "completed",
    graphrag_status: "completed",
    max_retries: parts.attemptsMax,
  };
}

/** A page's Markdown that is still there is taken over, so that the page can be chunked. */
async function pageFile(files: DocumentFiles, documentId: string, page: LegacyPage): Promise<string | null> {
  if (page.filePath === undefined) return null;
  const markdown = await readForeign(page.filePath);
  if (markdown === undefined) return page.filePath;
  return files.writePage({ documentId, pageNumber: page.pageNumber }, markdown);
}

async function originalOf(parts: Parts, id: string, row: Row): Promise<Row> {
  const path = [row.file_path, row.filepath, row.path, row.original_path].find(
    (value): value is string => typeof value === "string" && value !== "",
  );
  const isThere =
    path !== undefined &&
    (await stat(path).then(
      (info) => info.isFile(),
      () => false,
    ));
  if (!isThere) return {};
  const original = await parts.files.addOriginal(id, { path }, { bytesMax: parts.fileBytesMax });
  return {
    source: path,
    original_path: original.path,
    content_hash: original.contentHash,
    size_bytes: original.sizeBytes,
  };
}

async function writeDocument(
  database: Database,
  transaction: Transaction,
  document: Row,
  isInPlace: boolean,
): Promise<void> {
  if (!isInPlace) return insert(database, transaction, "documents", [document]);
  const { id, filename: _filename, ...changes } = document;
  const record = database.dialect.recordset("documents", 1);
  const names = Object.keys(changes);
  // A row cannot be joined to a set of one in both dialects alike; its values are looked up one by one.
  const values = names.map(
    (name) => `${quoted(name)} = (select ${record.column(name, "plain")} from ${record.from})`,
  );
  const isIt = `id = (select ${record.column("id", "plain")} from ${record.from})`;
  await transaction.query(`update documents set ${values.join(", ")} where ${isIt}`, [
    JSON.stringify([cleanValue({ id, ...changes })]),
  ]);
}

/** Rows of one table; all that an earlier run has written are left alone. */
async function insert(
  database: Database,
  transaction: Transaction,
  table: string,
  rows: readonly Row[],
): Promise<void> {
  const byShape = Map.groupBy(rows, (row) => Object.keys(row).sort().join(","));
  for (const [shape, some] of byShape) {
    const names = shape.split(",");
    const record = database.dialect.recordset(table, 1);
    const values = names.map((name) => record.column(name, "plain")).join(", ");
    await transaction.query(
      `insert into ${table} (${names.map(quoted).join(", ")}) select ${values} from ${record.from} where true on conflict do nothing`,
      [JSON.stringify(some.map(cleanValue))],
    );
  }
}
