import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  createJanitor,
  createLog,
  createWorker,
  type Database,
  defineLane,
  defineQueue,
  done,
  failed,
  fixedDelays,
  type LaneDeclaration,
  openDatabase,
  openQueue,
  QuarryError,
  type QueueDeclaration,
  type QueueStore,
  released,
  type Task,
  type Worker,
  type WorkerSettings,
} from "../../src/index.ts";
import { type Points, withPoints } from "../support/points.ts";
import { freshPostgres } from "../support/postgres.ts";
import { type MailPayload, rowOf, schema, sms, steps } from "./fixture.ts";

/** Polls so rarely that a test which needs a poll to pass runs into its time limit. */
const NEVER_MS = 600_000;
const TIMEOUT = { timeout: 20_000 };
const it = (name: string, work: () => Promise<void>) => test(name, TIMEOUT, work);

const hasty = defineQueue<MailPayload>({
  ...(sms as QueueDeclaration<MailPayload>),
  lease: { ms: 500 },
  retry: fixedDelays(0),
});

const OPENERS: Record<string, () => Promise<{ url: string; drop: () => Promise<void> }>> = {
  SQLite: async () => {
    const folder = await mkdtemp(join(tmpdir(), "quarry-worker-"));
    return { url: join(folder, "quarry.db"), drop: () => rm(folder, { recursive: true }) };
  },
  PostgreSQL: freshPostgres,
};

