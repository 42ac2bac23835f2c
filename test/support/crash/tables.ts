import { type Database, prepareQueue } from "../../../src/index.ts";
import { tasks as queue } from "./worker.ts";

/** Every step of a row's life leaves an entry, written by the database in the transaction of the step itself. */
export async function createCrashTables(database: Database): Promise<void> {
  const isPostgres = database.dialect.name === "postgres";
  const time = isPostgres ? "timestamptz" : "text";
  const serial = isPostgres ? "bigserial primary key" : "integer primary key autoincrement";
  const now = isPostgres ? POSTGRES_NOW : `(${SQLITE_NOW})`;
  await database.query(`
    create table tasks (id ${serial}, n integer not null unique, sleep_ms integer not null default 0,
      status text not null default 'pending', token bigint not null default 0, lease_until ${time}, run_after ${time},
      attempts integer not null default 0, attempts_max integer not null default 1000, error text, worker_id text,
      started_at ${time}, finished_at ${time}, result_n integer, result_token bigint)`);
  // Without unique constraints: they would hide the second write instead of showing it.
  await database.query(
    "create table effects (task_id bigint not null, token bigint not null, writer text not null)",
  );
  await database.query(`
    create table audit (seq ${serial}, kind text not null, task_id bigint not null, token bigint not null,
      holder text, writer text, at ${time} not null default ${now})`);
  for (const trigger of isPostgres ? POSTGRES_TRIGGERS : SQLITE_TRIGGERS) await database.query(trigger);
  await prepareQueue(database, queue);
}

const SQLITE_NOW = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')";
const POSTGRES_NOW = "clock_timestamp()";

const kindOf = (now: string) => `case
  when new.status = 'processing' then 'claimed'
  when new.status = 'completed' then 'settled'
  when old.status = 'completed' then 'reopened'
  when old.status <> 'processing' then 'changed'
  when new.token > old.token and old.lease_until > ${now} then 'robbed'
  when new.token > old.token then 'rescued'
  when new.attempts < old.attempts then 'released'
  else 'returned' end`;

const SQLITE_TRIGGERS = [
  `create trigger audit_tasks after update on tasks
   when old.status <> new.status or old.token <> new.token
   begin
     insert into audit (kind, task_id, token, holder)
     values (${kindOf(SQLITE_NOW)}, new.id, new.token, coalesce(new.worker_id, old.worker_id));
   end`,
];

/** SQLite's workers bring the part that knows who writes: see `denounceStaleWrites`. */
const POSTGRES_TRIGGERS = [
  `create function audit_task() returns trigger language plpgsql as $$
   declare
     writer text := nullif(current_setting('quarry.writer', true), '');
   begin
     if old.status = 'processing' and old.worker_id is distinct from coalesce(writer, old.worker_id) then
       insert into audit (kind, task_id, token, holder, writer)
       values ('stale', old.id, old.token, old.worker_id, writer);
     end if;
     if old.status <> new.status or old.token <> new.token then
       insert into audit (kind, task_id, token, holder, writer)
       values (${kindOf(POSTGRES_NOW)}, new.id, new.token, coalesce(new.worker_id, old.worker_id), writer);
     end if;
     return null;
   end $$`,
  "create trigger audit_tasks after update on tasks for each row execute function audit_task()",
];
