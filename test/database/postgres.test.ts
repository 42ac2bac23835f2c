import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Database, isQuarryError, openDatabase } from "../../src/index.ts";
import { cuttableLine } from "../support/cuttable-line.ts";
import { freshPostgres } from "../support/postgres.ts";

describe("PostgreSQL", () => {
  let url: string;
  let drop: () => Promise<void>;
  let database: Database;
  let admin: Database;
  const errors: unknown[] = [];

  before(async () => {
    ({ url, drop } = await freshPostgres());
    database = openDatabase(url, { onError: (error) => errors.push(error) });
    admin = openDatabase(url);
    await database.query("create table t (id integer primary key, a integer not null default 0)");
    await database.query("insert into t values (1), (2)");
  });
  after(async () => {
    await database.close();
    await admin.close();
    await drop();
  });

  /** Ends every connection of this database but the one that asks. */
  const terminateAll = () =>
    admin.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
    );

  it("reads times as ISO 8601 in UTC and large integers as numbers", async () => {
    const [row] = await database.query(
      "select '2026-02-03 04:05:06.789+02'::timestamptz as time, 9007199254740991::bigint as big, 9007199254740993::bigint as bigger",
    );
    assert.deepEqual(row, {
      time: "2026-02-03T02:05:06.789Z",
      big: 9007199254740991,
      bigger: "9007199254740993",
    });
  });

  it("a deadlock is replayed: both transactions happen", async () => {
    let calls = 0;
    const add = (first: number, second: number) =>
      database.transaction(async (session) => {
        calls++;
        await session.query("update t set a = a + 1 where id = $1", [first]);
        await sleep(100);
        await session.query("update t set a = a + 1 where id = $1", [second]);
      });
    await Promise.all([add(1, 2), add(2, 1)]);
    assert.ok(calls > 2, "there was no deadlock to replay");
    assert.deepEqual(
      (await database.query("select a from t order by id")).map((row) => row.a),
      [2, 2],
    );
  });

  it("a serialization failure is replayed", async () => {
    await database.query("update t set a = 0");
    const add = () =>
      database.transaction(async (session) => {
        await session.query("set transaction isolation level serializable");
        const [row] = await session.query("select sum(a) as total from t");
        await sleep(20);
        await session.query("update t set a = $1 where id = 1", [Number(row!.total) + 1]);
      });
    await Promise.all([add(), add(), add()]);
    assert.equal((await database.query("select a from t where id = 1"))[0]!.a, 3);
  });

  it("what can never succeed is not replayed", async () => {
    let calls = 0;
    const attempt = database.transaction(async (session) => {
      calls++;
      await session.query("insert into t values (1)");
    });
    await assert.rejects(attempt, (error) => isQuarryError(error, "constraint_violated"));
    assert.equal(calls, 1);
  });

  it("a transaction that went on after a failed statement does not count as committed", async () => {
    const swallowing = database.transaction(async (session) => {
      await session.query("insert into t values (1)").catch(() => undefined);
    });
    await assert.rejects(
      swallowing,
      (error) => isQuarryError(error, "database_failed") && /rolled back/.test(error.message),
    );
  });

  it("a COMMIT whose answer is lost is not repeated", async () => {
    await database.query("create table slow (a integer)");
    await database.query(
      "create function nap() returns trigger language plpgsql as $$ begin perform pg_sleep(10); return null; end $$",
    );
    // Runs while committing.
    await database.query(
      "create constraint trigger nap after insert on slow deferrable initially deferred for each row execute function nap()",
    );
    let calls = 0;
    const attempt = database.transaction(async (session) => {
      calls++;
      await session.query("insert into slow values (1)");
    });
    const rejected = assert.rejects(attempt, (error) => isQuarryError(error, "commit_unknown"));
    const sql =
      "select pid from pg_stat_activity where query = 'commit' and state = 'active' and datname = current_database()";
    let pids = await admin.query(sql);
    while (pids.length === 0) {
      await sleep(10);
      pids = await admin.query(sql);
    }
    await admin.query("select pg_terminate_backend($1)", [pids[0]!.pid]);
    await rejected;
    assert.equal(calls, 1);
  });

  it("refuses to be asked inside its own transaction, instead of waiting for ever", async () => {
    const inside = database.transaction(() => database.query("select 1"));
    await assert.rejects(
      inside,
      (error) => isQuarryError(error, "invalid_input") && /within\(transaction\)/.test(error.message),
    );
    assert.equal((await database.query("select 1 as one"))[0]!.one, 1);
  });

  it("connects again after its connections were cut", async () => {
    await Promise.all(Array.from({ length: 5 }, () => database.query("select pg_sleep(0.01)")));
    await terminateAll();
    let reached = false;
    for (let round = 0; round < 20 && !reached; round++) {
      reached = await database.query("select 1").then(
        () => true,
        (error) => {
          assert.ok(isQuarryError(error, "database_unavailable"), String(error));
          return false;
        },
      );
    }
    assert.ok(reached);
  });

  it("a transaction whose connection breaks fails clearly and does not poison the pool", async () => {
    const attempt = database.transaction(async (session) => {
      const [row] = await session.query("select pg_backend_pid() as pid");
      await admin.query("select pg_terminate_backend($1)", [row!.pid]);
      await sleep(20);
      await session.query("select 1");
    });
    await assert.rejects(attempt, (error) => isQuarryError(error, "database_unavailable"));
    await database.transaction((session) => session.query("select 1"));
  });

  it("a machine that vanishes in the middle of a transaction does not keep its rows locked", async () => {
    const line = await cuttableLine(url);
    const far = openDatabase(line.url);
    const isLocked = Promise.withResolvers<void>();
    const lost = far.transaction(async (transaction) => {
      const [row] = await transaction.query("show idle_in_transaction_session_timeout");
      assert.equal(row!.idle_in_transaction_session_timeout, "30s");
      // Sooner, for this test.
      await transaction.query("set local idle_in_transaction_session_timeout = '300ms'");
      await transaction.query("update t set a = 9 where id = 1");
      line.cut("black hole");
      isLocked.resolve();
      await transaction.query("update t set a = 10 where id = 1");
    });
    lost.catch(() => undefined);
    await isLocked.promise;
    // Waits for the row until the server has ended the other's transaction.
    await admin.query("update t set a = 5 where id = 1");
    line.mend();
    await assert.rejects(lost, { code: "database_unavailable" });
    assert.deepEqual(await database.query("select a from t where id = 1"), [{ a: 5 }]);
    await far.close();
    await line.close();
  });

  it("says that the server cannot be reached, without the password", async () => {
    const wrong = openDatabase("postgres://quarry:canary-password@127.0.0.1:1/quarry");
    await assert.rejects(
      wrong.query("select 1"),
      (error) => isQuarryError(error, "database_unavailable") && !error.message.includes("canary-password"),
    );
    await wrong.close();
  });

  it("notifications reach other processes, few for many, also after the listening connection was cut", async () => {
    const other = openDatabase(url);
    let heard = 0;
    other.subscribe("topic", () => heard++);
    // Listening begins with one look, which tells that it has begun.
    while (heard === 0) await sleep(5);
    heard = 0;
    for (let i = 0; i < 1_000; i++) database.notify("topic");
    while (heard === 0) await sleep(5);
    await sleep(150);
    assert.ok(heard >= 1 && heard <= 5, `${heard} notifications for 1,000 calls`);
    await terminateAll();
    const before = heard;
    while (heard === before) {
      database.notify("topic");
      await sleep(20);
    }
    await other.close();
  });
});