for (const [name, open] of Object.entries(OPENERS)) {
  describe(`workers on ${name}`, () => {
    let url: string;
    let drop: () => Promise<void>;
    let database: Database;
    let points: Points;
    let store: QueueStore<MailPayload>;
    let workers: Worker[] = [];

    before(async () => {
      ({ url, drop } = await open());
      const real = openDatabase(url);
      for (const sql of schema(real.dialect.name)) await real.query(sql);
      ({ database, points } = withPoints(real));
      store = openQueue(database, hasty);
    });
    after(async () => {
      await database.close();
      await drop();
    });
    beforeEach(async () => {
      await database.query("delete from messages");
      await database.query("delete from steps");
      points.counts.clear();
    });
    afterEach(async () => {
      await Promise.all(workers.map((worker) => worker.stop()));
      workers = [];
    });

    const enqueue = async (count: number) =>
      (
        await store.enqueue(
          Array.from({ length: count }, (_unused, n) => ({ recipient: `r${n}`, payload: { n } })),
        )
      ).map(({ key }) => key);
    const work = (
      lane: Omit<LaneDeclaration<MailPayload>, "queue">,
      settings: Pick<WorkerSettings, "graceMs" | "log" | "onWait"> = {},
    ): Worker => {
      const lanes = [defineLane({ queue: hasty, pollMs: NEVER_MS, ...lane })];
      const worker = createWorker({ database, lanes, graceMs: 2_000, ...settings }).start();
      workers.push(worker);
      return worker;
    };
    const until = async (condition: () => Promise<boolean> | boolean) => {
      while (!(await condition())) await sleep(5);
    };
    const count = async (status: string) => (await store.countByStatus()).get(status) ?? 0;
    const statement = (verb: string) => points.counts.get(`sms.${verb}`) ?? 0;

    it("every row is handled once and settled", async () => {
      await enqueue(500);
      const seen: string[] = [];
      const worker = work({ handle: (task) => void seen.push(task.row.recipient) });
      // The worker hears of a commit a little later than others may see it.
      await until(async () => worker.stats.sms!.settled.done >= 500);
      assert.equal(await count("completed"), 500);
      assert.equal(new Set(seen).size, 500);
      assert.equal(seen.length, 500);
      assert.equal(worker.stats.sms!.settled.done, 500);
      assert.ok(statement("complete") < 250, `${statement("complete")} settlements were written one by one`);
    });

    it("no more handlers run at once than the lane allows", async () => {
      await enqueue(40);
      let running = 0;
      let most = 0;
      work({
        concurrency: 7,
        handle: async () => {
          most = Math.max(most, ++running);
          await sleep(2);
          running--;
        },
      });
      await until(async () => (await count("completed")) === 40);
      assert.equal(most, 7);
    });

    it("a lane of long tasks holds only what it runs", async () => {
      await enqueue(20);
      const release = Promise.withResolvers<void>();
      let started = 0;
      const worker = work({
        concurrency: 3,
        handle: async () => {
          started++;
          await release.promise;
        },
      });
      await until(() => started === 3);
      await sleep(50);
      assert.equal(await count("processing"), 3);
      assert.equal(worker.stats.sms!.waiting, 0);
      release.resolve();
      await until(async () => (await count("completed")) === 20);
    });

    it("short tasks are claimed in advance, many at a time", async () => {
      await enqueue(2_000);
      work({ concurrency: 1, handle: () => undefined });
      await until(async () => (await count("completed")) === 2_000);
      assert.ok(statement("claim") < 60, `${statement("claim")} claims for 2,000 rows`);
    });

    it("a batch handler is given several rows and answers for each", async () => {
      await enqueue(25);
      const sizes: number[] = [];
      work({
        batchSize: 10,
        concurrency: 1,
        handleBatch: async (tasks) => {
          sizes.push(tasks.length);
          return tasks.map((task) =>
            Number(task.row.recipient.slice(1)) % 5 === 0 ? failed("five") : undefined,
          );
        },
      });
      await until(async () => (await count("completed")) === 20 && (await count("failed")) === 5);
      assert.deepEqual(sizes.toSorted((a, b) => a - b).slice(-2), [10, 10]);
      const { rows } = await store.list({ status: "failed" });
      assert.ok(rows.every(({ row }) => row.error_message === "five"));
    });

    it("a batch handler that answers for too few rows has answered for none", async () => {
      await enqueue(2);
      work({ batchSize: 2, handleBatch: async () => [done()] });
      await until(async () => (await count("failed")) === 2);
      const { rows } = await store.list();
      assert.match(String(rows[0]!.row.error_message), /given 2 rows and returned 1 outcomes/);
    });

    it("a handler that throws is retried until its attempts are spent, with the reason", async () => {
      const [key] = await enqueue(1);
      let calls = 0;
      work({
        handle: () => {
          calls++;
          throw new TypeError(`broken ${calls}`);
        },
      });
      await until(async () => (await count("failed")) === 1);
      const row = await rowOf(database, "messages", key!);
      assert.deepEqual([calls, row.attempts, row.error_message], [3, 3, "TypeError: broken 3"]);
    });

    it("what is no outcome is said to be none", async () => {
      const [key] = await enqueue(1);
      work({ handle: () => "ok" as never });
      await until(async () => (await count("failed")) === 1);
      assert.match(
        String((await rowOf(database, "messages", key!)).error_message),
        /returned "ok", which is no outcome/,
      );
    });

    it("heartbeats keep a long task's lease, in one statement for all of them", async () => {
      await enqueue(20);
      const janitor = createJanitor({ database, queues: [hasty], everyMs: 50 }).start();
      let calls = 0;
      work({
        concurrency: 20,
        handle: async () => {
          calls++;
          await sleep(1_500);
        },
      });
      await until(async () => (await count("completed")) === 20);
      await janitor.stop();
      assert.equal(calls, 20);
      const beats = statement("extend");
      assert.ok(beats >= 3 && beats <= 20, `${beats} heartbeats`);
    });

    // SQLite has one connection and one writer: there a handler's transaction has to be short.
    if (name === "PostgreSQL") {
      it("handlers that keep every connection busy do not cost each other their leases", async () => {
        const busy = openDatabase(url, { poolMax: 2 });
        const janitor = createJanitor({ database, queues: [hasty], everyMs: 50 }).start();
        await enqueue(2);
        let calls = 0;
        const handle = async () => {
          calls++;
          await busy.transaction((transaction) => transaction.query("select pg_sleep(1.5)"));
        };
        const lanes = [defineLane({ queue: hasty, concurrency: 2, pollMs: NEVER_MS, handle })];
        const worker = createWorker({ database: busy, lanes }).start();
        await until(async () => (await count("completed")) === 2);
        await worker.stop();
        await janitor.stop();
        await busy.close();
        assert.equal(calls, 2);
      });
    }

    it("a handler is told when its lease is lost, and its outcome is discarded", async () => {
      const [key] = await enqueue(1);
      const lost = Promise.withResolvers<unknown>();
      const worker = work({
        handle: async ({ signal }) => {
          await aborted(signal);
          lost.resolve(signal.reason);
        },
      });
      await until(async () => (await count("processing")) === 1);
      await database.query("update messages set lease_token = lease_token + 1, worker_id = 'thief'");
      const reason = await lost.promise;
      assert.ok(reason instanceof QuarryError && reason.code === "lease_lost");
      await until(() => worker.stats.sms!.settled.lost === 1);
      const row = await rowOf(database, "messages", key!);
      assert.deepEqual([row.status, row.worker_id], ["processing", "thief"]);
    });

    it("a cancel reaches the handler at once, not at the next heartbeat", async () => {
      const patient = defineQueue<MailPayload>({
        ...(sms as QueueDeclaration<MailPayload>),
        lease: { ms: NEVER_MS },
      });
      const [key] = await enqueue(1);
      const stopped = Promise.withResolvers<void>();
      const lanes = [
        defineLane({
          queue: patient,
          handle: async ({ signal }: Task<MailPayload>) => {
            await aborted(signal);
            stopped.resolve();
          },
        }),
      ];
      workers.push(createWorker({ database, lanes, graceMs: 1_000 }).start());
      await until(async () => (await count("processing")) === 1);
      const verdicts = await store.cancel([key!]);
      assert.equal(verdicts.get(key!), "aborted");
      await stopped.promise;
      assert.equal(await count("processing"), 0);
    });

    it("a handler that takes too long is aborted and its row retried", async () => {
      const [key] = await enqueue(1);
      let calls = 0;
      work({
        deadlineMs: 50,
        handle: async ({ signal }) => {
          calls++;
          await aborted(signal);
          throw signal.reason;
        },
      });
      await until(async () => (await count("failed")) === 1);
      const row = await rowOf(database, "messages", key!);
      assert.deepEqual([calls, row.error_message], [3, "took longer than 50 ms"]);
    });

    it("a handler that ignores its deadline keeps neither its row nor its place", async () => {
      await enqueue(1);
      const forever = Promise.withResolvers<void>();
      let calls = 0;
      work({
        deadlineMs: 30,
        concurrency: 1,
        handle: async () => {
          calls++;
          await forever.promise;
        },
      });
      await until(async () => (await count("failed")) === 1);
      assert.equal(calls, 3);
      forever.resolve();
    });

    it("stopping lets handlers finish and gives back the rest, without spending an attempt", async () => {
      await enqueue(30);
      let started = 0;
      const worker = work({
        concurrency: 2,
        handle: async () => {
          started++;
          await sleep(20);
        },
      });
      await until(() => started >= 4);
      await worker.stop();
      assert.equal(await count("processing"), 0);
      assert.equal(await count("completed"), started);
      const { rows } = await store.list({ status: "pending" });
      assert.ok(rows.every(({ row }) => row.attempts === 0 && row.error_message === null));
    });

    it("a handler that just returns when it is aborted has not done its work", async () => {
      await enqueue(1);
      const worker = work({ handle: ({ signal }) => aborted(signal) }, { graceMs: 30 });
      await until(async () => (await count("processing")) === 1);
      await worker.stop();
      assert.deepEqual([await count("completed"), await count("pending")], [0, 1]);
    });

    it("handlers that wait for other lanes are not waited for when all stop, and cost no attempt", async () => {
      const [key] = await enqueue(1);
      const worker = work(
        { isWaitingForOthers: true, handle: ({ signal }) => aborted(signal) },
        { graceMs: NEVER_MS },
      );
      await until(async () => (await count("processing")) === 1);
      await worker.stop();
      const row = await rowOf(database, "messages", key!);
      assert.deepEqual([row.status, Number(row.attempts)], ["pending", 0]);
    });

    it("a handler that does not finish in time is aborted and its row given back", async () => {
      await enqueue(2);
      const reasons: unknown[] = [];
      const worker = work(
        {
          handle: async ({ signal }) => {
            await aborted(signal);
            reasons.push((signal.reason as QuarryError).code);
            throw signal.reason;
          },
        },
        { graceMs: 30 },
      );
      await until(async () => (await count("processing")) === 2);
      await worker.stop();
      assert.deepEqual(reasons, ["shutting_down", "shutting_down"]);
      const { rows } = await store.list({ status: "pending" });
      assert.deepEqual(
        rows.map(({ row }) => row.attempts),
        [0, 0],
      );
    });

    it("a handler that ignores the abort does not keep the worker from stopping", async () => {
      const [key] = await enqueue(1);
      const forever = Promise.withResolvers<void>();
      const worker = work({ handle: () => forever.promise }, { graceMs: 30 });
      await until(async () => (await count("processing")) === 1);
      await worker.stop();
      assert.equal((await rowOf(database, "messages", key!)).status, "pending");
      forever.resolve();
      await sleep(10);
      assert.equal((await rowOf(database, "messages", key!)).status, "pending");
    });

    it("rows enqueued by another process wake the worker", async () => {
      const other = openDatabase(url);
      let handled = 0;
      work({ handle: () => void handled++ });
      await sleep(100);
      await openQueue(other, hasty).enqueue([{ recipient: "hello" }]);
      await until(() => handled === 1);
      await other.close();
    });

    it("a delayed row starts when it is due, not at the next poll", async () => {
      await store.enqueue([{ recipient: "later" }], { delayMs: 80 });
      let handled = 0;
      // Within its poll interval a lane looks ahead; here that is ten minutes.
      work({ handle: () => void handled++ });
      await until(() => handled === 1);
    });

    it("one outcome that the database refuses fails its own row only", async () => {
      const keys = await enqueue(5);
      work({ handle: ({ key }) => done({ priority: key === keys[2] ? 99 : 1 }) });
      await until(async () => (await count("completed")) === 4 && (await count("failed")) === 1);
      const row = await rowOf(database, "messages", keys[2]!);
      assert.match(String(row.error_message), /the outcome could not be written: /);
    });

    it("outcomes are kept while the database is away, and written when it is back", async () => {
      await enqueue(3);
      const away = () => new QuarryError("database_unavailable", "gone fishing");
      for (let i = 0; i < 3; i++) points.fail("before sms.complete", away());
      points.fail("before sms.claim", away());
      let calls = 0;
      const worker = work({ handle: () => void calls++ });
      await until(async () => (await count("completed")) === 3);
      assert.equal(calls, 3);
      await until(() => worker.stats.sms!.settled.done === 3);
    });

    it("a lane whose tasks need what is away says so once, and once when it goes on", async () => {
      const said: string[] = [];
      const log = createLog({
        level: "warn",
        destination: { write: (line) => void said.push(JSON.parse(line).msg) },
      });
      let isAway = true;
      let tries = 0;
      let news = 0;
      const lane = {
        concurrency: 4,
        handle: async () => {
          tries++;
          await sleep(1);
          return isAway ? released(20, "the bucket does not answer") : done();
        },
      };
      const worker = work(lane, { log, onWait: () => void news++ });
      await enqueue(8);
      await until(() => tries > 40);
      const [wait, ...others] = worker.waits;
      assert.deepEqual([wait?.lane, wait?.reason, others], ["sms", "the bucket does not answer", []]);
      assert.deepEqual(said, ["waits for what is away"]);
      assert.equal(news, 1);
      isAway = false;
      await until(async () => (await count("completed")) === 8);
      await until(() => worker.waits.length === 0);
      assert.deepEqual(said, ["waits for what is away", "waits no longer"]);
      assert.equal(news, 2);
    });

    it("a settlement whose answer was lost is recognised and not counted twice", async () => {
      await enqueue(3);
      points.fail("after sms.complete", new QuarryError("commit_unknown", "the answer was lost"));
      const worker = work({ handle: () => undefined });
      await until(() => worker.stats.sms!.settled.done === 3);
      assert.equal(worker.stats.sms!.settled.lost, 0);
    });

    it("a paused lane claims nothing until it is resumed", async () => {
      let handled = 0;
      const worker = work({ handle: () => void handled++ });
      await worker.lane("sms").pause();
      await enqueue(3);
      await sleep(50);
      assert.equal(handled, 0);
      worker.lane("sms").resume();
      await until(() => handled === 3);
    });

    it("several workers share a queue without doing anything twice", async () => {
      await enqueue(600);
      const seen: unknown[] = [];
      for (let i = 0; i < 4; i++) work({ concurrency: 3, handle: (task) => void seen.push(task.key) });
      await until(async () => (await count("completed")) === 600);
      assert.equal(seen.length, 600);
      assert.equal(new Set(seen).size, 600);
    });

    it("groups run one at a time, in order, over several workers", async () => {
      const rows = Array.from({ length: 120 }, (_unused, n) => ({
        entity_type: "w",
        entity_id: `e${n % 6}`,
        position: n,
      }));
      await openQueue(database, steps).enqueue(rows);
      const order = new Map<string, number[]>();
      const running = new Set<string>();
      const lane = () =>
        defineLane({
          queue: steps,
          pollMs: NEVER_MS,
          handle: async ({ row }: Task<{ entity_id: string; position: number; entity_type: string }>) => {
            assert.ok(!running.has(row.entity_id), `${row.entity_id} runs twice`);
            running.add(row.entity_id);
            order.set(row.entity_id, [...(order.get(row.entity_id) ?? []), row.position]);
            await sleep(1);
            running.delete(row.entity_id);
          },
        });
      for (let i = 0; i < 3; i++)
        workers.push(createWorker({ database, lanes: [lane()], graceMs: 1_000 }).start());
      const finished = openQueue(database, steps);
      await until(async () => (await finished.countByStatus()).get("completed") === 120);
      for (const positions of order.values())
        assert.deepEqual(
          positions,
          positions.toSorted((a, b) => a - b),
        );
    });

    it("janitors in every process rescue each row once", async () => {
      await enqueue(50);
      await store.claim({ worker: "dead", limit: 50 });
      await sleep(600);
      const janitors = Array.from({ length: 4 }, () => createJanitor({ database, queues: [hasty] }));
      const sweeps = await Promise.all(janitors.map((janitor) => janitor.sweep()));
      assert.equal(
        sweeps.reduce((sum, sweep) => sum + sweep.rescued, 0),
        50,
      );
      const { rows } = await store.list({ limit: 100 });
      assert.ok(rows.every(({ row }) => row.attempts === 1 && row.status === "pending"));
    });
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
