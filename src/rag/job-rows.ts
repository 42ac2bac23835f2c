import { decodePosition, encodeCursor } from "../database/cursor.ts";
import type { Database, Row, Statement } from "../database/database.ts";
import { literal } from "../database/dialect.ts";
import { QuarryError } from "../errors.ts";
import type { Queue } from "../queue/declaration.ts";
import type { Ticket } from "../queue/outcome.ts";
import { predicatesOf } from "../queue/predicates.ts";
import { cleanText, errorText } from "../queue/text.ts";
import type { Line } from "./lines.ts";
import { COSTS, NORMAL_COST } from "./lines.ts";
import type { JobMessage } from "./message.ts";
import type {
  DeadLetter,
  DeadLetterChoice,
  DeadLetterListOptions,
  DeadLetterPage,
  JobListOptions,
  JobPage,
  JobReport,
  JobStatus,
  RagCounts,
} from "./queue.ts";

export const JOBS_LISTED_MAX = 1_000;

/** What a message says, in columns. */
export interface JobRow {
  readonly job: JobMessage;
  /** As it was pushed. */
  readonly message: string;
  readonly line: Line;
}

export const MESSAGE_COLUMNS = [
  "job_id",
  "rag_id",
  "source_path",
  "source_type",
  "filename",
  "submitted_at",
  "submitted_by",
  "priority",
  "list",
  "message",
  "retry_count",
  "max_retries",
  "attempts_max",
] as const;

const STATUS_COLUMNS = [
  ...MESSAGE_COLUMNS.filter((name) => !["list", "message", "attempts_max"].includes(name)),
  ...["status", "started_at", "completed_at", "failed_at", "duration_seconds"],
  ...["chunks_created", "embeddings_generated", "tokens_used"],
  ...["error", "error_type", "error_code", "suggestions", "traceback"],
  ...["run_after", "worker_id", "document_id", "cleared_at", "moved_from", "moved_to", "move_state"],
];

const REPORTED = [
  ...["chunks_created", "embeddings_generated", "tokens_used"],
  ...["error_type", "error_code", "suggestions", "traceback"],
  ...["document_id", "cleared_at", "moved_from", "moved_to", "move_state"],
] as const;

/** The table `rag_jobs`, whichever way its jobs are queued. */
export class JobRows {
  readonly database: Database;
  readonly #submit: Statement;

  constructor(database: Database, queue: Queue<object>) {
    this.database = database;
    this.#submit = { name: "rag.submit", sql: submitSql(database, queue) };
  }

