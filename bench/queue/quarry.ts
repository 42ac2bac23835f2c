import { rm } from "node:fs/promises";
import {
  createWorker,
  type Database,
  defineLane,
  defineQueue,
  openDatabase,
  openQueue,
  prepareQueue,
  type Queue,
  type QueueDeclaration,
} from "../../src/index.ts";
import { settleDown } from "../postgres.ts";
import type { Connection, Contender, Payload } from "./contender.ts";

export interface QuarrySettings {
  readonly name: string;
  /** `postgres://…` or the path of a SQLite file. */
  readonly url: string;
  readonly synchronous?: "full" | "normal";
  readonly whenDone?: "keep" | "remove";
}

export interface BenchRow {
  readonly payload: Payload;
}

const TABLE = "quarry_jobs";

export function quarry(settings: QuarrySettings): Contender {
  const queue = declareQueue(TABLE, { whenDone: settings.whenDone ?? "keep" });
  const open = () =>
    openDatabase(settings.url, settings.synchronous ? { synchronous: settings.synchronous } : {});
  return {
    name: settings.name,
    reset: async () => {
      if (!isPostgres(settings.url)) await removeSqliteFile(settings.url);
      const database = open();
      await createQueueTable(database, queue);
      await database.close();
    },
    connect: async () => connection(open(), queue, settings.url),
  };
}

function connection(database: Database, queue: Queue<BenchRow>, url: string): Connection {
  const store = openQueue(database, queue);
  return {
    addOne: (payload) => store.enqueue([{ payload }]),
    addMany: (payloads) => store.enqueue(payloads.map((payload) => ({ payload }))),
    settleDown: () => settleDownWith(database, url),
    work: async (handle) =>
      createWorker({
        database,
        lanes: [defineLane({ queue, handle: (task) => handle(task.row.payload) })],
      }).start(),
    countLeft: async () => {
      const counts = await store.countByStatus();
      return [...counts].reduce((left, [status, count]) => left + (status === "completed" ? 0 : count), 0);
    },
    close: () => database.close(),
  };
}

/** The columns of a queue as an application would have them; `extra` is what a measure adds. */
export function declareQueue(
  table: string,
  extra: Partial<QueueDeclaration<BenchRow>> = {},
): Queue<BenchRow> {
  return defineQueue<BenchRow>({
    name: table.replaceAll("_", "."),
    table,
    key: { column: "id", type: "integer" },
    columns: {
      status: "status",
      token: "lease_token",
      lease: "lease_until",
      runAfter: "run_after",
      attempts: "attempts",
      error: "error",
      worker: "worker_id",
      createdAt: "created_at",
      finishedAt: "finished_at",
    },
    reads: ["payload"],
    kinds: { payload: "json" },
    // By key alone: the tasks of a backlog are worked in the order they came.
    order: [],
    ...extra,
  });
}

export async function createQueueTable(
  database: Database,
  queue: Queue<BenchRow>,
  extraColumns = "",
): Promise<void> {
  const isPg = database.dialect.name === "postgres";
  const time = isPg ? "timestamptz" : "text";
  await database.query(`drop table if exists ${queue.table}`);
  await database.query(`create table ${queue.table} (
    id ${isPg ? "bigserial" : "integer"} primary key,
    status text not null default 'pending',
    lease_token bigint not null default 0,
    lease_until ${time},
    run_after ${time},
    attempts integer not null default 0,
    error text,
    worker_id text,
    created_at ${time},
    finished_at ${time},
    payload ${isPg ? "jsonb" : "text"}${extraColumns}
  )`);
  await prepareQueue(database, queue);
}

/** The numbers 1 to `count` as rows `s(n)`, to fill tables with in one statement. */
export function series(database: Database, count: number): string {
  if (database.dialect.name === "postgres") return `generate_series(1, ${count}) as s(n)`;
  return `(with recursive s(n) as (select 1 union all select n + 1 from s where n < ${count}) select n from s) as s`;
}

export async function settleDownWith(database: Database, url: string): Promise<void> {
  if (isPostgres(url)) await settleDown(url);
  else await database.query("pragma wal_checkpoint(truncate)");
}

export async function removeSqliteFile(path: string): Promise<void> {
  for (const suffix of ["", "-wal", "-shm"]) await rm(path + suffix, { force: true });
}

function isPostgres(url: string): boolean {
  return url.startsWith("postgres");
}
