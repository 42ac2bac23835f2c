import type { Database, Row, Statement } from "../database/database.ts";
import type { Queue } from "../queue/declaration.ts";
import type { PruneOptions } from "../queue/lane-store.ts";
import type { Claim, Settlement } from "../queue/outcome.ts";
import type { Key } from "../queue/roll-up.ts";
import { openQueue, type QueueStore } from "../queue/store.ts";
import { JobRows, MESSAGE_COLUMNS, messageColumns } from "./job-rows.ts";
import { lineNamed } from "./lines.ts";
import type { JobStatus, RagPayload } from "./queue.ts";

/** A claim, and the list that it was taken from. */
export interface JobClaim extends Claim<RagPayload> {
  readonly key: string;
  readonly list: string;
}

/** An open job as it would be queued again. */
export interface OpenJob {
  readonly job_id: string;
  readonly message: string;
  readonly list: string;
  readonly rag_id: string;
  readonly filename: string;
  readonly submitted_at: string;
  readonly retry_count: number;
  readonly max_retries: number;
  /** Until its next try is due. */
  readonly delayMs: number;
  /** Where the next page begins. */
  readonly position: readonly [createdAt: string, jobId: string];
}

/** A job that failed for good, as its dead letter would be written again. */
export interface FailedJob extends Omit<OpenJob, "delayMs"> {
  readonly started_at: string;
  readonly failed_at: string;
  readonly error: string;
  readonly error_type: string;
  readonly error_code: string;
}

interface Taken {
  readonly claim: JobClaim;
  readonly worker: string;
  /** On the monotonic clock. */
  readonly takenAt: number;
}

/**
 * What happens is written down together, this much later at most: every commit writes most of the index of job ids, which
 * are in no order. Should this process end before, Redis knows, and the restorer brings the ledger up to date.
 */
const WRITTEN_WITHIN_MS = 250;
/** Jobs that are older than this are written down with the oldest, whose time has come. */
const TOGETHER_FROM_MS = 150;
const WRITTEN_AT_ONCE = 2_500;
const UNWRITTEN_MAX = 10_000;

/**
 * What the database knows of the jobs in Redis. Redis decides, and the ledger is told: its rows are those of the same
 * queue over a table, so that what it is told is what the engine would have written, and Redis can be left at any time.
 */
export class Ledger {
  readonly rows: JobRows;
  readonly #database: Database;
  readonly #table: QueueStore<object>;
  readonly #notes = new Map<string, Statement>();
  /** In the hands of workers here, and what Redis has decided; not written down yet. */
  readonly #taken = new Map<Key, Taken>();
  readonly #decided: Settlement[] = [];
  #writing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #id: Promise<string> | undefined;

  constructor(database: Database, queue: Queue<RagPayload>) {
    this.#database = database;
    this.#table = openQueue<object>(database, queue);
    this.rows = new JobRows(database, queue);
  }

