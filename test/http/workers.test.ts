import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { until } from "../embeddings/desk.ts";
import { type Serving, sendRaw, serveForTest } from "./serving.ts";

describe("workers and queues over HTTP", () => {
  let serving: Serving;
  let workerId: string;
  before(async () => {
    serving = await serveForTest({ settings: { embeddingModel: "elsewhere" } });
    const registered = await post("/workers/register", {
      host: "far",
      version: "2",
      lanes: ["embeddings"],
      capabilities: { model: "elsewhere", gpu: true },
    });
    assert.equal(registered.status, 201);
    workerId = registered.body.id;
  });
  after(() => serving.close());

  async function ask(path: string, init?: RequestInit) {
    const response = await serving.ask(path, init);
    const text = await response.text();
    return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
  }
  const post = (path: string, body?: unknown) =>
    ask(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  const claim = (more: object = {}) => post("/queues/embeddings/claim", { worker_id: workerId, ...more });

  it("a worker is listed with what it can do, and heard when it beats", async () => {
    const { body } = await ask("/workers");
    assert.equal(body.workers.length, 1);
    const [worker] = body.workers;
    assert.deepEqual(
      [worker.id, worker.kind, worker.host, worker.version, worker.state, worker.pid, worker.capabilities],
      [workerId, "remote", "far", "2", "active", null, { model: "elsewhere", gpu: true }],
    );
    const beat = await post(`/workers/${workerId}/heartbeat`);
    assert.equal(beat.status, 200);
    assert.ok(beat.body.last_heartbeat >= worker.last_heartbeat);
    assert.equal((await post("/workers/nobody/heartbeat")).status, 404);
    assert.deepEqual((await ask("/workers?state=stale")).body, { workers: [] });
  });

  it("tasks are claimed, extended, released, settled; a wrong token gets nothing", async () => {
    const job = await serving.quarry.embeddings.create({ input_text: "here", priority: "high" });
    const { body } = await claim({ limit: 5 });
    assert.deepEqual([body.tasks.length, body.lease_seconds], [1, 120]);
    const [task] = body.tasks;
    assert.deepEqual([task.id, task.attempt, task.max_attempts], [job.id, 1, 3]);
    assert.equal(task.payload.input_text, "here");
    const ticket = { id: task.id, lease_token: task.lease_token };
    const forged = { ...ticket, lease_token: ticket.lease_token + 1 };
    const settle = (...tasks: object[]) => post("/queues/embeddings/settle", { worker_id: workerId, tasks });
    const result = { embedding_vector: [0.6, 0.8] };
    assert.deepEqual((await settle({ ...forged, outcome: "done", result })).body, {
      tasks: [{ id: job.id, verdict: "lost" }],
    });
    const extend = (tasks: object[]) => post("/queues/embeddings/extend", { worker_id: workerId, tasks });
    assert.deepEqual((await extend([ticket])).body, { held: [job.id], lost: [] });
    assert.deepEqual((await extend([forged])).body, { held: [], lost: [job.id] });
    const released = await post("/queues/embeddings/release", { worker_id: workerId, tasks: [ticket] });
    assert.deepEqual(released.body, { tasks: [{ id: job.id, verdict: "released" }] });
    const [again] = (await claim()).body.tasks;
    assert.deepEqual([again.id, again.attempt], [job.id, 1]);
    const done = { id: again.id, lease_token: again.lease_token, outcome: "done", result };
    assert.deepEqual((await settle(done)).body, { tasks: [{ id: job.id, verdict: "done" }] });
    assert.deepEqual((await ask(`/jobs/embedding/${job.id}`)).body.embedding_vector, [
      Math.fround(0.6),
      Math.fround(0.8),
    ]);
  });

  it("a claim waits for work, and stops waiting when the worker has gone", async () => {
    const waiting = claim({ wait_seconds: 60 });
    const job = await serving.quarry.embeddings.create({ input_text: "later" });
    assert.equal((await waiting).body.tasks[0].id, job.id);
    const leaving = new AbortController();
    const gone = serving.ask("/queues/embeddings/claim", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ worker_id: workerId, wait_seconds: 60 }),
      signal: leaving.signal,
    });
    const answered = () => serving.log.filter((line) => line.includes("/claim")).length;
    const before = answered();
    setTimeout(() => leaving.abort(), 50);
    await assert.rejects(gone);
    await until(async () => answered() > before);
    const next = await serving.quarry.embeddings.create({ input_text: "for somebody else" });
    // Who has gone must not take it along.
    assert.equal((await claim({ wait_seconds: 10 })).body.tasks[0].id, next.id);
  });

  it("tasks whose answer never arrives go back, at the cost of no attempt", async () => {
    const text = "too much to read ".repeat(50_000);
    const jobs = await serving.quarry.embeddings.createMany(
      Array.from({ length: 40 }, (_, index) => ({ input_text: `${index} ${text}` })),
    );
    const body = JSON.stringify({ worker_id: workerId, limit: 40 });
    await sendRaw(
      serving.port,
      `POST /queues/embeddings/claim HTTP/1.1\r\nhost: 127.0.0.1:${serving.port}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      /200 OK/,
    );
    await until(async () => {
      const { jobs: waiting } = await serving.quarry.embeddings.list({ status: "pending" });
      return waiting.length === jobs.length;
    });
    for (const { id } of jobs) assert.equal((await serving.quarry.embeddings.read(id)).attempts, 0);
    for (const { id } of jobs) await serving.quarry.embeddings.cancel(id);
  });

  it("queues that are not for workers elsewhere are not there", async () => {
    assert.deepEqual((await ask("/queues")).body, { queues: ["embeddings"] });
    const { status, body } = await post("/queues/chunks.vector/claim", { worker_id: workerId });
    assert.deepEqual([status, body.code], [404, "not_found"]);
  });

  it("a worker that leaves is gone and must register again", async () => {
    assert.equal((await ask(`/workers/${workerId}`, { method: "DELETE" })).status, 204);
    assert.equal((await claim()).status, 404);
    assert.equal((await ask("/workers?state=gone")).body.workers.length, 1);
  });
});
