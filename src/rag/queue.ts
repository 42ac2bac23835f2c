import { QuarryError } from "../errors.ts";
import { defineQueue, type Queue } from "../queue/declaration.ts";
import type { LaneStore } from "../queue/lane-store.ts";
import type { Ticket } from "../queue/outcome.ts";
import { fixedDelays } from "../queue/retry-policy.ts";
import type { JobMessage } from "./message.ts";

/**
 * The queue of the RAG contract, to be read first. Whoever can LPUSH a message gets its document indexed:
 *
 *   rag:ingest:queue and its relatives   messages in line          redis-keys.ts
 *   rag:ingest:job:<id>                  what became of a job      redis-queue.ts, redis-scripts.ts
 *   rag_jobs                             the same in the database: the queue itself where no Redis is configured
 *                                        (database-queue.ts), else the ledger (ledger.ts), from which jobs are queued
 *                                        again that Redis has lost
 *
 * Both are a store of the engine's: lanes claim, renew, settle and release as they do with any queue.
 */
export const JOB_STATES = ["submitted", "queued", "processing", "done", "failed"] as const;
export type JobState = (typeof JOB_STATES)[number];

export const JOB_LEVELS = ["high", "normal", "low"] as const;
export type JobLevel = (typeof JOB_LEVELS)[number];

/** Names of lists that mean something else than a RAG. */
export const RESERVED_RAG_IDS = [...JOB_LEVELS, "dead-letter"] as const;

export const RAG_QUEUE = "rag.jobs";

/** Finished jobs can be asked about for a week. */
export const KEPT_MS = 604_800_000;

export const DEAD_LETTER_DAYS = 30;

/** How a message that is none is reported. */
export const MALFORMED = { error_type: "MessageError", error_code: "ERR_MESSAGE_INVALID" } as const;

/** What a handler is given. Malformed messages never get that far. */
export interface RagPayload {
  /** The JSON text as it was pushed. */
  readonly message: string;
  readonly job: JobMessage;
}

/** Fields that the worker writes about a job while it has it. */
export interface JobReport {
  readonly chunks_created?: number;
  readonly embeddings_generated?: number;
  readonly tokens_used?: number;
  /** For the failure that the handler is about to return; its reason becomes `error`. */
  readonly error_type?: string | null;
  readonly error_code?: string | null;
  readonly suggestions?: readonly string[];
  readonly traceback?: string | null;
  /** The document that the job became. */
  readonly document_id?: string | null;
  /** When the collection was cleared for this job, so that a second try does not clear it again. */
  readonly cleared_at?: string | null;
  /** The file's way out of `incoming/`: recorded before it is gone, so that whoever comes next can finish it. */
  readonly moved_from?: string | null;
  readonly moved_to?: string | null;
  readonly move_state?: string | null;
}

/** A job as the contract shows it; below, what Quarry adds. */
export interface JobStatus {
  readonly job_id: string;
  readonly rag_id: string;
  readonly filename: string;
  readonly status: JobState;
  readonly submitted_at: string;
  readonly started_at: string | null;
  readonly completed_at: string | null;
  readonly failed_at: string | null;
  readonly duration_seconds: number | null;
  readonly chunks_created: number;
  readonly embeddings_generated: number;
  readonly tokens_used: number;
  readonly error: string | null;
  readonly error_type: string | null;
  readonly error_code: string | null;
  readonly suggestions: readonly string[];
  readonly traceback: string | null;
  readonly retry_count: number;
  readonly max_retries: number;

  readonly source_path: string;
  readonly source_type: string;
  readonly submitted_by: string;
  readonly priority: JobLevel;
  /** When a retry is due. */
  readonly run_after: string | null;
  readonly worker_id: string | null;
  readonly document_id: string | null;
  readonly cleared_at: string | null;
  readonly moved_from: string | null;
  readonly moved_to: string | null;
  readonly move_state: string | null;
}

export interface JobListOptions {
  readonly rag_id?: string | undefined;
  readonly status?: JobState | undefined;
  readonly limit?: number | undefined;
  /** The cursor of the page before. */
  readonly after?: string | undefined;
}

export interface JobPage {
  /** Newest first. */
  readonly jobs: readonly JobStatus[];
  readonly next: string | undefined;
}