  /** By which a Redis remembers that it knows the open jobs of this database. */
  id(): Promise<string> {
    this.#id ??= this.#database
      .query({ name: "rag.ledger", sql: "select id from rag_ledger" })
      .then(([row]) => String(row!.id));
    // An answer that was not given is asked for again.
    this.#id.catch(() => {
      this.#id = undefined;
    });
    return this.#id;
  }

  /** These are in a worker's hands now. Returns those that were done before, of which Redis has no memory. */
  async take(claims: readonly JobClaim[], worker: string): Promise<Set<string>> {
    const { dialect } = this.#database;
    const sql = `select job_id from rag_jobs where ${dialect.isOneOf("job_id", 1, "text")} and ${dialect.check("status = 'done'")}`;
    const keys = claims.map(({ key }) => key);
    const rows = await this.#database.query({ name: "rag.done", sql }, [dialect.keys(keys)]);
    const done = new Set(rows.map((row) => String(row.job_id)));
    const takenAt = this.#database.clock.monotonic();
    for (const claim of claims) {
      // At the end, so that the oldest are first.
      this.#taken.delete(claim.key);
      if (!done.has(claim.key)) this.#taken.set(claim.key, { claim, worker, takenAt });
    }
    this.#flushSoon();
    return done;
  }

  /** What Redis has decided about claims. Jobs that were over before they were written down can wait for others. */
  async settle(settlements: readonly Settlement[]): Promise<void> {
    const isShort = settlements.every(({ claim }) => this.#taken.get(claim.key)?.claim.token === claim.token);
    if (isShort && this.#decided.length + settlements.length < UNWRITTEN_MAX) {
      this.#decided.push(...settlements);
      this.#flushSoon();
      return;
    }
    // While the database is away, the same ones come again and again.
    const noted = new Set(this.#decided.map(nameOf));
    this.#decided.push(...settlements.filter((settlement) => !noted.has(nameOf(settlement))));
    await this.flush();
  }

  /** Writes down what was taken and decided, now. */
  flush(): Promise<void> {
    return this.#flush(Number.POSITIVE_INFINITY);
  }

  /** Of what is in hands still, only what was taken until then: most of the rest will be over when its time comes. */
  async #flush(takenUntil: number): Promise<void> {
    while (this.#writing) await this.#writing.catch(() => undefined);
    if (this.#taken.size === 0 && this.#decided.length === 0) return;
    this.#writing = this.#write(takenUntil).finally(() => {
      this.#writing = undefined;
    });
    await this.#writing;
  }

  /** Nothing is forgotten before it is written: while the database is away, it is tried again. */
  async #write(takenUntil: number): Promise<void> {
    // In commits of one size: those of a few rows cost almost as much.
    const commits = Math.ceil(this.#decided.length / WRITTEN_AT_ONCE);
    const size = Math.ceil(this.#decided.length / commits);
    while (this.#decided.length > 0) {
      const decided = this.#decided.slice(0, size);
      await this.#writeDecided(decided);
      this.#decided.splice(0, decided.length);
    }
    const due: Taken[] = [];
    for (const taken of this.#taken.values()) {
      if (taken.takenAt > takenUntil) break;
      due.push(taken);
    }
    await this.#insert(due, "processing");
  }

  /** A job that is done before it was written down costs one write; one that was given back, none. */
  async #writeDecided(decided: readonly Settlement[]): Promise<void> {
    const ended: Taken[] = [];
    const begun: Taken[] = [];
    const others: Settlement[] = [];
    for (const settlement of decided) {
      const { claim, outcome } = settlement;
      const taken = this.#taken.get(claim.key);
      if (taken?.claim.token !== claim.token) others.push(settlement);
      else if (outcome.kind === "released") this.#taken.delete(claim.key);
      else if (outcome.kind === "done" && !outcome.result) ended.push(taken);
      else {
        begun.push(taken);
        others.push(settlement);
      }
    }
    await this.#insert(ended, "done");
    await this.#insert(begun, "processing");
    if (others.length > 0) await this.#table.settle(others);
  }

  async #insert(taken: readonly Taken[], status: "processing" | "done"): Promise<void> {
    if (taken.length === 0) return;
    await this.#database.transaction(async (transaction) => {
      for (const part of inParts(taken)) {
        const params: unknown[] = [this.#database.now()];
        for (const one of part) addValues(params, one);
        await transaction.query(this.#note(part.length, status), params);
      }
    });
    for (const one of taken) if (this.#taken.get(one.claim.key) === one) this.#taken.delete(one.claim.key);
  }

  #flushSoon(): void {
    if (this.#taken.size === 0 && this.#decided.length === 0) return;
    const { clock } = this.#database;
    const [oldest] = this.#taken.values();
    const ageMs = oldest ? clock.monotonic() - oldest.takenAt : 0;
    this.#timer ??= setTimeout(
      () => {
        this.#timer = undefined;
        void this.#flush(clock.monotonic() - TOGETHER_FROM_MS)
          .catch(() => undefined)
          .then(() => this.#flushSoon());
      },
      Math.max(WRITTEN_WITHIN_MS - TOGETHER_FROM_MS, WRITTEN_WITHIN_MS - ageMs),
    );
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.flush().catch(() => undefined);
  }

  #note(rows: number, status: "processing" | "done"): Statement {
    const name = `rag.${status}${rows}`;
    const known = this.#notes.get(name);
    if (known) return known;
    const statement = {
      name,
      sql: noteSql(this.#database, { rows, status, leaseMs: this.#table.queue.lease.ms }),
    };
    this.#notes.set(name, statement);
    return statement;
  }

  /** Jobs that failed are in line again. */
  async retry(jobIds: readonly string[]): Promise<void> {
    await this.#table.retry(jobIds);
  }

  prune(options: PruneOptions): Promise<number> {
    return this.#table.prune(options);
  }

  /** Oldest first. $1 now, $2 and $3 where the page before ended. */
  async open(options: { limit: number; after?: OpenJob["position"] | undefined }): Promise<OpenJob[]> {
    const { dialect } = this.#database;
    const { now, mark } = dialect;
    const isPostgres = dialect.name === "postgres";
    const waitMs = isPostgres
      ? `extract(epoch from run_after - ${now}) * 1000`
      : `(julianday(run_after) - julianday(${now})) * 86400000`;
    const isAfter = options.after ? `and (created_at, job_id) > (${mark(2)}, ${mark(3)})` : "";
    const sql = `select job_id, message, list, rag_id, filename, submitted_at, retry_count, max_retries, case when status = 'queued' then ${waitMs} end as wait_ms, ${isPostgres ? "created_at::text" : "created_at"} as position from rag_jobs where status in ('submitted', 'queued', 'processing') ${isAfter} order by created_at, job_id limit ${options.limit}`;
    const rows = await this.#database.query(sql, [this.#database.now(), ...(options.after ?? [])]);
    return rows.map(openJobOf);
  }

  /** Newest first. $1 and $2 where the page before ended. */
  async failed(options: { limit: number; after?: FailedJob["position"] | undefined }): Promise<FailedJob[]> {
    const { mark, name } = this.#database.dialect;
    const isAfter = options.after ? `and (finished_at, job_id) < (${mark(1)}, ${mark(2)})` : "";
    const position = name === "postgres" ? "finished_at::text" : "finished_at";
    const sql = `select job_id, message, list, rag_id, filename, submitted_at, retry_count, max_retries, started_at, failed_at, error, error_type, error_code, ${position} as position from rag_jobs where status = 'failed' ${isAfter} order by finished_at desc, job_id desc limit ${options.limit}`;
    const rows = await this.#database.query(sql, [...(options.after ?? [])]);
    return rows.map(failedJobOf);
  }

  /** Open jobs that Redis knows to be finished. */
  async mirror(finished: readonly (JobStatus & { lease_token: number })[]): Promise<void> {
    const { now, mark } = this.#database.dialect;
    const set = MIRRORED.map((name, index) => `${name} = ${mark(index + 4)}`);
    const sql = `update rag_jobs set ${set.join(", ")}, updated_at = ${now}, run_after = null, lease_until = null, worker_id = null where job_id = ${mark(2)} and lease_token <= ${mark(3)} and status in ('submitted', 'queued', 'processing')`;
    for (const job of finished) {
      const values = MIRRORED.map((name) =>
        name === "finished_at" ? (job.completed_at ?? job.failed_at) : job[name],
      );
      await this.#database.query({ name: "rag.mirror", sql }, [
        this.#database.now(),
        job.job_id,
        job.lease_token,
        ...values,
      ]);
    }
  }
}

