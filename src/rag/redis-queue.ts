import type { Database } from "../database/database.ts";
import { isQuarryError } from "../errors.ts";
import { type Log, silentLog } from "../log.ts";
import type { Queue } from "../queue/declaration.ts";
import { errorText } from "../queue/text.ts";
import { Beat } from "./beat.ts";
import { listJson, suggestionsOf } from "./job-rows.ts";
import { Ledger } from "./ledger.ts";
import { letterOf, listLetters } from "./letters.ts";
import { lineOf } from "./lines.ts";
import type { JobMessage } from "./message.ts";
import {
  type DeadLetterChoice,
  JobKept,
  type JobLevel,
  type JobReport,
  type JobState,
  type JobStatus,
  type RagCounts,
  type RagPayload,
  type RagQueue,
  type SubmitOptions,
} from "./queue.ts";
import { jobKey, KEYS } from "./redis-keys.ts";
import { UNBURY } from "./redis-letter-scripts.ts";
import { RedisLink } from "./redis-link.ts";
import { BEAT, COUNT, ENTER, REPORT } from "./redis-scripts.ts";
import { RedisStore } from "./redis-store.ts";
import { enterArgs, Restorer } from "./restorer.ts";
import { Watch } from "./watch.ts";

const UNBURIED_AT_ONCE = 200;

export interface RedisQueueSettings {
  /** redis:// or rediss://, with password and database number where needed. */
  readonly url: string;
  readonly database: Database;
  readonly queue: Queue<RagPayload>;
  /** RAGs whose own lists are served from the start. */
  readonly ragIds?: readonly string[];
  readonly log?: Log;
  /** Only for tests: what scripts take as the time, in ms. */
  readonly now?: () => number;
}

/** Connects when it is first asked for something, so that what needs no Redis works without it. */
export function openRedisQueue(settings: RedisQueueSettings): RagQueue {
  return new RedisQueue(settings);
}

class RedisQueue implements RagQueue {
  readonly kind = "redis";
  readonly place: string;
  readonly store: RedisStore;
  readonly #link: RedisLink;
  readonly #ledger: Ledger;
  readonly #watch: Watch;
  readonly #beat: Beat;
  readonly #now: () => string;

  constructor(settings: RedisQueueSettings) {
    const { url, database, queue, log = silentLog } = settings;
    const now = () => (settings.now ? String(settings.now()) : "");
    const ledger = new Ledger(database, queue);
    const link = new RedisLink({ url, log, onReady: () => restorer.cameBack() });
    const readJob = (jobId: string) => this.#readHash(jobId);
    const restorer = new Restorer({ link, ledger, log, now, readJob, clock: database.clock });
    const watch = new Watch({ url, log, link, ragIds: settings.ragIds ?? [] });
    const beat = new Beat((worker) => link.run(BEAT, [now(), worker]));
    this.place = link.place;
    this.store = new RedisStore({
      link,
      queue,
      ledger,
      restorer,
      watch,
      beat,
      clock: database.clock,
      log,
      now,
    });
    this.#link = link;
    this.#ledger = ledger;
    this.#watch = watch;
    this.#beat = beat;
    this.#now = now;
  }

  /** Into the ledger first: what was accepted once is queued again should Redis lose it. */
  async submit(job: JobMessage, options: SubmitOptions = {}): Promise<"queued" | "known"> {
    const line = lineOf(job.rag_id, options);
    const message = JSON.stringify(job);
    await this.#link.open();
    await this.#ledger.flush();
    const isNew = await this.#ledger.rows.submit({ job, message, line });
    if (!isNew && (await this.#ledger.rows.read(job.job_id))?.status === "done") return "known";
    const args = enterArgs({ ...job, message, list: line.name, delayMs: 0 });
    const before = await this.#enter(isNew ? "submit" : "restore", args).catch((error) => {
      throw isQuarryError(error) ? new JobKept(error, job.job_id) : error;
    });
    if (before === "done") await this.#ledger.mirror([(await this.#readHash(job.job_id))!]);
    return isNew && before === "" ? "queued" : "known";
  }

  async #enter(how: "submit" | "restore", args: readonly (string | number)[]): Promise<string> {
    const [before] = (await this.#link.run(ENTER, [this.#now(), how, ...args])) as [string];
    return before;
  }

  async report({ key, token }: { key: string | number; token: number }, fields: JobReport): Promise<boolean> {
    const shown = SHOWN.flatMap((name) => {
      const value = fields[name];
      return value === undefined ? [] : [name, hashValue(value)];
    });
    const isHeld = await this.#link.run(REPORT, [this.#now(), key, token, ...shown]);
    if (isHeld !== 1) return false;
    await this.#ledger.flush();
    return this.#ledger.rows.report({ key, token }, fields);
  }

