import type { Database } from "../database/database.ts";
import type { Queue } from "../queue/declaration.ts";
import { altered, type LaneStore } from "../queue/lane-store.ts";
import type { Claim, Settlement } from "../queue/outcome.ts";
import { openQueue, type QueueStore } from "../queue/store.ts";
import { Beat } from "./beat.ts";
import { JobRows } from "./job-rows.ts";
import { lineOf } from "./lines.ts";
import { type JobMessage, readMessage } from "./message.ts";
import {
  type DeadLetterChoice,
  type JobListOptions,
  type JobReport,
  MALFORMED,
  RAG_QUEUE,
  type RagCounts,
  type RagPayload,
  type RagQueue,
  type SubmitOptions,
} from "./queue.ts";

const REDRIVEN_AT_ONCE = 500;

/** The contract without a Redis: the same jobs, in line in the table `rag_jobs`. */
export function openDatabaseQueue(parts: { database: Database; queue: Queue<RagPayload> }): RagQueue {
  const { database, queue } = parts;
  const table = openQueue<object>(database, queue);
  const rows = new JobRows(database, queue);
  const beat = new Beat((worker) => sayAlive(database, worker));
  const store = jobStore(table, rows, beat);
  return {
    kind: "database",
    place: database.dialect.name === "postgres" ? "PostgreSQL" : "SQLite",
    store,
    submit: async (job: JobMessage, options: SubmitOptions = {}) => {
      const row = { job, message: JSON.stringify(job), line: lineOf(job.rag_id, options) };
      if (!(await rows.submit(row))) return "known";
      database.notify(queue.name);
      return "queued";
    },
    report: (ticket, fields: JobReport) => rows.report(ticket, fields),
    read: (jobId) => rows.read(jobId),
    list: (options?: JobListOptions) => rows.list(options),
    counts: () => countJobs(database, table, rows),
    deadLetters: (options) => rows.deadLetters(options),
    redrive: (which: DeadLetterChoice) => redrive(table, which),
    purge: (which: DeadLetterChoice) => rows.purge(which),
    close: async () => beat.stop(),
  };
}

/** The engine's own store, but for messages that cannot be read: those fail and are never handed out. */
function jobStore(table: QueueStore<object>, rows: JobRows, beat: Beat): LaneStore<RagPayload> {
  return altered(table as LaneStore<object> as LaneStore<RagPayload>, {
    subscribe: (listeners) => {
      beat.add(listeners);
      const unsubscribe = table.subscribe(listeners);
      return () => {
        beat.delete(listeners);
        unsubscribe();
      };
    },
    claim: async (options) => {
      beat.heard(options.worker);
      const claims: Claim<RagPayload>[] = [];
      const malformed: Settlement[] = [];
      for (const claim of await table.claim(options)) {
        const { message } = claim.row as { message: string };
        const { job, problem } = readMessage(message);
        if (job) claims.push({ ...claim, row: { message, job } });
        else malformed.push({ claim, outcome: { kind: "failed", reason: `malformed message: ${problem}` } });
      }
      for (const { claim } of malformed) await rows.report(claim, MALFORMED);
      if (malformed.length > 0) await table.settle(malformed);
      return claims;
    },
  });
}

async function redrive(table: QueueStore<object>, which: DeadLetterChoice): Promise<number> {
  if (which === "all") return table.retryWhere({ status: table.queue.statuses.failed });
  let redriven = 0;
  for (let start = 0; start < which.ids.length; start += REDRIVEN_AT_ONCE) {
    const failed = await onlyFailed(table, which.ids.slice(start, start + REDRIVEN_AT_ONCE));
    redriven += (await table.retry(failed)).length;
  }
  return redriven;
}

/** A retry of the engine also hurries those that only wait. */
async function onlyFailed(table: QueueStore<object>, ids: readonly string[]): Promise<string[]> {
  const { database } = table;
  const sql = `select job_id from rag_jobs where status = 'failed' and ${database.dialect.isOneOf("job_id", 1, "text")}`;
  const rows = await database.query({ name: "rag.failed", sql }, [database.dialect.keys(ids)]);
  return rows.map((row) => String(row.job_id));
}

async function countJobs(database: Database, table: QueueStore<object>, rows: JobRows): Promise<RagCounts> {
  const byStatus = await table.countByStatus();
  const processing = byStatus.get("processing") ?? 0;
  const queued = (byStatus.get("queued") ?? 0) + (byStatus.get("submitted") ?? 0);
  const sql = "select count(*) as count from rag_jobs where status = 'queued' and run_after is not null";
  const [delayed] = await database.query({ name: "rag.delayed", sql });
  return {
    length: queued + processing,
    processing,
    queued,
    delayed: Number(delayed!.count),
    ...(await rows.countDead()),
    lastHeartbeatMsAgo: await silenceMs(database),
  };
}

/** $1 now. */
async function silenceMs(database: Database): Promise<number | null> {
  const { dialect } = database;
  const heard = "max(last_heartbeat)";
  const ago =
    dialect.name === "postgres"
      ? `extract(epoch from ${dialect.now} - ${heard}) * 1000`
      : `(julianday(${dialect.now}) - julianday(${heard})) * 86400000`;
  const sql = `select ${ago} as ms from worker_processes where left_at is null and cast(lanes as text) like '%"${RAG_QUEUE}"%'`;
  const [row] = await database.query({ name: "rag.silence", sql }, [database.now()]);
  return row?.ms === null || row?.ms === undefined ? null : Math.max(0, Math.round(Number(row.ms)));
}

/** $1 now, $2 worker. Its own heartbeat comes too seldom to say that it is connected. */
async function sayAlive(database: Database, worker: string): Promise<void> {
  const { now, mark } = database.dialect;
  const sql = `update worker_processes set last_heartbeat = ${now} where id = ${mark(2)} and left_at is null`;
  await database.query({ name: "rag.beat", sql }, [database.now(), worker]);
}
