import { defineQueue, type Queue, type QueueColumns, type QueueDeclaration } from "../queue/declaration.ts";
import { exponential } from "../queue/retry-policy.ts";

/**
 * The hierarchy, to be read first. A document is split into pages; a page goes through OCR and is cut into chunks;
 * a chunk gets its vector, then its entities. Each arrow is a queue over columns of the row itself, and what a
 * document or a page says about a phase follows from what is below it:
 *
 *   documents.split → pages.ocr → pages.chunk → chunks.vector → chunks.graphrag
 *                                      └ no text → pages.graphrag
 *
 * A page that turns out to be a picture goes on in a line of its own, pages.scan: reading one takes seconds, and pages
 * that have text do not wait behind it.
 *
 * A row may start a phase as soon as it has finished the one before: a page with text is chunked while others are
 * still read, and one that failed holds up none of them.
 */
export const PHASES = ["ocr", "vector", "graphrag"] as const;
export type Phase = (typeof PHASES)[number];

export const TASK_STATUSES = ["pending", "processing", "completed", "failed"] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];

export interface QueueSettings {
  /** STALE_TASK_TIMEOUT: how long a worker may be silent. */
  readonly staleMs: number;
}

export interface SplitPayload {
  filename: string;
  original_path: string;
  content_hash: string;
  title: string | null;
  max_retries: number;
}

export interface PagePayload {
  document_id: string;
  page_number: number;
}

export interface ChunkingPayload extends PagePayload {
  page_file_path: string;
  headings: string[] | null;
  max_retries: number;
}

export interface ChunkPayload {
  page_id: string;
  document_id: string;
  chunk_id: string;
  chunk_content_hash: string;
  content: string;
  overlap: string;
  heading_path: string[];
}

export interface RemovalPayload {
  document_id: string;
  kind: "document" | "chunks" | "replaced";
  chunk_ids: string[] | null;
  chunk_keys: string[] | null;
}

export interface DocumentQueues {
  readonly split: Queue<SplitPayload>;
  readonly pageOcr: Queue<PagePayload>;
  /** The same rows: those that turned out to be pictures. */
  readonly pageScan: Queue<PagePayload>;
  readonly pageChunk: Queue<ChunkingPayload>;
  readonly pageGraphrag: Queue<PagePayload>;
  readonly chunkVector: Queue<ChunkPayload>;
  readonly chunkGraphrag: Queue<ChunkPayload>;
  readonly removals: Queue<RemovalPayload>;
}

const UUID = { column: "id", type: "uuid" } as const;
const TRANSIENT = exponential({ baseMs: 5_000, capMs: 300_000 });

