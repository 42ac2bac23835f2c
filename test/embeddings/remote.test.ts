import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { remoteEmbeddings } from "../../src/embeddings/remote.ts";
import { Pauses } from "../../src/queue/pauses.ts";
import { RemoteWork } from "../../src/queue/remote.ts";
import { WorkerProcesses } from "../../src/queue/worker-processes.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import { type Desk, openDesk } from "./desk.ts";

const HOUR_MS = 3_600_000;

for (const { name, open } of DATABASES) {
  describe(`workers elsewhere on ${name}`, () => {
    let test: TestDatabase;
    let desk: Desk;
    let remote: RemoteWork;
    let worker: string;
    before(async () => {
      test = await open();
      desk = await openDesk(test);
      const { database } = test;
      remote = new RemoteWork({
        database,
        workers: new WorkerProcesses(database, { silentMs: 60_000 }),
        queues: [remoteEmbeddings({ database, queue: desk.store.queue })],
        pollMs: 50,
      });
    });
    after(() => test.close());
    beforeEach(async () => {
      for (const table of ["embedding_jobs", "embedding_job_failures", "rules", "worker_processes"])
        await test.database.query(`delete from ${table}`);
      worker = (await remote.register({ host: "elsewhere", version: "9.9", lanes: [], capabilities: {} })).id;
    });

    const { signal } = new AbortController();
    const claim = (limit = 1, waitMs = 0) => remote.claim("embeddings", { worker, limit, waitMs, signal });
    const vector = [1, 0, 0, 0, 0, 0, 0, 0];

    it("claim, renew and settle what others would have done", async () => {
      const job = await desk.jobs.create({ input_text: "far away" });
      const { claims, leaseMs } = await claim(10);
      assert.deepEqual([claims.length, leaseMs], [1, 60_000]);
      const [task] = claims;
      assert.equal((task!.row as { input_text: string }).input_text, "far away");
      assert.deepEqual(await remote.extend("embeddings", worker, [task!]), new Set([job.id]));
      const done = { ...task!, kind: "done" as const, result: { embedding_vector: vector, tokens_used: 2 } };
      assert.deepEqual(await remote.settle("embeddings", worker, [done]), ["done"]);
      const settled = await desk.jobs.read(job.id);
      assert.deepEqual(
        [settled.status, [...settled.embedding_vector!], settled.worker_id, settled.worker_version],
        ["completed", vector, worker, "9.9"],
      );
      assert.deepEqual([settled.embedding_dimensions, settled.tokens_used], [8, 2]);
      // The answer was lost, so the worker asks again.
      assert.deepEqual(await remote.settle("embeddings", worker, [done]), ["done"]);
    });

    it("wait for work to come", async () => {
      const waiting = claim(1, 60_000);
      await desk.jobs.create({ input_text: "late" });
      assert.equal((await waiting).claims.length, 1);
      assert.equal((await claim(1, 1)).claims.length, 0);
    });

    it("are given retries when they are due, without a janitor", async () => {
      await desk.jobs.create({ input_text: "again" });
      const [task] = (await claim()).claims;
      await remote.settle("embeddings", worker, [{ ...task!, kind: "retry", reason: "busy", delayMs: 30 }]);
      const [again] = (await claim(1, 60_000)).claims;
      assert.deepEqual([again!.key, again!.attempt], [task!.key, 2]);
    });

    it("wait longer after each failure, as the queue says", async () => {
      const { id } = await desk.jobs.create({ input_text: "stubborn" });
      for (const seconds of [60, 120]) {
        await desk.query("update embedding_jobs set run_after = null");
        await desk.store.repair();
        const [task] = (await claim()).claims;
        assert.deepEqual(
          await remote.settle("embeddings", worker, [{ ...task!, kind: "retry", reason: "no" }]),
          ["retrying"],
        );
        const { run_after: due, started_at: started } = await desk.jobs.read(id);
        const waitMs = Date.parse(due!) - Date.parse(started!);
        assert.ok(waitMs >= seconds * 1_000 && waitMs < seconds * 1_000 + 30_000);
      }
    });

    it("that lost their lease write nothing", async () => {
      const job = await desk.jobs.create({ input_text: "contested" });
      const [stale] = (await claim()).claims;
      await desk.store.expireLeases([worker]);
      await desk.store.rescueStale();
      const [fresh] = (await claim()).claims;
      const result = { embedding_vector: vector };
      assert.deepEqual(await remote.settle("embeddings", worker, [{ ...stale!, kind: "done", result }]), [
        "lost",
      ]);
      assert.deepEqual(await remote.extend("embeddings", worker, [stale!]), new Set());
      assert.equal((await desk.jobs.read(job.id)).status, "processing");
      assert.deepEqual(await remote.settle("embeddings", worker, [{ ...fresh!, kind: "released" }]), [
        "released",
      ]);
      const back = await desk.jobs.read(job.id);
      assert.deepEqual([back.status, back.attempts], ["pending", 1]);
    });

    it("may not write about what another worker holds, even with its token", async () => {
      const job = await desk.jobs.create({ input_text: "not yours" });
      const [task] = (await claim()).claims;
      const { id: other } = await remote.register({ host: "x", lanes: [], capabilities: {} });
      const result = { embedding_vector: vector };
      for (const outcome of [
        { kind: "done" as const, result },
        { kind: "failed" as const, reason: "mischief" },
        { kind: "released" as const },
      ])
        assert.deepEqual(await remote.settle("embeddings", other, [{ ...task!, ...outcome }]), ["lost"]);
      assert.deepEqual(await remote.extend("embeddings", other, [task!]), new Set());
      assert.equal((await desk.jobs.read(job.id)).status, "processing");
      assert.deepEqual(await remote.settle("embeddings", worker, [{ ...task!, kind: "done", result }]), [
        "done",
      ]);
    });

    it("may not speak for a process of this program", async () => {
      const workers = new WorkerProcesses(test.database, { silentMs: 60_000 });
      await workers.beat("a-process", ["embeddings"]);
      await assert.rejects(remote.leave("a-process"), { code: "not_found" });
      await assert.rejects(remote.heartbeat("a-process"), { code: "not_found" });
      const asProcess = { worker: "a-process", limit: 1, waitMs: 0, signal };
      await assert.rejects(remote.claim("embeddings", asProcess), { code: "not_found" });
      assert.deepEqual(await workers.gone(), []);
    });

    it("are given nothing while their lane is paused, and go on at once afterwards", async () => {
      const pauses = new Pauses(test.database);
      await pauses.pause("embeddings");
      await desk.jobs.create({ input_text: "rests" });
      assert.deepEqual((await claim()).claims, []);
      const waiting = claim(1, 60_000);
      await pauses.resume("embeddings");
      assert.equal((await waiting).claims.length, 1);
    });

    it("that hand in nonsense are refused, and the task stays theirs", async () => {
      await desk.jobs.createMany([{ input_text: "one" }, { input_text: "two" }]);
      const { claims } = await claim(2);
      const wrong: [Record<string, unknown>, RegExp][] = [
        [{}, /embedding_vector/],
        [{ embedding_vector: [] }, /embedding_vector/],
        [{ embedding_vector: ["x"] }, /embedding_vector/],
        [{ embedding_vector: [Number.NaN] }, /embedding_vector/],
        [{ embedding_vector: [1e308] }, /embedding_vector/],
        [{ embedding_vector: vector, status: "failed" }, /status/],
        [{ embedding_vector: vector, tokens_used: -1 }, /tokens_used/],
      ];
      for (const [result, message] of wrong)
        await assert.rejects(remote.settle("embeddings", worker, [{ ...claims[0]!, kind: "done", result }]), {
          code: "invalid_input",
          message,
        });
      const settle = (lengths: readonly number[]) =>
        remote.settle(
          "embeddings",
          worker,
          lengths.map((length, index) => ({
            ...claims[index]!,
            kind: "done",
            result: { embedding_vector: Array(length).fill(0.5) },
          })),
        );
      await assert.rejects(settle([8, 7]), { code: "invalid_input", message: /7 dimensions/ });
      assert.deepEqual(await settle([8, 8]), ["done", "done"]);
      await desk.jobs.create({ input_text: "three" });
      const [third] = (await claim()).claims;
      const result = { embedding_vector: [1, 2, 3] };
      await assert.rejects(remote.settle("embeddings", worker, [{ ...third!, kind: "done", result }]), {
        message: /3 dimensions/,
      });
    });

    it("that nobody knows must register first, and queues of our own are not theirs", async () => {
      const stranger = { worker: "nobody", limit: 1, waitMs: 0, signal };
      await assert.rejects(remote.claim("embeddings", stranger), { code: "not_found", message: /register/ });
      await assert.rejects(remote.claim("chunks.vector", { ...stranger, worker }), {
        code: "not_found",
        message: /there are embeddings/,
      });
      await remote.leave(worker);
      await assert.rejects(claim(), { code: "not_found", message: /register again/ });
    });

    it("are active, then stale, then gone", async () => {
      const workers = new WorkerProcesses(test.database, { silentMs: 60_000 });
      const states = async () => (await workers.list(["active", "stale", "gone"])).map(({ state }) => state);
      const silentSince = (ms: number) =>
        desk.query(`update worker_processes set last_heartbeat = ${test.database.dialect.mark(1)}`, [
          new Date(Date.now() - ms).toISOString(),
        ]);
      assert.deepEqual(await states(), ["active"]);
      await silentSince(90_000);
      assert.deepEqual(await states(), ["stale"]);
      await remote.heartbeat(worker);
      assert.deepEqual(await states(), ["active"]);
      await silentSince(HOUR_MS);
      assert.deepEqual(await states(), ["gone"]);
      assert.deepEqual(await workers.list(), []);
    });

    it("write down the hash of what a rule's own trigger made", async () => {
      await desk.query("insert into rules (rule_id, title, guidance) values ('R', 'a', 'b')");
      const [task] = (await claim()).claims;
      await remote.settle("embeddings", worker, [
        { ...task!, kind: "done", result: { embedding_vector: vector } },
      ]);
      const [row] = await desk.query(
        "select j.text_hash, r.embedding_text_hash from embedding_jobs as j join rules as r on r.id = j.rule_id",
      );
      assert.match(String(row!.text_hash), /^[0-9a-f]{32}$/);
      assert.equal(row!.embedding_text_hash, row!.text_hash);
    });
  });
}