  /** Redis knows best; the ledger knows what the contract does not, and remembers longer. */
  async read(jobId: string): Promise<JobStatus | undefined> {
    await this.#ledger.flush();
    const [hash, row] = [await this.#readHash(jobId), await this.#ledger.rows.read(jobId)];
    if (!hash || !row) return hash ?? row;
    const { lease_token: _, ...fromRedis } = hash;
    const known = Object.entries(fromRedis).filter(([name, value]) => value !== null && !LEDGERED.has(name));
    const cleared = CLEARED.filter((name) => fromRedis[name] === null).map((name) => [name, null]);
    return { ...row, ...Object.fromEntries([...known, ...cleared]) } as JobStatus;
  }

  list: RagQueue["list"] = async (options) => {
    await this.#ledger.flush();
    return this.#ledger.rows.list(options);
  };

  async counts(): Promise<RagCounts> {
    await this.#watch.findLines();
    const [waiting, processing, delayed, deadLetters, oldest, silence] = (await this.#link.run(COUNT, [
      this.#now(),
      ...this.#watch.lines,
    ])) as [number, number, number, number, string, string];
    const queued = waiting + delayed;
    return {
      length: queued + processing,
      processing,
      queued,
      delayed,
      deadLetters,
      oldestDeadLetterAt: letterOf(oldest).failed_at || null,
      lastHeartbeatMsAgo: silence === "" ? null : Number(silence),
    };
  }

  deadLetters: RagQueue["deadLetters"] = (options) => listLetters(this.#link, options);

  async redrive(which: DeadLetterChoice): Promise<number> {
    await this.#ledger.flush();
    const moved = await this.#unbury("redrive", which);
    await this.#ledger.retry(moved);
    return moved.length;
  }

  async purge(which: DeadLetterChoice): Promise<number> {
    await this.#ledger.flush();
    const gone = await this.#unbury("purge", which);
    await this.#ledger.rows.purge({ ids: gone });
    return gone.length;
  }

  /** No further than the list was long: what comes back while this goes on is left for the next time. */
  async #unbury(verb: "redrive" | "purge", which: DeadLetterChoice): Promise<string[]> {
    const moved: string[] = [];
    const take = async (args: readonly (string | number)[]) => {
      const [count, ids] = (await this.#link.run(UNBURY, [this.#now(), verb, ...args])) as [number, string[]];
      moved.push(...ids);
      return count;
    };
    if (which !== "all") {
      for (let start = 0; start < which.ids.length; start += UNBURIED_AT_ONCE)
        await take([0, ...which.ids.slice(start, start + UNBURIED_AT_ONCE)]);
      return moved;
    }
    for (let left = Number(await this.#link.command("LLEN", KEYS.deadLetter)); left > 0; ) {
      const count = await take([Math.min(left, UNBURIED_AT_ONCE)]);
      left -= count;
      if (count === 0) break;
    }
    return moved;
  }

  async close(): Promise<void> {
    this.#beat.stop();
    await this.#watch.close();
    await this.#ledger.close();
    await this.#link.close();
  }

  async #readHash(jobId: string): Promise<(JobStatus & { lease_token: number }) | undefined> {
    const fields = new Map(Object.entries((await this.#link.command("HGETALL", jobKey(jobId))) as object));
    return fields.size === 0 ? undefined : statusOf(jobId, fields);
  }
}

/** What of a report stands in the job's hash; the rest is between workers and the ledger. */
const SHOWN = [
  ...(["chunks_created", "embeddings_generated", "tokens_used", "document_id"] as const),
  ...(["error_type", "error_code", "suggestions", "traceback"] as const),
] as const;

/** Not in the hash, whatever it shows. */
const LEDGERED: ReadonlySet<string> = new Set([
  ...["source_path", "source_type", "submitted_by", "run_after"],
  ...["cleared_at", "moved_from", "moved_to", "move_state"],
]);

/** Null here says more than what the ledger has. */
const CLEARED = [
  ...(["started_at", "completed_at", "failed_at", "duration_seconds", "error", "error_type"] as const),
  ...(["error_code", "traceback", "worker_id"] as const),
] as const;

function hashValue(value: NonNullable<JobReport[keyof JobReport]> | null): string {
  if (value === null) return "";
  if (typeof value === "number") return String(Math.round(value));
  return typeof value === "string" ? errorText(value) : listJson(value);
}

/** A hash may have been written by anybody. */
function statusOf(jobId: string, fields: ReadonlyMap<string, string>): JobStatus & { lease_token: number } {
  const text = (name: string) => fields.get(name) || null;
  const number = (name: string) => Number(fields.get(name) || 0) || 0;
  return {
    job_id: jobId,
    rag_id: text("rag_id") ?? "",
    filename: text("filename") ?? "",
    status: (text("status") ?? "submitted") as JobState,
    submitted_at: text("submitted_at") ?? "",
    started_at: text("started_at"),
    completed_at: text("completed_at"),
    failed_at: text("failed_at"),
    duration_seconds: text("duration_seconds") === null ? null : number("duration_seconds"),
    chunks_created: number("chunks_created"),
    embeddings_generated: number("embeddings_generated"),
    tokens_used: number("tokens_used"),
    error: text("error"),
    error_type: text("error_type"),
    error_code: text("error_code"),
    suggestions: suggestionsOf(text("suggestions")),
    traceback: text("traceback"),
    retry_count: number("retry_count"),
    max_retries: fields.has("max_retries") ? number("max_retries") : 3,
    source_path: text("source_path") ?? "",
    source_type: text("source_type") ?? "",
    submitted_by: text("submitted_by") ?? "cli",
    priority: (text("priority") ?? "normal") as JobLevel,
    run_after: null,
    worker_id: text("worker_id"),
    document_id: text("document_id"),
    cleared_at: null,
    moved_from: null,
    moved_to: null,
    move_state: null,
    lease_token: number("lease_token"),
  };
}
