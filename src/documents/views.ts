import type { Database, Row } from "../database/database.ts";
import { QuarryError } from "../errors.ts";
import { isUuid } from "../ids.ts";
import { type Counts, openWork, readProgress } from "./progress.ts";
import { documentStatusColumn, PHASES, type Phase, TASK_STATUSES, type TaskStatus } from "./queues.ts";
import { isFailed, STAGES } from "./stages.ts";

/** queued → working → completed; "partial": some of it failed, the rest can be searched; "failed": nothing can. */
export const DOCUMENT_STATES = ["queued", "working", "completed", "partial", "failed"] as const;
export type DocumentState = (typeof DOCUMENT_STATES)[number];

export interface DocumentSummary {
  readonly id: string;
  readonly filename: string;
  readonly title: string | null;
  readonly tenant: string;
  readonly collection: string;
  readonly source: string;
  /** The machine whose path the source is, where that is known. */
  readonly seenOn: string | null;
  readonly mediaType: string | null;
  readonly sizeBytes: number;
  readonly pages: number | null;
  readonly chunks: number;
  readonly state: DocumentState;
  readonly ocrStatus: TaskStatus;
  readonly vectorStatus: TaskStatus;
  readonly graphragStatus: TaskStatus;
  readonly error: string | null;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** The newer version that will take its place. */
  readonly replacedBy: string | null;
  readonly createdAt: string;
}

export interface DocumentFailure {
  readonly phase: Phase;
  readonly pageNumber: number | null;
  readonly chunkIndex: number | null;
  /** What counts against MAX_TASK_RETRIES; all of them when it was cancelled or could never succeed. */
  readonly attempts: number;
  readonly error: string | null;
}

export interface DocumentDetails extends DocumentSummary {
  readonly ocr: Counts;
  readonly vector: Counts;
  readonly graphrag: Counts;
  /** What models read and wrote for it, in their own count. What was known already cost none. */
  readonly tokens: Readonly<Record<Phase, number>>;
  /** What failed for good, the first of each kind; `documents retry` tries exactly these again. */
  readonly failures: readonly DocumentFailure[];
}

export interface DocumentFilter {
  readonly tenant?: string | undefined;
  readonly collection?: string | undefined;
  /** The machine whose path the source is. */
  readonly seenOn?: string | undefined;
  readonly state?: DocumentState | undefined;
  readonly ocr?: TaskStatus | undefined;
  readonly vector?: TaskStatus | undefined;
  readonly graphrag?: TaskStatus | undefined;
  /** Part of the file's name, the title or the source. */
  readonly name?: string | undefined;
  readonly limit?: number | undefined;
  /** The cursor of the page before. */
  readonly after?: string | undefined;
}

export interface DocumentPage {
  readonly documents: readonly DocumentSummary[];
  readonly next: string | undefined;
}

const LIST_LIMIT_MAX = 1_000;
const FAILURES_SHOWN_MAX = 50;

const STATE = `case
  when d.ocr_status = 'completed' and d.vector_index_status = 'completed' and d.graphrag_index_status = 'completed' then 'completed'
  when d.total_pages is null and d.ocr_status = 'pending' then 'queued'
  when ${openWork("graphrag")} then 'working'
  when exists (select 1 from task_queue_chunk as s where s.document_id = d.id and s.vector_status = 'completed') then 'partial'
  else 'failed' end`;

const COLUMNS = `d.id, d.filename, d.title, d.tenant, d.collection, d.source, d.seen_on, d.media_type, d.size_bytes, d.total_pages,
  d.ocr_status, d.vector_index_status, d.graphrag_index_status, coalesce(d.ocr_error, d.vector_error, d.graphrag_error) as error,
  d.metadata, d.replaced_by, d.created_at, (select coalesce(sum(p.chunk_count), 0) from task_queue_page as p where p.document_id = d.id) as chunks,
  ${STATE} as state`;

/** Newest first. */
export async function listDocuments(database: Database, filter: DocumentFilter): Promise<DocumentPage> {
  const limit = filter.limit ?? 50;
  if (!(Number.isInteger(limit) && limit >= 1 && limit <= LIST_LIMIT_MAX))
    throw new QuarryError("invalid_input", `limit must be a whole number from 1 to ${LIST_LIMIT_MAX}`);
  const { terms, params, mark } = filterTerms(database, filter);
  if (filter.after !== undefined) {
    terms.push(`d.id < ${mark(decodeCursor(filter.after), "uuid")}`);
  }
  const isState = filter.state === undefined ? "true" : `state = ${mark(filter.state)}`;
  // Ids rise with time, so they are the order and the cursor.
  const sql = `select * from (select ${COLUMNS} from documents as d where ${terms.join(" and ")}) as l where ${isState} order by id desc limit ${limit + 1}`;
  const rows = await database.query(sql, params);
  const shown = rows.slice(0, limit);
  return {
    documents: shown.map(summaryOf),
    next: rows.length > limit ? encodeCursor(String(shown.at(-1)!.id)) : undefined,
  };
}

