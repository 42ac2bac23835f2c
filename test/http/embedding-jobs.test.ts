import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { openDatabase } from "../../src/index.ts";
import { until } from "../embeddings/desk.ts";
import { DATABASES } from "../support/databases.ts";
import { type ModelServer, startModelServer } from "../support/model-server.ts";
import { freshPostgres } from "../support/postgres.ts";
import { type Serving, serveForTest } from "./serving.ts";

const post = (body?: unknown) => ({
  method: "POST",
  headers: { "content-type": "application/json" },
  ...(body !== undefined && { body: JSON.stringify(body) }),
});

for (const { name } of DATABASES) {
  describe(`embedding jobs over HTTP on ${name}, with an Ollama that speaks its protocol`, () => {
    let serving: Serving;
    let model: ModelServer;
    let drop: (() => Promise<void>) | undefined;
    before(async () => {
      model = await startModelServer({ refusedWords: "forbidden words" });
      const postgres = name === "PostgreSQL" ? await freshPostgres() : undefined;
      if (postgres) drop = postgres.drop;
      serving = await serveForTest({
        settings: {
          embedder: "ollama:nomic-embed-text",
          ollamaHost: model.url,
          ...(postgres && { databaseUrl: postgres.url }),
        },
      });
      await serving.quarry.work({ lanes: ["embeddings"] });
    });
    after(async () => {
      await serving.close();
      await drop?.();
      await model.close();
    });

    const json = async (path: string, init?: RequestInit) => {
      const response = await serving.ask(path, init);
      return { status: response.status, body: JSON.parse(await response.text()) };
    };
    const finished = async (id: string) => {
      await until(async () =>
        ["completed", "failed"].includes((await json(`/jobs/embedding/${id}`)).body.status),
      );
      return (await json(`/jobs/embedding/${id}`)).body;
    };

    it("a text becomes a vector, and the same text is answered at once", async () => {
      const created = await json(
        "/jobs/embedding",
        post({ input_text: "Granite is hard.", priority: "urgent" }),
      );
      assert.equal(created.status, 201);
      const job = await finished(created.body.id);
      assert.deepEqual(
        [job.status, job.embedding_vector.length, job.embedding_model],
        ["completed", 768, "nomic-embed-text"],
      );
      assert.ok(job.tokens_used > 0);
      const calls = model.requests.length;
      const again = await json("/jobs/embedding", post({ input_text: "Granite is hard." }));
      assert.equal(again.body.status, "completed");
      assert.deepEqual(again.body.embedding_vector, job.embedding_vector);
      assert.equal(model.requests.length, calls);
    });

    it("a batch goes to the model in one call of at most 50", async () => {
      const before = model.requests.length;
      const texts = Array.from({ length: 120 }, (_, index) => ({ input_text: `stone number ${index}` }));
      await serving.quarry.lanes.pause("embeddings");
      const { body } = await json("/jobs/embedding", post(texts));
      await serving.quarry.lanes.resume("embeddings");
      for (const { id } of body) assert.equal((await finished(id)).status, "completed");
      const calls = model.requests.slice(before);
      assert.ok(calls.length <= 5, `${calls.length} calls`);
    });

    it("lists by status, a page at a time, and shows the figures", async () => {
      const first = (await json("/jobs/embedding?status=completed&limit=2")).body;
      const second = (await json(`/jobs/embedding?status=completed&limit=2&after=${first.next}`)).body;
      assert.equal(new Set([...first.jobs, ...second.jobs].map(({ id }) => id)).size, 4);
      assert.equal("embedding_vector" in first.jobs[0], false);
      assert.deepEqual((await json("/jobs/embedding?status=pending")).body, { jobs: [], next: null });
      const stats = (await json("/jobs/embedding/stats")).body;
      assert.equal(stats.model, "nomic-embed-text");
      const completed = stats.workers.map((row: { jobs_completed: number }) => row.jobs_completed);
      assert.ok(Math.max(...completed) > 100);
    });

    it("a job is cancelled while it waits, and not afterwards", async () => {
      await serving.quarry.lanes.pause("embeddings");
      const { body: job } = await json("/jobs/embedding", post({ input_text: "never mind" }));
      const cancel = () => json(`/jobs/embedding/${job.id}`, { method: "DELETE" });
      assert.deepEqual((await cancel()).body, { id: job.id, verdict: "cancelled" });
      assert.equal((await cancel()).status, 404);
      await serving.quarry.lanes.resume("embeddings");
      const { body: done } = await json("/jobs/embedding", post({ input_text: "Granite is hard." }));
      const late = await json(`/jobs/embedding/${done.id}`, { method: "DELETE" });
      assert.deepEqual([late.status, late.body.code], [409, "too_late"]);
    });

    it("a text that the model refuses fails alone, is a dead letter, and can be driven again", async () => {
      const texts = ["plain one", "has forbidden words", "plain two"];
      const { body } = await json("/jobs/embedding", post(texts.map((input_text) => ({ input_text }))));
      const jobs = [];
      for (const { id } of body) jobs.push(await finished(id));
      assert.deepEqual(
        jobs.map(({ status }) => status),
        ["completed", "failed", "completed"],
      );
      const failed = (await json("/jobs/embedding?status=failed")).body.jobs;
      assert.deepEqual([failed.length, failed[0].id], [1, body[1].id]);
      assert.match(failed[0].error_message, /400/);
      const late = await json(`/jobs/embedding/${body[1].id}`, { method: "DELETE" });
      assert.deepEqual([late.status, late.body.code], [409, "too_late"]);
      await serving.quarry.lanes.pause("embeddings");
      const redriven = await json("/jobs/embedding/dead-letters/redrive", post({ ids: [body[1].id] }));
      assert.deepEqual(redriven.body, { count: 1 });
      assert.equal((await json(`/jobs/embedding/${body[1].id}`)).body.status, "pending");
      await serving.quarry.lanes.resume("embeddings");
      await finished(body[1].id);
      const many = await json(
        "/jobs/embedding",
        post(Array.from({ length: 1_001 }, () => ({ input_text: "x" }))),
      );
      assert.equal(many.status, 400);
      assert.match(JSON.stringify(many.body), /1000/);
      const slip = await json("/jobs/embedding/dead-letters/purge", post({}));
      assert.equal(slip.status, 400);
      assert.match(slip.body.detail, /name the ids, or say all: true/);
      const purged = await json("/jobs/embedding/dead-letters/purge", post({ all: true }));
      assert.deepEqual(purged.body, { count: 1 });
      assert.equal((await json(`/jobs/embedding/${body[1].id}`)).status, 404);
    });

    it("a service that says when to come back is waited for, at the cost of no attempt", async () => {
      model.misbehave({ kind: "status", status: 429, headers: { "retry-after": "1" } });
      const { body } = await json("/jobs/embedding", post({ input_text: "patience" }));
      const job = await finished(body.id);
      assert.deepEqual([job.status, job.attempts], ["completed", 1]);
    });
  });
}