export function documentQueues({ staleMs }: QueueSettings): DocumentQueues {
  const shared = {
    key: UUID,
    // `failed` is also the word for "failed, to be tried again": such rows are picked up first.
    statuses: { retrying: "failed" },
    attempts: { count: "failures", max: "max_retries" },
    lease: { ms: staleMs, holds: "heartbeat" },
    retry: TRANSIENT,
  } as const;

  const split = defineQueue<SplitPayload>({
    ...shared,
    name: "documents.split",
    table: "documents",
    columns: {
      status: "ocr_status",
      token: "ocr_lease_token",
      lease: "last_heartbeat",
      runAfter: "ocr_run_after",
      attempts: "ocr_retry_count",
      error: "ocr_error",
      worker: "current_worker_id",
      createdAt: "created_at",
      startedAt: "ocr_started_at",
      finishedAt: "ocr_completed_at",
      updatedAt: "updated_at",
    },
    // From then on the status follows from the pages.
    only: { total_pages: null },
    gate: [{ column: "original_path", isNot: null }],
    order: failedFirst("ocr_status", "ocr_retry_count"),
    reads: ["filename", "original_path", "content_hash", "title", "max_retries"],
    results: ["total_pages", "media_type", "title", "furniture"],
    kinds: { furniture: "json", metadata: "json", chunking: "json" },
    wakes: ["pages.ocr"],
  });

  const reading = {
    ...shared,
    table: "task_queue_page",
    columns: phaseColumns("ocr"),
    order: failedFirst("ocr_status", "ocr_retry_count"),
    rollUp: [documentLevel("ocr")],
    reads: ["document_id", "page_number"],
    results: ["page_file_path", "page_picture_path", "text_source", "ocr_confidence", "headings"],
    kinds: { headings: "json", is_scan: "boolean" },
  } as const satisfies Partial<QueueDeclaration<PagePayload>>;

  const pageOcr = defineQueue<PagePayload>({
    ...reading,
    name: "pages.ocr",
    gate: [{ column: "is_scan", is: false }],
    dedupe: ["document_id", "page_number"],
    wakes: ["pages.chunk", "pages.scan"],
  });

  const pageScan = defineQueue<PagePayload>({
    ...reading,
    name: "pages.scan",
    gate: [{ column: "is_scan", is: true }],
    wakes: ["pages.chunk"],
  });

  const pageChunk = defineQueue<ChunkingPayload>({
    ...shared,
    name: "pages.chunk",
    table: "task_queue_page",
    columns: phaseColumns("vector"),
    only: { is_chunked: false },
    gate: [{ column: "ocr_status", is: "completed" }],
    order: failedFirst("vector_status", "vector_retry_count"),
    rollUp: [{ ...documentLevel("vector"), children: "table" }],
    reads: ["document_id", "page_number", "page_file_path", "headings", "max_retries"],
    results: ["is_chunked", "chunk_count"],
    kinds: { headings: "json", is_chunked: "boolean" },
    wakes: ["chunks.vector", "pages.graphrag"],
  });

  const pageGraphrag = defineQueue<PagePayload>({
    ...shared,
    name: "pages.graphrag",
    table: "task_queue_page",
    columns: phaseColumns("graphrag"),
    only: { chunk_count: 0 },
    gate: [{ column: "vector_status", is: "completed" }],
    order: failedFirst("graphrag_status", "graphrag_retry_count"),
    rollUp: [{ ...documentLevel("graphrag"), children: "table" }],
    reads: ["document_id", "page_number"],
  });

  const chunkVector = defineQueue<ChunkPayload>({
    ...shared,
    name: "chunks.vector",
    table: "task_queue_chunk",
    columns: phaseColumns("vector"),
    order: failedFirst("vector_status", "vector_retry_count"),
    rollUp: [pageLevel("vector"), documentLevel("vector")],
    reads: CHUNK_COLUMNS,
    kinds: { heading_path: "json" },
    dedupe: ["page_id", "chunk_index"],
    wakes: ["chunks.graphrag"],
  });

  const chunkGraphrag = defineQueue<ChunkPayload>({
    ...shared,
    name: "chunks.graphrag",
    table: "task_queue_chunk",
    columns: phaseColumns("graphrag"),
    gate: [{ column: "vector_status", is: "completed" }],
    order: failedFirst("graphrag_status", "graphrag_retry_count"),
    rollUp: [pageLevel("graphrag"), documentLevel("graphrag")],
    reads: CHUNK_COLUMNS,
    results: ["entities_extracted", "relationships_extracted"],
    kinds: { heading_path: "json" },
  });

  const removals = defineQueue<RemovalPayload>({
    ...shared,
    name: "documents.remove",
    table: "document_removals",
    columns: {
      status: "status",
      token: "lease_token",
      lease: "lease_until",
      runAfter: "run_after",
      attempts: "retry_count",
      error: "error",
      worker: "worker_id",
      createdAt: "created_at",
      startedAt: "started_at",
      finishedAt: "completed_at",
    },
    lease: { ms: staleMs, holds: "expiry" },
    order: failedFirst("status", "retry_count"),
    reads: ["document_id", "kind", "chunk_ids", "chunk_keys"],
    results: ["vectors_status", "fulltext_status", "graph_status", "files_status"],
    kinds: { chunk_ids: "json", chunk_keys: "json" },
    retention: { doneMs: 7 * 86_400_000 },
  });

  return { split, pageOcr, pageScan, pageChunk, pageGraphrag, chunkVector, chunkGraphrag, removals };
}

const CHUNK_COLUMNS = [
  "page_id",
  "document_id",
  "chunk_id",
  "chunk_content_hash",
  "content",
  "overlap",
  "heading_path",
] as const;

/** The seven columns of a phase, and the three that make its leases safe. */
function phaseColumns(phase: Phase): QueueColumns {
  return {
    status: `${phase}_status`,
    token: `${phase}_lease_token`,
    lease: `${phase}_last_heartbeat`,
    runAfter: `${phase}_run_after`,
    attempts: `${phase}_retry_count`,
    error: `${phase}_error`,
    worker: `${phase}_worker_id`,
    createdAt: "created_at",
    startedAt: `${phase}_started_at`,
    finishedAt: `${phase}_completed_at`,
    updatedAt: "updated_at",
  };
}

function failedFirst(status: string, retryCount: string) {
  return [{ column: status, values: ["failed"] }, retryCount, "created_at"];
}

function pageLevel(phase: Phase) {
  return {
    table: "task_queue_page",
    key: UUID,
    via: "page_id",
    status: `${phase}_status`,
    startedAt: `${phase}_started_at`,
    finishedAt: `${phase}_completed_at`,
    updatedAt: "updated_at",
    error: { column: `${phase}_error`, from: `${phase}_error` },
  } as const;
}

function documentLevel(phase: Phase) {
  return {
    table: "documents",
    key: UUID,
    via: "document_id",
    status: documentStatusColumn(phase),
    startedAt: `${phase}_started_at`,
    finishedAt: `${phase}_completed_at`,
    updatedAt: "updated_at",
    error: { column: `${phase}_error`, from: `${phase}_error` },
  } as const;
}

/** Documents spell the two later phases longer than pages and chunks do. */
export function documentStatusColumn(phase: Phase): string {
  return phase === "ocr" ? "ocr_status" : `${phase}_index_status`;
}
