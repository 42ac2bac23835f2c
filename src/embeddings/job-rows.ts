import { decodePosition, encodeCursor } from "../database/cursor.ts";
import type { Database, Row } from "../database/database.ts";
import { QuarryError } from "../errors.ts";
import { isUuid } from "../ids.ts";
import type { JobPriority, JobStatus } from "./queue.ts";
import { fromStored } from "./vectors.ts";

/** A job as its users see it, in the columns' own words. */
export interface EmbeddingJob {
  readonly id: string;
  readonly rule_id: string | null;
  readonly status: JobStatus;
  readonly priority: JobPriority;
  readonly embedding_model: string;
  readonly input_text: string;
  readonly text_hash: string;
  readonly attempts: number;
  readonly max_attempts: number;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly completed_at: string | null;
  readonly embedding_dimensions: number | null;
  readonly error_message: string | null;
  readonly processing_time_ms: number | null;
  readonly tokens_used: number | null;
  readonly worker_id: string | null;
  readonly worker_version: string | null;
  readonly project_id: string | null;
  readonly created_by: string | null;
  readonly run_after: string | null;
  /** Only where it was asked for, and once there is one. */
  readonly embedding_vector?: Float32Array | null;
}

export interface JobFilter {
  readonly status?: JobStatus | undefined;
  readonly priority?: JobPriority | undefined;
  readonly embedding_model?: string | undefined;
  readonly rule_id?: string | undefined;
  readonly project_id?: string | undefined;
  readonly worker_id?: string | undefined;
  readonly text_hash?: string | undefined;
}

export interface JobListOptions extends JobFilter {
  readonly limit?: number | undefined;
  /** The cursor of the page before. */
  readonly after?: string | undefined;
}

export interface JobPage {
  readonly jobs: readonly EmbeddingJob[];
  /** Undefined on the last page. */
  readonly next: string | undefined;
}

export const JOBS_LISTED_MAX = 1_000;
/** In a list; a page of whole texts could be larger than a string may be. */
export const TEXT_LISTED_CHARS_MAX = 5_000;

export const JOB_COLUMNS = [
  "id",
  "rule_id",
  "status",
  "priority",
  "embedding_model",
  "input_text",
  "text_hash",
  "attempts",
  "max_attempts",
  "created_at",
  "started_at",
  "completed_at",
  "embedding_dimensions",
  "error_message",
  "processing_time_ms",
  "tokens_used",
  "worker_id",
  "worker_version",
  "project_id",
  "created_by",
] as const;

const FILTERS = [
  "priority",
  "embedding_model",
  "rule_id",
  "project_id",
  "worker_id",
  "text_hash",
] as const satisfies readonly (keyof JobFilter)[];

const JOBS = "embedding_jobs";
const FAILURES = "embedding_job_failures";

/** Jobs that failed for good are in a table of their own; to whoever asks they are jobs like the others. */
export async function readJobs(database: Database, ids: readonly string[]): Promise<EmbeddingJob[]> {
  const { dialect } = database;
  const isIt = dialect.isOneOf("id", 1, "uuid");
  const sql = [JOBS, FAILURES]
    .map((table) => `${selectFrom(database, table)}, embedding_vector from ${table} where ${isIt}`)
    .join(" union all ");
  const rows = await database.query({ name: "embeddings.read", sql }, [dialect.keys(ids)]);
  const jobs = new Map(
    rows.map((row) => [
      String(row.id),
      { ...jobOf(row), embedding_vector: fromStored(row.embedding_vector) ?? null },
    ]),
  );
  return ids.flatMap((id) => jobs.get(id.toLowerCase()) ?? []);
}

/** Newest first, with the beginnings of their texts. Pages by the position of the last job, so that a page never skips or repeats one. */
export async function listJobs(database: Database, options: JobListOptions): Promise<JobPage> {
  const limit = options.limit ?? 100;
  if (!(Number.isInteger(limit) && limit >= 1 && limit <= JOBS_LISTED_MAX))
    throw new QuarryError("invalid_input", `limit must be a whole number from 1 to ${JOBS_LISTED_MAX}`);
  const { mark } = database.dialect;
  const params: unknown[] = [];
  const terms = FILTERS.flatMap((name) =>
    options[name] === undefined ? [] : [`${name} = ${mark(params.push(options[name]))}`],
  );
  if (options.status !== undefined && options.status !== "failed")
    terms.push(`status = ${mark(params.push(options.status))}`);
  if (options.after !== undefined) {
    const [createdAt, id] = decodePosition(options.after, { list: "a list of jobs", isId: isUuid });
    terms.push(`(created_at, id) < (${mark(params.push(createdAt))}, ${mark(params.push(id))})`);
  }
  const isText = database.dialect.name === "postgres" ? "created_at::text" : "created_at";
  const where = `${terms.length > 0 ? `where ${terms.join(" and ")}` : ""} order by created_at desc, id desc limit ${limit + 1}`;
  const halves = tablesOf(options.status).map(
    (table) =>
      `select * from (${selectFrom(database, table, true)}, ${isText} as position from ${table} ${where}) as ${table}_page`,
  );
  const sql = `${halves.join(" union all ")} order by created_at desc, id desc limit ${limit + 1}`;
  const rows = await database.query(sql, params);
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    jobs: shown.map(jobOf),
    next: rows.length > limit && last ? encodeCursor([last.position, last.id]) : undefined,
  };
}

function tablesOf(status: JobStatus | undefined): string[] {
  if (status === undefined) return [JOBS, FAILURES];
  return status === "failed" ? [FAILURES] : [JOBS];
}

function selectFrom(database: Database, table: string, isListed = false): string {
  const never = database.dialect.name === "postgres" ? "null::timestamptz" : "null";
  const columns = JOB_COLUMNS.map((name) =>
    isListed && name === "input_text"
      ? `substr(input_text, 1, ${TEXT_LISTED_CHARS_MAX}) as input_text`
      : name,
  );
  return `select ${columns.join(", ")}, ${table === JOBS ? "run_after" : never} as run_after`;
}

/** Its columns from a row that may have more. */
export function jobOf(row: Row): EmbeddingJob {
  return Object.fromEntries([...JOB_COLUMNS, "run_after"].map((name) => [name, row[name] ?? null])) as never;
}

export function checkedId(id: string, what = "job"): string {
  if (isUuid(id)) return id.toLowerCase();
  throw new QuarryError("invalid_input", `${JSON.stringify(id)} is not the id of a ${what}`);
}