describe("workers in any language", () => {
  it("the example in Python embeds through the server", async () => {
    const serving = await serveForTest({
      settings: { embeddingModel: "letters", apiKey: "work+read+write=canary-key-0123456789" },
    });
    const python = spawn(
      "python3",
      [join(import.meta.dirname, "../../docs/examples/embedding_worker.py"), serving.url],
      {
        env: { ...process.env, QUARRY_API_KEY: "canary-key-0123456789" },
        stdio: ["ignore", "ignore", "inherit"],
      },
    );
    try {
      const { id } = await serving.quarry.embeddings.create({ input_text: "Abba" });
      const rest = await serving.quarry.embeddings.createMany(
        Array.from({ length: 120 }, (_, index) => ({ input_text: `text ${index} zzz` })),
      );
      for (const job of [{ id }, ...rest])
        await until(async () => (await serving.quarry.embeddings.read(job.id)).status === "completed");
      const job = await serving.quarry.embeddings.read(id);
      assert.equal(job.embedding_dimensions, 26);
      assert.deepEqual(
        [...job.embedding_vector!.slice(0, 3)],
        [Math.fround(Math.SQRT1_2), Math.fround(Math.SQRT1_2), 0],
      );
      const [worker] = await serving.quarry.workers();
      assert.deepEqual([worker!.kind, worker!.version, worker!.lanes], ["remote", "1.0", ["embeddings"]]);
      assert.equal(job.worker_id, worker!.id);
      // Whose vectors are of another length than those before fails alone, and says why.
      const database = openDatabase(join(serving.folder, "quarry.db"));
      await database.query("update embedding_jobs set embedding_dimensions = 25");
      await database.close();
      const refused = await serving.quarry.embeddings.create({ input_text: "refused" });
      await until(async () => (await serving.quarry.embeddings.read(refused.id)).status === "failed");
      const { error_message: reason } = await serving.quarry.embeddings.read(refused.id);
      assert.match(reason!, /a vector of 26 dimensions, where those of letters have 25/);
    } finally {
      python.kill();
      await once(python, "exit");
      await serving.close();
    }
  });
});
