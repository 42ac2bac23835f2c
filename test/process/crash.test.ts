import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openDatabase, openQueue } from "../../src/index.ts";
import { eventually } from "../support/crash/patience.ts";
import { WorkerProcess } from "../support/crash/processes.ts";
import { CRASH_DATABASES, testCrash } from "../support/crash/suite.ts";
import { createCrashTables } from "../support/crash/tables.ts";
import { LEASE_MS, tasks } from "../support/crash/worker.ts";

testCrash({ tasks: 400, kills: 20, stops: 2, terminations: 8, restarts: 1, timeoutMs: 120_000 });

describe("worker processes that hold rows for long", () => {
  for (const [name, open] of Object.entries(CRASH_DATABASES)) {
    test(`on ${name}, they do not set off each other's heartbeats`, { timeout: 60_000 }, async (t) => {
      const { url, drop } = await open();
      const database = openDatabase(url);
      const workers: WorkerProcess[] = [];
      t.after(async () => {
        await Promise.all(workers.map((worker) => worker.end()));
        await database.close();
        await drop();
      });
      await createCrashTables(database);
      const rows = Array.from({ length: 8 }, (_unused, n) => ({ n, sleep_ms: 60_000 }));
      await openQueue(database, tasks).enqueue(rows);
      for (let i = 1; i <= 4; i++) workers.push(new WorkerProcess({ url, label: `w${i}`, concurrency: 2 }));
      const hasBegun = () => workers.reduce((sum, worker) => sum + worker.began.length, 0) === rows.length;
      await eventually(hasBegun, () => `not all rows began: ${workers.map((worker) => worker.lastWords)}`);

      const leases = new Set<unknown>();
      const beats = 6;
      const endsAt = performance.now() + (beats * LEASE_MS) / 3;
      while (performance.now() < endsAt) {
        const [row] = await database.query("select lease_until from tasks where n = 0");
        leases.add(row!.lease_until);
        await sleep(2);
      }

      assert.ok(leases.size >= beats / 2, `the lease was renewed only ${leases.size - 1} times`);
      assert.ok(
        leases.size <= beats * 3,
        `the lease was renewed ${leases.size - 1} times in ${beats} heartbeats`,
      );
    });
  }
});
