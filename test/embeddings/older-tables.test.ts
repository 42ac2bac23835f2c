import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, beforeEach, describe, it } from "node:test";
import pg from "pg";
import { migrate, openDatabase, readMigrations } from "../../src/index.ts";
import type { TestDatabase } from "../support/databases.ts";
import { freshPostgres } from "../support/postgres.ts";
import { openDesk, until } from "./desk.ts";

const MIGRATIONS = readMigrations(join(import.meta.dirname, "../../migrations/postgres"));

describe("a PostgreSQL database that had rules of its own", () => {
  let url: string;
  let client: pg.Client;
  const closing: (() => Promise<void>)[] = [];
  beforeEach(async () => {
    const fresh = await freshPostgres();
    url = fresh.url;
    client = new pg.Client({ connectionString: url });
    await client.connect();
    const own = client;
    closing.push(async () => {
      await own.end();
      await fresh.drop();
    });
  });
  after(async () => {
    for (const close of closing) await close();
  });

  async function migrated(address = url): Promise<TestDatabase> {
    const database = openDatabase(address);
    closing.unshift(() => database.close());
    await migrate(database, MIGRATIONS);
    return { database, url: address, folder: "", close: () => database.close() };
  }
  const jobs = async () =>
    (await client.query("select input_text, priority, project_id from embedding_jobs order by input_text"))
      .rows;

  it("goes on writing them, whatever their priorities, projects and gaps are", async () => {
    for (const priority of ["integer default 1", "how_urgent default 'low'", "varchar(9)"]) {
      await client.query("drop schema public cascade; create schema public");
      await client.query("create type how_urgent as enum ('high', 'low')");
      await client.query(
        `create table rules (id uuid primary key default gen_random_uuid(), title text, guidance varchar(99), rationale jsonb, priority ${priority}, project_id uuid)`,
      );
      await migrated();
      await client.query(
        `insert into rules (title, guidance, rationale, project_id) values ('a', 'b', '[1]', gen_random_uuid()), (null, 'b', null, null)`,
      );
      assert.deepEqual(await jobs(), [{ input_text: "a b [1]", priority: "normal", project_id: null }]);
      await client.query("update rules set title = 'c'");
      assert.deepEqual(
        (await jobs()).map((job) => job.input_text),
        ["c b ", "c b [1]"],
      );
    }
  });

  it("gets vectors for those that were there before by the statement of the documentation", async () => {
    await client.query(
      "create table rules (id uuid primary key default gen_random_uuid(), title text, guidance text)",
    );
    await client.query("insert into rules (title, guidance) values ('old', 'rule'), ('old', 'rule')");
    const desk = await openDesk(await migrated());
    const statement = /```sql\n(insert into embedding_jobs[^`]+)```/.exec(await documentation())![1]!;
    await client.query(statement);
    const crew = await desk.work();
    await until(
      async () => (await desk.query("select 1 from rules where embedding is not null")).length === 2,
    );
    await crew.stop();
    assert.deepEqual(desk.calls, [["old rule "]]);
  });

  it("is refused before anything of it is touched when they cannot be rules of ours, and a schema of our own helps", async () => {
    const tables = [
      ["create table rules (id bigserial primary key, title text, guidance text)", /rules has no key/],
      ["create table rules (id uuid, title text, guidance text)", /rules has no key/],
      ["create table rules (id uuid primary key, name text)", /no columns "title" and "guidance"/],
      [
        "create table rules (id uuid primary key, title text, guidance text, project_id bigint)",
        /project_id of its table rules/,
      ],
      ["create table projects (id bigserial primary key, name text)", /projects has no key/],
      ["create type job_status as enum ('open')", /already/],
    ] as const;
    for (const [sql, message] of tables) {
      await client.query("drop schema public cascade; create schema public");
      await client.query(sql);
      await assert.rejects(migrated(), { code: "migration_failed", message });
      await assert.rejects(migrated(), { message: /create schema quarry/ });
    }
    await client.query("create schema quarry");
    const desk = await openDesk(await migrated(`${url}?options=-c%20search_path%3Dquarry`));
    const job = await desk.jobs.create({ input_text: "in a schema of its own" });
    const crew = await desk.work();
    await until(async () => (await desk.jobs.read(job.id)).status === "completed");
    await crew.stop();
  });

  it("may be written with any search path", async () => {
    await migrated();
    await client.query("set search_path = pg_catalog");
    await client.query("insert into public.rules (rule_id, title, guidance) values ('R', 'far', 'away')");
    await client.query("update public.rules set title = 'farther'");
    const { rows } = await client.query("select input_text from public.embedding_jobs");
    assert.deepEqual(rows, [{ input_text: "farther away " }]);
  });

  it("needs no right to create extensions", async () => {
    const role = `plain_${process.pid}`;
    await client.query(`create role ${role} login password 'secret-of-a-test'`);
    await client.query(`grant all on schema public to ${role}`);
    const address = new URL(url);
    address.username = role;
    address.password = "secret-of-a-test";
    closing.push(() => dropRole(role));
    const desk = await openDesk(await migrated(address.href));
    assert.equal(desk.jobs.vectorType, "real[]");
  });
});

/** When the database it had a part in is gone. */
async function dropRole(role: string): Promise<void> {
  const { url, drop } = await freshPostgres();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`drop role ${role}`);
  await client.end();
  await drop();
}

function documentation(): Promise<string> {
  return readFile(join(import.meta.dirname, "../../docs/embedding-jobs.md"), "utf8");
}