/** A job that failed for good, or a message that is none. */
export interface DeadLetter {
  /** The job's, or one made for a message that has none. */
  readonly id: string;
  readonly job_id: string | null;
  readonly rag_id: string | null;
  readonly reason: string;
  readonly error_code: string | null;
  readonly failed_at: string;
  /** As it was pushed; cut when it was too long to be a message. */
  readonly message: string;
}

export interface DeadLetterListOptions {
  readonly rag_id?: string | undefined;
  readonly error_code?: string | undefined;
  readonly limit?: number | undefined;
  /** The cursor of the page before. */
  readonly after?: string | undefined;
}

export interface DeadLetterPage {
  /** Newest first. */
  readonly letters: readonly DeadLetter[];
  readonly next: string | undefined;
}

export type DeadLetterChoice = { readonly ids: readonly string[] } | "all";

export interface SubmitOptions {
  readonly priority?: JobLevel | undefined;
  /** Into the RAG's own list, which has its turn beside those of other RAGs. Not together with a priority. */
  readonly own?: boolean | undefined;
}

/** Thrown for a job that Redis does not take now: it is written down, will be queued, and needs its file. */
export class JobKept extends QuarryError {
  constructor(cause: QuarryError, jobId: string) {
    const kept = `job ${jobId} is kept in the database and queued as soon as Redis takes it`;
    super(cause.code, `${cause.message}; ${kept}`, { cause });
  }
}

export interface RagCounts {
  /** Jobs that are not finished. */
  readonly length: number;
  readonly processing: number;
  /** length - processing, those that wait for another try included. */
  readonly queued: number;
  readonly delayed: number;
  readonly deadLetters: number;
  /** When the one failed that will be forgotten next. */
  readonly oldestDeadLetterAt: string | null;
  /** Since a worker was last heard; null when there was none. Connected means less than 5 seconds. */
  readonly lastHeartbeatMsAgo: number | null;
}

export const CONNECTED_WITHIN_MS = 5_000;

export interface RagQueue {
  readonly kind: "redis" | "database";
  /** For people: which Redis or database, without secrets. */
  readonly place: string;
  /** For the lane's declaration (`queue` and `store`) and for janitors. */
  readonly store: LaneStore<RagPayload>;

  /** "known": a job of this id is in line, runs or is done already. One that failed is run anew. */
  submit(message: JobMessage, options?: SubmitOptions): Promise<"queued" | "known">;
  /** Writes about a running job. False: the lease is lost, nothing was written. */
  report(ticket: Ticket, fields: JobReport): Promise<boolean>;
  read(jobId: string): Promise<JobStatus | undefined>;
  list(options?: JobListOptions): Promise<JobPage>;
  counts(): Promise<RagCounts>;

  deadLetters(options?: DeadLetterListOptions): Promise<DeadLetterPage>;
  /** Puts them back into line with fresh counters. Returns how many. */
  redrive(which: DeadLetterChoice): Promise<number>;
  /** Deletes them. Returns how many. */
  purge(which: DeadLetterChoice): Promise<number>;
  close(): Promise<void>;
}

/** The declaration over `rag_jobs`; a Redis store keeps to its words, waits and limits. */
export function ragQueue(settings: { staleMs: number; deadLetterDays?: number }): Queue<RagPayload> {
  const { staleMs, deadLetterDays = DEAD_LETTER_DAYS } = settings;
  return defineQueue<{ message: string }>({
    name: RAG_QUEUE,
    table: "rag_jobs",
    key: { column: "job_id", type: "text" },
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
      finishedAt: "finished_at",
      updatedAt: "updated_at",
      errorAt: "last_error_at",
    },
    statuses: { pending: "queued", running: "processing", done: "done", failed: "failed" },
    // The contract's rule: again while retry_count < max_retries. A job always gets one run, whatever it says.
    attempts: { count: "failures", max: "attempts_max" },
    lease: { ms: staleMs },
    order: ["turn"],
    retry: fixedDelays(5_000, 10_000, 30_000),
    reads: ["message"],
    results: ["chunks_created", "embeddings_generated", "tokens_used", "document_id"],
    retention: { doneMs: KEPT_MS, failedMs: deadLetterDays * 86_400_000 },
  }) as Queue<object> as Queue<RagPayload>;
}