export async function showDocument(database: Database, id: string): Promise<DocumentDetails> {
  const { dialect } = database;
  const tokens = PHASES.map((phase) => `d.${phase}_tokens`).join(", ");
  const sql = `select ${COLUMNS}, ${tokens} from documents as d where ${dialect.isOneOf("d.id", 1, "uuid")}`;
  const [row] = await database.query({ name: "documents.show", sql }, [dialect.keys([id])]);
  if (!row) throw new QuarryError("not_found", `there is no document ${id}: see quarry documents list`);
  const { ocr, vector, graphrag } = await readProgress(database, [id]);
  return {
    ...summaryOf(row),
    ocr,
    vector,
    graphrag,
    tokens: {
      ocr: Number(row.ocr_tokens),
      vector: Number(row.vector_tokens),
      graphrag: Number(row.graphrag_tokens),
    },
    failures: await failuresOf(database, id),
  };
}

export async function readStates(database: Database): Promise<Record<DocumentState, number>> {
  const sql = `select state, count(*) as total from (select ${STATE} as state from documents as d where d.replaced_by is null) as s group by state`;
  const rows = await database.query({ name: "documents.states", sql });
  const counts = { queued: 0, working: 0, completed: 0, partial: 0, failed: 0 };
  for (const row of rows) counts[row.state as DocumentState] = Number(row.total);
  return counts;
}

async function failuresOf(database: Database, id: string): Promise<DocumentFailure[]> {
  const { dialect } = database;
  const failures: DocumentFailure[] = [];
  for (const stage of STAGES) {
    const { table, phase } = stage;
    const [page, chunk, join, column] = {
      documents: ["null", "null", "", "t.id"],
      task_queue_page: ["t.page_number", "null", "", "t.document_id"],
      task_queue_chunk: [
        "p.page_number",
        "t.chunk_index",
        " join task_queue_page as p on p.id = t.page_id",
        "t.document_id",
      ],
    }[table];
    const rows = await database.query(
      {
        name: `documents.failures.${stage.queue}`,
        sql: `select ${page} as page, ${chunk} as chunk, t.${phase}_retry_count as attempts, t.${phase}_error as error from ${table} as t${join} where ${dialect.isOneOf(column!, 1, "uuid")} and ${stage.concerns} and ${isFailed(stage)} order by 1, 2 limit ${FAILURES_SHOWN_MAX}`,
      },
      [dialect.keys([id])],
    );
    for (const row of rows) {
      failures.push({
        phase,
        pageNumber: row.page === null ? null : Number(row.page),
        chunkIndex: row.chunk === null ? null : Number(row.chunk),
        attempts: Number(row.attempts),
        error: row.error as string | null,
      });
    }
  }
  return failures;
}

function filterTerms(database: Database, filter: DocumentFilter) {
  const isPostgres = database.dialect.name === "postgres";
  const params: unknown[] = [];
  const mark = (value: unknown, type = "text") =>
    isPostgres ? `$${params.push(value)}::${type}` : `?${params.push(value)}`;
  const terms = ["true"];
  if (filter.tenant !== undefined) terms.push(`d.tenant = ${mark(filter.tenant)}`);
  if (filter.collection !== undefined) terms.push(`d.collection = ${mark(filter.collection)}`);
  if (filter.seenOn !== undefined) terms.push(`d.seen_on = ${mark(filter.seenOn)}`);
  for (const phase of ["ocr", "vector", "graphrag"] as const) {
    const status = filter[phase];
    if (status === undefined) continue;
    refuseUnknown(phase, status, TASK_STATUSES);
    terms.push(`d.${documentStatusColumn(phase)} = ${mark(status, "task_status")}`);
  }
  if (filter.state !== undefined) refuseUnknown("state", filter.state, DOCUMENT_STATES);
  if (filter.name !== undefined) {
    const like = mark(`%${filter.name.toLowerCase().replaceAll(/[\\%_]/g, "\\$&")}%`);
    const columns = ["d.filename", "coalesce(d.title, '')", "d.source"];
    terms.push(`(${columns.map((column) => `lower(${column}) like ${like} escape '\\'`).join(" or ")})`);
  }
  return { terms, params, mark };
}

function refuseUnknown(what: string, value: string, known: readonly string[]): void {
  if (!known.includes(value))
    throw new QuarryError(
      "invalid_input",
      `${what} is one of ${known.join(", ")}, not ${JSON.stringify(value)}`,
    );
}

function summaryOf(row: Row): DocumentSummary {
  const metadata = typeof row.metadata === "string" ? JSON.parse(row.metadata) : row.metadata;
  const createdAt = row.created_at instanceof Date ? row.created_at.toISOString() : String(row.created_at);
  return {
    id: String(row.id),
    filename: String(row.filename),
    title: row.title as string | null,
    tenant: String(row.tenant),
    collection: String(row.collection),
    source: String(row.source),
    seenOn: row.seen_on as string | null,
    mediaType: row.media_type as string | null,
    sizeBytes: Number(row.size_bytes),
    pages: row.total_pages === null ? null : Number(row.total_pages),
    chunks: Number(row.chunks),
    state: row.state as DocumentState,
    ocrStatus: row.ocr_status as TaskStatus,
    vectorStatus: row.vector_index_status as TaskStatus,
    graphragStatus: row.graphrag_index_status as TaskStatus,
    error: row.error as string | null,
    metadata,
    replacedBy: (row.replaced_by as string | null) ?? null,
    createdAt,
  };
}

function encodeCursor(id: string): string {
  return Buffer.from(id).toString("base64url");
}

function decodeCursor(cursor: string): string {
  const id = Buffer.from(cursor, "base64url").toString("utf8");
  if (isUuid(id)) return id;
  throw new QuarryError(
    "invalid_input",
    "this cursor does not come from a list of documents; start again without it",
  );
}
