import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openPostgres } from "../../src/database/postgres.ts";
import { type Database, manualClock, openDatabase, prepareQueue } from "../../src/index.ts";
import { openDatabaseQueue } from "../../src/rag/database-queue.ts";
import { type JobMessage, newMessage } from "../../src/rag/message.ts";
import { type RagQueue, ragQueue } from "../../src/rag/queue.ts";
import { openRedisQueue } from "../../src/rag/redis-queue.ts";
import { copyMigrated, migratedPostgres, migrateTest } from "../support/migrated.ts";
import { freshRedis, type TestRedis } from "../support/redis.ts";

export const LEASE_MS = 60_000;
export const RAG_IDS = ["policies_rag", "faq_rag"] as const;

/** A queue on a real server, empty, with a clock that is moved by hand. */
export interface Place {
  readonly queue: RagQueue;
  readonly database: Database;
  readonly clock: ReturnType<typeof manualClock>;
  /** Only where there is one. */
  readonly redis: TestRedis | undefined;
  /** The same queue as another process has it. */
  another(): RagQueue;
  /** As a foreign producer does: only the text. Where there is no Redis, as a row of that text. */
  push(text: string, line?: string): Promise<void>;
  /** Everywhere that a job is, of which there must be one place: "queued", "processing", "delayed", or how it ended. */
  whereabouts(jobId: string): Promise<string[]>;
  reset(): Promise<void>;
  close(): Promise<void>;
}

export const PLACES: readonly { name: string; open(): Promise<Place> }[] = [
  { name: "SQLite", open: () => openPlace("sqlite") },
  { name: "PostgreSQL", open: () => openPlace("postgres") },
  { name: "Redis", open: async () => openPlace("sqlite", await freshRedis()) },
  { name: "Redis beside PostgreSQL", open: async () => openPlace("postgres", await freshRedis()) },
];

export function aMessage(place: Pick<Place, "clock">, more: Partial<JobMessage> = {}): JobMessage {
  const job = {
    rag_id: "policies_rag",
    source_path: "/data/policies_rag/incoming/a.pdf",
    source_type: "pdf",
    filename: "a.pdf",
  };
  return { ...newMessage(job, place.clock), ...more };
}

export async function openPlace(dialect: "sqlite" | "postgres", redis?: TestRedis): Promise<Place> {
  const clock = manualClock();
  const { database, drop } = await openEmpty(dialect, clock);
  const queue = ragQueue({ staleMs: LEASE_MS });
  await prepareQueue(database, queue);
  const opened: RagQueue[] = [];
  const another = () => {
    const one = redis
      ? openRedisQueue({ url: redis.url, database, queue, ragIds: RAG_IDS, now: () => clock.now() })
      : openDatabaseQueue({ database, queue });
    opened.push(one);
    return one;
  };
  return {
    queue: another(),
    ...{ database, clock, redis, another },
    push: async (text, line = "") => {
      if (redis)
        await redis.command("LPUSH", line === "" ? "rag:ingest:queue" : `rag:ingest:queue:${line}`, text);
      else await insertRow(database, text, line);
    },
    whereabouts: async (jobId) => (redis ? inRedis(redis, jobId) : inTable(database, jobId)),
    reset: async () => {
      // Whatever a test before has left in somebody's hands is written down, and gone with the rest.
      for (const one of opened) await one.store.repair();
      await database.query("delete from rag_jobs");
      await redis?.command("FLUSHDB");
      clock.advance(1_000);
    },
    close: async () => {
      for (const one of opened) await one.close();
      await redis?.close();
      await database.close();
      await drop();
    },
  };
}

async function openEmpty(dialect: "sqlite" | "postgres", clock: ReturnType<typeof manualClock>) {
  const { database, drop } = dialect === "postgres" ? await openServer(clock) : await openFile(clock);
  await migrateTest(database, dialect);
  return { database, drop };
}

async function openServer(clock: ReturnType<typeof manualClock>) {
  const { url, drop } = await migratedPostgres();
  return { database: openPostgres({ url, clock, now: () => new Date(clock.now()).toISOString() }), drop };
}

async function openFile(clock: ReturnType<typeof manualClock>) {
  const folder = await mkdtemp(join(tmpdir(), "quarry-test-"));
  const path = join(folder, "quarry.db");
  await copyMigrated(path);
  const database = openDatabase(path, { clock, synchronous: "normal" });
  return { database, drop: () => rm(folder, { recursive: true, force: true }) };
}

async function insertRow(database: Database, text: string, line: string): Promise<void> {
  const job = JSON.parse(text) as Record<string, unknown>;
  const { mark, now } = database.dialect;
  const said = (name: string, fallback: string) => String(job[name] ?? fallback);
  const values = [
    ...[said("job_id", "x"), said("rag_id", "x"), said("source_path", "x"), said("source_type", "x")],
    ...[said("filename", "x"), said("submitted_at", "x"), text, line],
  ];
  const marks = values.map((_value, index) => mark(index + 2)).join(", ");
  await database.query(
    `insert into rag_jobs (job_id, rag_id, source_path, source_type, filename, submitted_at, message, list, created_at) values (${marks}, ${now})`,
    [database.now(), ...values],
  );
}

async function inTable(database: Database, jobId: string): Promise<string[]> {
  const sql = `select status, run_after from rag_jobs where job_id = ${database.dialect.mark(1)}`;
  const rows = await database.query(sql, [jobId]);
  return rows.map((row) =>
    row.status === "queued" && row.run_after !== null ? "delayed" : String(row.status),
  );
}

async function inRedis(redis: TestRedis, jobId: string): Promise<string[]> {
  const found: string[] = [];
  const lists = (await redis.command("KEYS", "rag:ingest:queue*")) as string[];
  for (const list of lists.filter((name) => !name.endsWith(":dead-letter"))) {
    const texts = (await redis.command("LRANGE", list, "0", "-1")) as string[];
    for (const text of texts) if (text.includes(`"${jobId}"`)) found.push("queued");
  }
  for (const worker of (await redis.command("KEYS", "rag:ingest:worker:*")) as string[])
    if ((await redis.command("HEXISTS", worker, jobId)) === 1) found.push("processing");
  const isLeased = (await redis.command("ZSCORE", "rag:ingest:leases", jobId)) !== null;
  if (isLeased !== found.includes("processing")) found.push(isLeased ? "a lease of nobody" : "no lease");
  const isDelayed = (await redis.command("ZSCORE", "rag:ingest:delayed", jobId)) !== null;
  if (isDelayed) found.push("delayed");
  const hasMessage = (await redis.command("HEXISTS", "rag:ingest:delayed:messages", jobId)) === 1;
  if (hasMessage !== isDelayed) found.push("half delayed");
  const status = String(await redis.command("HGET", `rag:ingest:job:${jobId}`, "status"));
  if (status === "done" || status === "failed") found.push(status);
  else if (found.length === 1 && status !== (found[0] === "delayed" ? "queued" : found[0]))
    found.push(`says ${status}`);
  return found;
}