  /** False: a job of this id is open or done. One that failed starts anew. */
  async submit(row: JobRow): Promise<boolean> {
    const rows = await this.database.query(this.#submit, [
      this.database.now(),
      JSON.stringify([messageColumns(row)]),
      row.line.name,
    ]);
    return rows.length > 0;
  }

  /** Writes about a job that this ticket still holds. */
  async report(ticket: Ticket, fields: JobReport): Promise<boolean> {
    const { now, mark } = this.database.dialect;
    const given = REPORTED.filter((name) => fields[name as keyof JobReport] !== undefined);
    const set = given.map((name, index) => `${name} = ${mark(index + 4)}`);
    const sql = `update rag_jobs set ${[...set, `updated_at = ${now}`].join(", ")} where job_id = ${mark(2)} and lease_token = ${mark(3)} and status = 'processing' returning job_id`;
    const values = given.map((name) => stored(fields[name as keyof JobReport]));
    const params = [this.database.now(), ticket.key, ticket.token, ...values];
    return (await this.database.query(sql, params)).length > 0;
  }

  async read(jobId: string): Promise<JobStatus | undefined> {
    const sql = `select ${STATUS_COLUMNS.join(", ")} from rag_jobs where job_id = ${this.database.dialect.mark(1)}`;
    const [row] = await this.database.query({ name: "rag.read", sql }, [jobId]);
    return row && statusOf(row);
  }

  /** Newest first. Pages by the position of the last job, so that a page never skips or repeats one. */
  async list(options: JobListOptions = {}): Promise<JobPage> {
    const limit = checkedLimit(options.limit);
    const params: unknown[] = [];
    const terms = this.#equal(["rag_id", "status"], options, params);
    if (options.after !== undefined) terms.push(this.#isBefore("created_at", options.after, params));
    const rows = await this.#page({ by: "created_at", terms, params, limit });
    return { jobs: rows.shown.map(statusOf), next: rows.next };
  }

  async deadLetters(options: DeadLetterListOptions = {}): Promise<DeadLetterPage> {
    const limit = checkedLimit(options.limit);
    const params: unknown[] = [];
    const terms = ["status = 'failed'", ...this.#equal(["rag_id", "error_code"], options, params)];
    if (options.after !== undefined) terms.push(this.#isBefore("finished_at", options.after, params));
    const rows = await this.#page({ by: "finished_at", terms, params, limit });
    return { letters: rows.shown.map(letterOf), next: rows.next };
  }

  async countDead(): Promise<Pick<RagCounts, "deadLetters" | "oldestDeadLetterAt">> {
    const sql = "select count(*) as count, min(finished_at) as oldest from rag_jobs where status = 'failed'";
    const [row] = await this.database.query({ name: "rag.dead", sql });
    const oldest = row!.oldest === null ? null : String(row!.oldest);
    return { deadLetters: Number(row!.count), oldestDeadLetterAt: oldest };
  }

  /** Forgets jobs that failed. */
  async purge(which: DeadLetterChoice): Promise<number> {
    const { dialect } = this.database;
    const isMeant = which === "all" ? "true" : dialect.isOneOf("job_id", 1, "text");
    const sql = `delete from rag_jobs where status = 'failed' and ${isMeant} returning job_id`;
    return (await this.database.query(sql, which === "all" ? [] : [dialect.keys(which.ids)])).length;
  }

  /** What a list is asked for, column by column. */
  #equal<Name extends string>(
    names: readonly Name[],
    wanted: Readonly<Partial<Record<Name, unknown>>>,
    params: unknown[],
  ): string[] {
    const { mark } = this.database.dialect;
    const given = names.filter((name) => wanted[name] !== undefined);
    return given.map((name) => `${name} = ${mark(params.push(wanted[name]))}`);
  }

  #isBefore(column: string, cursor: string, params: unknown[]): string {
    const { mark } = this.database.dialect;
    const [time, id] = decodePosition(cursor, { list: "a list of jobs" });
    return `(${column}, job_id) < (${mark(params.push(time))}, ${mark(params.push(id))})`;
  }

  async #page(page: { by: string; terms: readonly string[]; params: readonly unknown[]; limit: number }) {
    const { by, terms, params, limit } = page;
    const position = this.database.dialect.name === "postgres" ? `${by}::text` : by;
    const where = terms.length > 0 ? `where ${terms.join(" and ")}` : "";
    const sql = `select ${STATUS_COLUMNS.join(", ")}, message, ${position} as position from rag_jobs ${where} order by ${by} desc, job_id desc limit ${limit + 1}`;
    const rows = await this.database.query(sql, params);
    const shown = rows.slice(0, limit);
    const last = shown.at(-1);
    const next = rows.length > limit && last ? encodeCursor([last.position, last.job_id]) : undefined;
    return { shown, next };
  }
}

export function messageColumns({
  job,
  message,
  line,
}: JobRow): Record<(typeof MESSAGE_COLUMNS)[number], unknown> {
  return {
    job_id: job.job_id,
    rag_id: cleanText(job.rag_id),
    source_path: cleanText(job.source_path),
    source_type: cleanText(job.source_type),
    filename: cleanText(job.filename),
    submitted_at: job.submitted_at,
    submitted_by: cleanText(job.submitted_by),
    priority: line.level,
    list: line.name,
    message,
    retry_count: job.retry_count,
    max_retries: job.max_retries,
    attempts_max: attemptsMaxOf(job),
  };
}

/** Every job is run once, also one that says that its retries are spent. */
export function attemptsMaxOf(job: Pick<JobMessage, "retry_count" | "max_retries">): number {
  return Math.max(job.max_retries, job.retry_count + 1);
}

/**
 * $1 now, $2 rows, $3 the list. A job's place is one step behind the last of its list, but never before what was
 * served already: lists take turns, and a step is longer the less urgent the list is.
 */