const MIRRORED = [
  ...(["status", "started_at", "finished_at", "retry_count", "error", "error_type", "error_code"] as const),
  ...(["chunks_created", "embeddings_generated", "tokens_used"] as const),
] as const;

/** A few sizes, so that there are a few statements. */
const PARTS = [50, 10, 1];

function* inParts(taken: readonly Taken[]): Generator<readonly Taken[]> {
  for (let start = 0; start < taken.length; ) {
    const size = PARTS.find((some) => some <= taken.length - start)!;
    yield taken.slice(start, start + size);
    start += size;
  }
}

const NOTED = [...MESSAGE_COLUMNS, "lease_token", "worker_id"] as const;

/** In the order of NOTED. */
function addValues(params: unknown[], { claim, worker }: Taken): void {
  const { row, list, attempt, attemptsMax, token } = claim;
  const said = messageColumns({ job: row.job, message: row.message, line: lineNamed(list) });
  said.retry_count = attempt - 1;
  said.attempts_max = attemptsMax;
  for (const name of MESSAGE_COLUMNS) params.push(said[name]);
  params.push(token, worker);
}

interface Note {
  readonly rows: number;
  readonly status: "processing" | "done";
  readonly leaseMs: number;
}

/** $1 now, then the values of each row. A job that is done, or that a newer claim has, is left as it is. */
function noteSql({ dialect }: Database, { rows, status, leaseMs }: Note): string {
  const { now } = dialect;
  const isDone = status === "done";
  const shared: Record<string, string> = {
    status: `'${status}'`,
    started_at: now,
    // Nobody renews it here; whoever goes on without Redis finds it expired.
    lease_until: isDone ? "null" : dialect.shift(now, String(leaseMs)),
    finished_at: isDone ? now : "null",
    created_at: now,
    updated_at: now,
  };
  const columns = [...Object.keys(shared), ...NOTED];
  // SQLite looks for a numbered parameter among all before it; one without a number follows the last, which is "now".
  const mark = (position: number) => (dialect.name === "sqlite" ? "?" : dialect.mark(position));
  const values = Array.from({ length: rows }, (_, row) => {
    const own = NOTED.map((_name, position) => mark(2 + row * NOTED.length + position));
    return `(${[...Object.values(shared), ...own].join(", ")})`;
  });
  const again = columns
    .filter((name) => name !== "job_id" && name !== "created_at")
    .map((name) => `${name} = excluded.${name}`);
  const cleared = ["run_after", ...(isDone ? ["error"] : [])].map((name) => `${name} = null`);
  return `insert into rag_jobs (${columns.join(", ")}) values ${values.join(", ")} on conflict (job_id) do update set ${[...again, ...cleared].join(", ")} where rag_jobs.status <> 'done' and rag_jobs.lease_token < excluded.lease_token`;
}

function openJobOf(row: Row): OpenJob {
  return { ...knownOf(row), delayMs: Math.max(0, Math.round(Number(row.wait_ms ?? 0))) };
}

function failedJobOf(row: Row): FailedJob {
  const text = (name: string) => String(row[name] ?? "");
  return {
    ...knownOf(row),
    started_at: text("started_at"),
    failed_at: text("failed_at"),
    error: text("error"),
    error_type: text("error_type"),
    error_code: text("error_code"),
  };
}

function knownOf(row: Row): Omit<OpenJob, "delayMs"> {
  return {
    job_id: String(row.job_id),
    message: String(row.message),
    list: String(row.list),
    rag_id: String(row.rag_id),
    filename: String(row.filename),
    submitted_at: String(row.submitted_at),
    retry_count: Number(row.retry_count),
    max_retries: Number(row.max_retries),
    position: [String(row.position), String(row.job_id)],
  };
}

function nameOf({ claim }: Settlement): string {
  return `${claim.key} ${claim.token}`;
}
