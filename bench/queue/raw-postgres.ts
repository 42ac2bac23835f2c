import pg from "pg";
import { countRows, runSql, settleDown } from "../postgres.ts";
import type { Contender, Payload } from "./contender.ts";

const BATCH = 500;

const CLAIM = {
  name: "raw.claim",
  text: `update raw_jobs set status = 'running' where id = any(array(
    select id from raw_jobs where status = 'pending' order by id limit ${BATCH} for update skip locked
  )) returning id, payload`,
};
/** $1 keys. */
const COMPLETE = {
  name: "raw.complete",
  text: "update raw_jobs set status = 'done' where id = any($1::bigint[])",
};

/**
 * The limit: what the bare driver does on a minimal table with one connection. No lease, no owner, no attempts,
 * no time stamps, no order of settlement.
 */
export function rawPostgres(name: string, url: string): Contender {
  return {
    name,
    reset: () =>
      runSql(
        url,
        "drop table if exists raw_jobs",
        "create table raw_jobs (id bigserial primary key, status text not null default 'pending', payload jsonb)",
        "create index raw_jobs_pending on raw_jobs (id) where status = 'pending'",
      ),
    connect: async () => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      const add = (payloads: readonly Payload[]) =>
        client.query("insert into raw_jobs (payload) select * from jsonb_array_elements($1::jsonb)", [
          JSON.stringify(payloads),
        ]);
      return {
        addOne: (payload) => add([payload]),
        addMany: add,
        settleDown: () => settleDown(url),
        work: async (handle) => {
          const ended = drain(client, handle);
          return { stop: () => ended };
        },
        countLeft: () => countRows(url, "raw_jobs", "status <> 'done'"),
        close: () => client.end(),
      };
    },
  };
}

async function drain(client: pg.Client, handle: (payload: Payload) => void): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ id: string; payload: Payload }>(CLAIM);
    if (rows.length === 0) return;
    for (const row of rows) handle(row.payload);
    await client.query({ ...COMPLETE, values: [rows.map((row) => row.id)] });
  }
}