function submitSql(database: Database, queue: Queue<object>): string {
  const { dialect } = database;
  const source = dialect.recordset("rag_jobs", 2);
  const list = dialect.param(3, "text");
  const last = `select max(w.turn) from rag_jobs as w where w.list = ${list} and w.status = 'queued'`;
  const head = `select q.turn - ${costOf("q.list")} from rag_jobs as q where ${predicatesOf(queue as Queue, "q").ready} order by q.turn limit 1`;
  const served =
    "select max(s.turn) from rag_jobs as s where s.status in ('processing', 'done', 'failed') and s.turn > 0";
  const [behind, ahead, begun] = [last, head, served].map((turn) => `coalesce((${turn}), 0)`);
  const start = dialect.greatest(behind!, dialect.greatest(ahead!, begun!));
  const values: Record<string, string> = {
    ...Object.fromEntries(MESSAGE_COLUMNS.map((name) => [name, source.column(name, "plain")])),
    turn: `${start} + ${costOf(list)}`,
    status: "'queued'",
    // A job that was forgotten may come back; its tokens must not.
    lease_token: dialect.random,
    created_at: dialect.now,
    updated_at: dialect.now,
  };
  const again = [
    ...[...MESSAGE_COLUMNS, "turn", "status", "updated_at"]
      .filter((name) => name !== "job_id")
      .map((name) => `${name} = excluded.${name}`),
    "lease_token = rag_jobs.lease_token + 1",
    ...CLEARED.map((name) => `${name} = null`),
    ...["chunks_created", "embeddings_generated", "tokens_used"].map((name) => `${name} = 0`),
  ];
  return `insert into rag_jobs (${Object.keys(values).join(", ")}) select ${Object.values(values).join(", ")} from ${source.from} where ${dialect.now} is not null on conflict (job_id) do update set ${again.join(", ")} where rag_jobs.status = 'failed' returning job_id`;
}

/** What a run that ended has left, and a new one does not have. */
const CLEARED = [
  ...["started_at", "finished_at", "run_after", "lease_until", "worker_id"],
  ...["error", "error_type", "error_code", "suggestions", "traceback"],
];

function costOf(list: string): string {
  const cases = Object.entries(COSTS).map(([name, cost]) => `when ${literal(name)} then ${cost}`);
  return `case ${list} ${cases.join(" ")} else ${NORMAL_COST} end`;
}

function stored(value: JobReport[keyof JobReport]): unknown {
  if (Array.isArray(value)) return listJson(value);
  return typeof value === "string" ? errorText(value) : (value ?? null);
}

/** Advice is short; whatever is not is cut, so that it stays a list. */
export function listJson(texts: readonly string[]): string {
  return JSON.stringify(texts.slice(0, 20).map((text) => cleanText(text.slice(0, 300))));
}

function statusOf(row: Row): JobStatus {
  const number = (name: string) => Number(row[name] ?? 0);
  // An earlier try may have failed; that is over.
  const isDone = row.status === "done";
  return {
    ...(Object.fromEntries(STATUS_COLUMNS.map((name) => [name, row[name] ?? null])) as never as JobStatus),
    chunks_created: number("chunks_created"),
    embeddings_generated: number("embeddings_generated"),
    tokens_used: number("tokens_used"),
    suggestions: isDone ? [] : suggestionsOf(row.suggestions),
    ...(isDone && { error_type: null, error_code: null, traceback: null }),
  };
}

export function suggestionsOf(value: unknown): string[] {
  try {
    const parsed = JSON.parse(String(value ?? "[]"));
    return Array.isArray(parsed) ? parsed.map(String) : [];
  } catch {
    return [];
  }
}

function letterOf(row: Row): DeadLetter {
  return {
    id: String(row.job_id),
    job_id: String(row.job_id),
    rag_id: String(row.rag_id),
    reason: String(row.error ?? "no reason was given"),
    error_code: row.error_code === null ? null : String(row.error_code),
    failed_at: String(row.failed_at),
    message: String(row.message),
  };
}

export function checkedLimit(limit = 100): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= JOBS_LISTED_MAX) return limit;
  throw new QuarryError("invalid_input", `limit must be a whole number from 1 to ${JOBS_LISTED_MAX}`);
}
