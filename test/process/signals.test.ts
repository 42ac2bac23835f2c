import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Database, openDatabase, openQueue, type QueueStore, type Row } from "../../src/index.ts";
import { eventually } from "../support/crash/patience.ts";
import { WorkerProcess } from "../support/crash/processes.ts";
import { CRASH_DATABASES } from "../support/crash/suite.ts";
import { createCrashTables } from "../support/crash/tables.ts";
import { type CrashTask, type CrashWorkerOptions, LEASE_MS, tasks } from "../support/crash/worker.ts";

const LONG_MS = 120_000;
/** What "at once" may take on a busy machine; far below every grace and handler it is held against. */
const AT_ONCE_MS = 10_000;
const it = (name: string, work: () => Promise<void>) => test(name, { timeout: 60_000 }, work);

for (const [name, open] of Object.entries(CRASH_DATABASES)) {
  describe(`a worker process that is sent signals, on ${name}`, () => {
    let url: string;
    let drop: () => Promise<void>;
    let database: Database;
    let store: QueueStore<CrashTask>;
    let workers: WorkerProcess[] = [];

    before(async () => {
      ({ url, drop } = await open());
      database = openDatabase(url);
      await createCrashTables(database);
      store = openQueue(database, tasks);
    });
    after(async () => {
      await database.close();
      await drop();
    });
    beforeEach(async () => {
      await database.query("delete from tasks");
    });
    afterEach(async () => {
      await Promise.all(workers.map((worker) => worker.end()));
      workers = [];
    });

    const enqueue = (from: number, count: number, sleepMs: number) =>
      store.enqueue(
        Array.from({ length: count }, (_unused, index) => ({ n: from + index, sleep_ms: sleepMs })),
      );
    const start = async (options: Partial<CrashWorkerOptions>): Promise<WorkerProcess> => {
      const label = `signalled-${workers.length + 1}`;
      const worker = new WorkerProcess({ url, label, concurrency: 2, ...options });
      workers.push(worker);
      await worker.started;
      return worker;
    };
    /** How it ended, and how long after the signal. */
    const signalled = async (worker: WorkerProcess, signal: NodeJS.Signals) => {
      const askedAt = performance.now();
      worker.kill(signal);
      const late = sleep(AT_ONCE_MS, "late" as const, { ref: false });
      const end = await Promise.race([worker.exited, late]);
      if (end === "late") assert.fail(`it still runs after ${AT_ONCE_MS} ms: ${worker.lastWords}`);
      return { ...end, tookMs: performance.now() - askedAt, words: worker.lastWords };
    };
    const until = (condition: () => boolean | Promise<boolean>) =>
      eventually(condition, () => `it never came to that: ${workers.map((worker) => worker.lastWords)}`);
    const rowsIn = async (status: string): Promise<Row[]> =>
      database.query(`select * from tasks where status = '${status}' order by n`);

    it("SIGTERM lets running handlers finish and gives prefetched rows back, with no attempt spent", async () => {
      // Short tasks first: they teach the lane to hold rows in advance.
      await enqueue(1, 40, 1);
      await enqueue(101, 60, 1_000);
      const worker = await start({ graceMs: 60_000 });
      await until(() => worker.began.filter((n) => n > 100).length >= 2);
      await until(async () => (await rowsIn("processing")).length > 2);

      const end = await signalled(worker, "SIGTERM");

      assert.deepEqual([end.code, end.signal], [0, null], end.words);
      assert.equal(worker.refused, 0);
      const begun = worker.began.filter((n) => n > 100);
      const completed = (await rowsIn("completed")).filter((row) => Number(row.n) > 100);
      assert.deepEqual(
        completed.map((row) => [row.n, row.attempts]),
        begun.toSorted((a, b) => a - b).map((n) => [n, 1]),
      );
      const pending = (await rowsIn("pending")).filter((row) => Number(row.n) > 100);
      assert.equal(completed.length + pending.length, 60);
      for (const row of pending) assert.deepEqual(leftoversOf(row), UNTOUCHED);
      const given = await database.query("select distinct task_id from audit where kind = 'released'");
      assert.ok(given.length >= 1, "nothing had been prefetched, so nothing was given back");
    });

    it("handlers that outlast the grace are aborted, and their rows given back with no attempt spent", async () => {
      await enqueue(1, 6, LONG_MS);
      const worker = await start({ graceMs: 300 });
      await until(() => worker.began.length === 2);

      const end = await signalled(worker, "SIGTERM");

      assert.deepEqual([end.code, end.signal], [0, null], end.words);
      assert.ok(end.tookMs >= 300, `it took ${end.tookMs} ms`);
      const rows = await rowsIn("pending");
      assert.equal(rows.length, 6);
      for (const row of rows) assert.deepEqual(leftoversOf(row), UNTOUCHED);
    });

    it("handlers that also ignore the abort do not keep their rows", async () => {
      await enqueue(1, 6, LONG_MS);
      const worker = await start({ graceMs: 300, isDeaf: true });
      await until(() => worker.began.length === 2);

      worker.kill("SIGTERM");

      await until(async () => (await rowsIn("pending")).length === 6);
      for (const row of await rowsIn("pending")) assert.deepEqual(leftoversOf(row), UNTOUCHED);
    });

    for (const second of ["SIGTERM", "SIGINT"] as const) {
      it(`${second} after SIGTERM does not wait: rows are given back with no attempt spent`, async () => {
        await enqueue(1, 6, LONG_MS);
        const worker = await start({ graceMs: LONG_MS });
        await until(() => worker.began.length === 2);
        worker.kill("SIGTERM");
        await sleep(2 * LEASE_MS);
        assert.ok(worker.isAlive, worker.lastWords);
        // It renews its leases for as long as it waits.
        assert.deepEqual(await store.rescueStale(), []);

        const end = await signalled(worker, second);

        assert.deepEqual([end.code, end.signal], [0, null], end.words);
        const rows = await rowsIn("pending");
        assert.equal(rows.length, 6);
        for (const row of rows) assert.deepEqual(leftoversOf(row), UNTOUCHED);
      });
    }

    it("an idle worker stops at once, however long its grace", async () => {
      const worker = await start({ graceMs: LONG_MS });
      await sleep(300);
      const end = await signalled(worker, "SIGTERM");
      assert.deepEqual([end.code, end.signal], [0, null], end.words);
    });

    it("a worker that is just looking for rows and finds none stops at once", async () => {
      const worker = await start({ graceMs: LONG_MS });
      // No pause: its first look is still under way.
      const end = await signalled(worker, "SIGTERM");
      assert.deepEqual([end.code, end.signal], [0, null], end.words);
    });
  });
}

const UNTOUCHED = { attempts: 0, worker_id: null, lease_until: null, error: null, result_n: null };

function leftoversOf({ attempts, worker_id, lease_until, error, result_n }: Row): Row {
  return { attempts, worker_id, lease_until, error, result_n };
}
