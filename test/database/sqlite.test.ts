import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { checkSqliteVersion } from "../../src/database/sqlite.ts";
import {
  createWorker,
  type Database,
  defineLane,
  defineQueue,
  isQuarryError,
  openDatabase,
  openQueue,
  prepareQueue,
} from "../../src/index.ts";

describe("SQLite", () => {
  let folder: string;
  let files = 0;
  const opened: Database[] = [];
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "quarry-sqlite-"));
  });
  after(async () => {
    await Promise.all(opened.map((database) => database.close()));
    await rm(folder, { recursive: true });
  });

  const newFile = () => join(folder, `${files++}.db`);
  const open = (file: string, settings: Parameters<typeof openDatabase>[1] = {}) => {
    const database = openDatabase(file, settings);
    opened.push(database);
    return database;
  };
  const pragma = async (database: Database, name: string) =>
    Object.values((await database.query(`pragma ${name}`))[0]!)[0];

  it("writes ahead, checks foreign keys and survives power loss unless told otherwise", async () => {
    const [safe, fast] = [open(newFile()), open(newFile(), { synchronous: "normal" })];
    assert.deepEqual(
      [
        await pragma(safe, "journal_mode"),
        await pragma(safe, "foreign_keys"),
        await pragma(safe, "synchronous"),
      ],
      ["wal", 1, 2],
    );
    assert.equal(await pragma(fast, "synchronous"), 1);
  });

  it("refuses versions that can lose a WAL reset", () => {
    for (const version of ["3.51.2", "3.50.9", "3.7.17", "2.9.9", "unknown"]) {
      assert.throws(
        () => checkSqliteVersion(version),
        (error) => isQuarryError(error, "unsupported_runtime"),
        version,
      );
    }
    for (const version of ["3.51.3", "3.52.0", "3.53.4", "4.0.0"]) checkSqliteVersion(version);
  });

  it("says what is wrong with a file that is no database, or a folder that cannot be made", async () => {
    const file = newFile();
    await writeFile(file, "this is not a database, but it is long enough to be read as one");
    assert.throws(
      () => openDatabase(file),
      (error) => isQuarryError(error, "database_unavailable") && error.message.includes(file),
    );
    assert.throws(
      () => openDatabase("mysql://host/db"),
      (error) => isQuarryError(error, "invalid_input"),
    );
    assert.throws(
      () => openDatabase("mysql://user:secret@host/db"),
      (error) => !(error as Error).message.includes("secret"),
    );
  });

  it("a transaction that throws leaves nothing, and the next one works", async () => {
    const database = open(newFile());
    await database.query("create table t (a integer unique)");
    await assert.rejects(
      database.transaction(async (session) => {
        await session.query("insert into t values (1)");
        await session.query("insert into t values (1)");
      }),
      (error) => isQuarryError(error, "constraint_violated"),
    );
    await database.transaction((session) => session.query("insert into t values (2)"));
    assert.deepEqual(
      (await database.query("select a from t")).map((row) => row.a),
      [2],
    );
  });

  it("transactions of one process wait for each other and never mix", async () => {
    const database = open(newFile());
    await database.query("create table t (a integer)");
    await database.query("insert into t values (0)");
    const add = () =>
      database.transaction(async (session) => {
        const [row] = await session.query("select a from t");
        await sleep(1);
        await session.query(`update t set a = ${Number(row!.a) + 1}`);
      });
    const reads = database.query("select a from t");
    await Promise.all(Array.from({ length: 20 }, add));
    await reads;
    assert.equal((await database.query("select a from t"))[0]!.a, 20);
  });

  it("work after the commit may use the database, and cannot undo it by failing", async () => {
    const errors: unknown[] = [];
    const database = open(newFile(), { onError: (error) => errors.push(error) });
    await database.query("create table t (a integer)");
    await database.transaction(async (transaction) => {
      transaction.afterCommit(() => database.query("insert into t values (2)"));
      transaction.afterCommit(() => {
        throw new Error("too late to matter");
      });
      await transaction.query("insert into t values (1)");
    });
    assert.equal((await database.query("select * from t")).length, 2);
    assert.equal(errors.length, 1);
  });

  it("refuses to be asked inside its own transaction, instead of waiting for ever", async () => {
    const database = open(newFile());
    const inside = database.transaction(() => database.query("select 1"));
    await assert.rejects(
      inside,
      (error) => isQuarryError(error, "invalid_input") && /within\(transaction\)/.test(error.message),
    );
    assert.equal((await database.query("select 1 as one"))[0]!.one, 1);
  });

  it("waits for another process's lock, and lets this process go on meanwhile", async () => {
    const file = newFile();
    const database = open(file);
    await database.query("create table t (a integer)");
    const holder = await holdLock(file, 400);
    let turns = 0;
    const timer = setInterval(() => turns++, 10);
    await database.query("insert into t values (1)");
    clearInterval(timer);
    await holder.ended;
    assert.equal((await database.query("select * from t")).length, 1);
    assert.ok(turns >= 3, `the event loop turned ${turns} times while waiting`);
  });

  it("gives up on a lock with a clear error", async () => {
    const file = newFile();
    const database = openDatabase(file);
    await database.query("create table t (a integer)");
    await database.close();
    const { openSqlite } = await import("../../src/database/sqlite.ts");
    const impatient = openSqlite({ path: file, busyTimeoutMs: 50 });
    const holder = await holdLock(file, 1_500);
    await assert.rejects(
      impatient.transaction((session) => session.query("insert into t values (1)")),
      (error) =>
        isQuarryError(error, "database_unavailable") && /locked by another process/.test(error.message),
    );
    holder.child.kill();
    await holder.ended;
    await impatient.close();
  });

  it("another process's commit wakes a subscriber", async () => {
    const file = newFile();
    const [one, two] = [open(file), open(file)];
    await one.query("create table t (a integer)");
    const woken = Promise.withResolvers<void>();
    const unsubscribe = one.subscribe("anything", woken.resolve);
    await sleep(30);
    await two.query("insert into t values (1)");
    await woken.promise;
    unsubscribe();
  });

  it("on a full disk a worker claims nothing, keeps what it has, and goes on by itself when there is room", async () => {
    const file = newFile();
    const database = open(file);
    await database.query(
      `create table tasks (id integer primary key, status text not null default 'pending', lease_token integer not null default 0,
        lease_until text, run_after text, attempts integer not null default 0, error text, note text)`,
    );
    const queue = defineQueue({
      name: "tasks",
      table: "tasks",
      key: { column: "id", type: "integer" },
      columns: {
        status: "status",
        token: "lease_token",
        lease: "lease_until",
        runAfter: "run_after",
        attempts: "attempts",
        error: "error",
      },
      results: ["note"],
    });
    await prepareQueue(database, queue);
    const store = openQueue(database, queue);
    await store.enqueue(Array.from({ length: 20 }, () => ({})));
    await database.query("pragma wal_checkpoint(truncate)");
    const pages = Number(await pragma(database, "page_count"));
    await database.query(`pragma max_page_count = ${pages + 2}`);
    const handle = () => ({ kind: "done", result: { note: "x".repeat(20_000) } }) as const;
    const worker = createWorker({
      database,
      lanes: [defineLane({ queue, concurrency: 5, handle, pollMs: 20 })],
    }).start();
    await sleep(300);
    const stuck = await store.countByStatus();
    assert.ok((stuck.get("completed") ?? 0) < 20);
    assert.equal(stuck.get("failed"), undefined);
    await database.query("pragma max_page_count = 1000000");
    while ((await store.countByStatus()).get("completed") !== 20) await sleep(10);
    await worker.stop();
    const { rows } = await store.list();
    assert.ok(rows.every(({ row }) => row.attempts === 0));
    assert.equal(await pragma(database, "integrity_check"), "ok");
  });
});

/** A process that holds the write lock of a file for a while. Resolves when it has it. */
async function holdLock(file: string, ms: number) {
  const script = `
    const { DatabaseSync } = require("node:sqlite");
    const database = new DatabaseSync(${JSON.stringify(file)});
    database.exec("begin immediate");
    console.log("locked");
    setTimeout(() => { database.exec("rollback"); }, ${ms});`;
  const child = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  await once(child.stdout, "data");
  return { child, ended };
}
