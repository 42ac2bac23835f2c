import { DatabaseSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import type { Contender, Payload } from "./contender.ts";
import { removeSqliteFile } from "./quarry.ts";

const BATCH = 500;

/** The limit: what the bare driver does on a minimal table. No lease, no owner, no attempts, no time stamps. */
export function rawSqlite(
  name: string,
  settings: { path: string; synchronous: "full" | "normal" },
): Contender {
  return {
    name,
    reset: async () => {
      await removeSqliteFile(settings.path);
      const database = open(settings);
      database.exec(
        `create table raw_jobs (id integer primary key, status text not null default 'pending', payload text);
         create index raw_jobs_pending on raw_jobs (id) where status = 'pending';`,
      );
      database.close();
    },
    connect: async () => {
      const database = open(settings);
      const insert = database.prepare("insert into raw_jobs (payload) select value from json_each(?)");
      return {
        addOne: async (payload) => insert.run(JSON.stringify([payload])),
        addMany: async (payloads) => insert.run(JSON.stringify(payloads)),
        settleDown: async () => database.exec("pragma wal_checkpoint(truncate)"),
        work: async (handle) => {
          const ended = drain(database, handle);
          return { stop: () => ended };
        },
        countLeft: async () => {
          const row = database.prepare("select count(*) as count from raw_jobs where status <> 'done'").get();
          return Number(row?.count);
        },
        close: async () => database.close(),
      };
    },
  };
}

function open({ path, synchronous }: { path: string; synchronous: "full" | "normal" }): DatabaseSync {
  const database = new DatabaseSync(path);
  database.exec(`pragma journal_mode = wal; pragma synchronous = ${synchronous}`);
  return database;
}

/** Each statement is a transaction of its own. */
async function drain(database: DatabaseSync, handle: (payload: Payload) => void): Promise<void> {
  const claim = database.prepare(
    `update raw_jobs set status = 'running' where id in (
      select id from raw_jobs where status = 'pending' order by id limit ${BATCH}
    ) returning id, payload`,
  );
  const complete = database.prepare(
    "update raw_jobs set status = 'done' where id in (select value from json_each(?))",
  );
  for (;;) {
    const rows = claim.all();
    if (rows.length === 0) return;
    for (const row of rows) handle(JSON.parse(String(row.payload)));
    complete.run(JSON.stringify(rows.map((row) => row.id)));
    await setImmediate();
  }
}
