import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, beforeEach, describe, it } from "node:test";
import { QuarryError } from "../../src/index.ts";
import { DATABASES, PGVECTOR, type TestDatabase } from "../support/databases.ts";
import { type Desk, MODEL, openDesk, until, vectorOf } from "./desk.ts";

for (const { name, open } of [...DATABASES, PGVECTOR]) {
  describe(`embedding jobs on ${name}`, () => {
    let test: TestDatabase;
    let desk: Desk;
    before(async () => {
      test = await open();
    });
    after(() => test.close());
    beforeEach(async () => {
      for (const table of ["embedding_jobs", "embedding_job_failures", "rules", "projects"])
        await test.database.query(`delete from ${table}`);
      desk = await openDesk(test);
    });

    const isDone = (id: string) => async () =>
      ["completed", "failed"].includes((await desk.jobs.read(id)).status);

    it("become vectors, with who made them, how long it took and what it cost", async () => {
      const job = await desk.jobs.create({ input_text: "Granite is hard.", priority: "high" });
      assert.deepEqual(
        [job.status, job.priority, job.embedding_model, job.attempts, job.max_attempts, job.text_hash],
        ["pending", "high", MODEL, 0, 3, createHash("md5").update("Granite is hard.").digest("hex")],
      );
      const crew = await desk.work();
      await until(isDone(job.id));
      const done = await desk.jobs.read(job.id);
      assert.equal(done.status, "completed");
      assert.deepEqual(done.embedding_vector, vectorOf("Granite is hard."));
      assert.deepEqual(
        [done.embedding_dimensions, done.tokens_used, done.worker_version, done.worker_id, done.attempts],
        [8, 10, "1.2.3", crew.worker.id, 1],
      );
      assert.ok(done.processing_time_ms! >= 0 && done.completed_at! >= done.started_at!);
      await crew.stop();
    });

    it("with a text that was embedded before are answered at once", async () => {
      const first = await desk.jobs.create({ input_text: "slate" });
      const crew = await desk.work();
      await until(isDone(first.id));
      await crew.stop();
      const second = await desk.jobs.create({ input_text: "slate" });
      assert.equal(second.status, "completed");
      assert.deepEqual(second.embedding_vector, vectorOf("slate"));
      assert.deepEqual(desk.calls, [["slate"]]);
    });

    it("of the same text are embedded once, however many wait", async () => {
      const jobs = await desk.jobs.createMany(Array(30).fill({ input_text: "marble" }));
      const crew = await desk.work();
      for (const job of jobs) await until(isDone(job.id));
      await crew.stop();
      assert.deepEqual(desk.calls, [["marble"]]);
      const [row] = await desk.query(
        "select count(*) as count from embedding_jobs where status = 'completed'",
      );
      assert.equal(Number(row!.count), 30);
    });

    it("one bad text fails alone, its neighbours do not", async () => {
      desk.before = async (texts) => {
        if (texts.includes("poison")) throw new QuarryError("invalid_input", "this text is refused");
      };
      const jobs = await desk.jobs.createMany(
        ["a", "b", "poison", "c", "d"].map((input_text) => ({ input_text })),
      );
      const crew = await desk.work();
      for (const job of jobs) await until(isDone(job.id));
      await crew.stop();
      const statuses = await Promise.all(jobs.map(async ({ id }) => (await desk.jobs.read(id)).status));
      assert.deepEqual(statuses, ["completed", "completed", "failed", "completed", "completed"]);
      const [dead] = (await desk.jobs.list({ status: "failed" })).jobs;
      assert.match(dead!.error_message!, /^this text is refused/);
    });

    it("one text that cannot be measured fails alone, and one whose twin's vector is damaged", async () => {
      const { jobs, query, work } = desk;
      desk.measure = (text) => {
        if (text.includes("immeasurable")) throw new Error("no words for it");
        return 1;
      };
      const [damaged] = await jobs.createMany([{ input_text: "twin" }]);
      const first = await work();
      await until(async () => (await jobs.read(damaged!.id)).status === "completed");
      await first.stop();
      const isSqlite = test.database.dialect.name === "sqlite";
      if (isSqlite) {
        await query("update embedding_jobs set embedding_vector = x'010203'");
        await query(
          "insert into embedding_jobs (id, input_text, text_hash, embedding_model, has_turn) select '00000000-0000-7000-8000-000000000001', input_text, text_hash, embedding_model, true from embedding_jobs",
        );
      }
      const texts = ["one", "immeasurable", "two", "three"].map((input_text) => ({ input_text }));
      const made = await jobs.createMany(texts);
      const crew = await work();
      for (const { id, input_text } of made)
        await until(async () => {
          const { status } = await jobs.read(id);
          return status === (input_text === "immeasurable" ? "retrying" : "completed");
        });
      if (isSqlite) {
        const [twin] = await query("select status from embedding_jobs where id like '00000000%'");
        assert.equal(twin!.status, "retrying");
      }
      await crew.stop();
    });

    it("are packed by tokens", async () => {
      const texts = ["one two three four", "five six", "seven eight nine", "ten"];
      const jobs = await desk.jobs.createMany(texts.map((input_text) => ({ input_text })));
      const crew = await desk.work({ tokensMax: 5 });
      for (const job of jobs) await until(isDone(job.id));
      await crew.stop();
      const calls = desk.calls.map((call) => call.toSorted()).toSorted();
      assert.deepEqual(calls, [
        ["five six", "seven eight nine"],
        ["one two three four", "ten"],
      ]);
    });

    it("wait 60 and 120 seconds after failed attempts, then are dead letters", async () => {
      desk.before = async () => {
        throw new QuarryError("model_failed", "the model said no");
      };
      const { id } = await desk.jobs.create({ input_text: "tuff" });
      for (const [index, waitMs] of [60_000, 120_000].entries()) {
        const crew = await desk.work();
        await until(async () => {
          const { status, attempts } = await desk.jobs.read(id);
          return status === "retrying" && attempts === index + 1;
        });
        await crew.stop();
        const job = await desk.jobs.read(id);
        const started = Date.parse(job.started_at!);
        const delay = Date.parse(job.run_after!) - started;
        assert.ok(delay >= waitMs && delay < waitMs + 30_000, `${delay} ms`);
        assert.equal(job.error_message, "the model said no");
        await desk.query("update embedding_jobs set run_after = null");
        await desk.store.repair();
      }
      const crew = await desk.work();
      await until(isDone(id));
      await crew.stop();
      const dead = await desk.jobs.read(id);
      assert.deepEqual(
        [dead.status, dead.error_message, dead.attempts, dead.worker_id],
        ["failed", "Max attempts exceeded: the model said no", 3, crew.worker.id],
      );
      assert.equal((await desk.query("select 1 from embedding_jobs")).length, 0);
      assert.equal(await desk.jobs.deadLetters.count(), 1);
    });

    it("that are dead letters can be driven again or purged", async () => {
      desk.before = async () => {
        throw new QuarryError("invalid_input", "no");
      };
      const jobs = await desk.jobs.createMany(["x", "y", "z"].map((input_text) => ({ input_text })));
      let crew = await desk.work();
      for (const job of jobs) await until(isDone(job.id));
      await crew.stop();
      desk.before = async () => undefined;
      assert.equal(await desk.jobs.deadLetters.redrive({ ids: [jobs[0]!.id] }), 1);
      const again = await desk.jobs.read(jobs[0]!.id);
      assert.deepEqual([again.status, again.attempts, again.created_at], ["pending", 0, jobs[0]!.created_at]);
      crew = await desk.work();
      await until(isDone(jobs[0]!.id));
      await crew.stop();
      assert.equal((await desk.jobs.read(jobs[0]!.id)).status, "completed");
      assert.equal(await desk.jobs.deadLetters.purge({ olderThanMs: 3_600_000 }), 0);
      assert.equal(await desk.jobs.deadLetters.purge(), 2);
      await assert.rejects(desk.jobs.read(jobs[1]!.id), { code: "not_found" });
    });

    it("that fail again at once are driven once, not for ever", async () => {
      if (test.database.dialect.name !== "sqlite") return;
      const failures = 501;
      await desk.query(
        `insert into embedding_job_failures (id, priority, embedding_model, input_text, text_hash, attempts, max_attempts, created_at, error_message, failed_at)
         with recursive n(i) as (select 1 union all select i + 1 from n where i < ${failures})
         select printf('00000000-0000-4000-8000-%012d', i), 'normal', '${MODEL}', 'bad ' || i, 'h' || i, 3, 3, '2026-01-01T00:00:00.000Z', 'no', '2026-01-01T00:00:00.000Z' from n`,
      );
      await desk.query(
        "create trigger fails_at_once after insert on embedding_jobs begin update embedding_jobs set status = 'failed', error_message = 'again' where id = new.id; end",
      );
      assert.equal(await desk.jobs.deadLetters.redrive(), failures);
      await desk.query("drop trigger fails_at_once");
      assert.equal(await desk.jobs.deadLetters.count(), failures);
    });

    it("are listed with the beginning of their text, and alone with all of it", async () => {
      const { id } = await desk.jobs.create({ input_text: "long ".repeat(100_000) });
      const { jobs } = await desk.jobs.list({ status: "pending" });
      assert.equal(jobs[0]!.input_text, "long ".repeat(1_000));
      assert.equal((await desk.jobs.read(id)).input_text.length, 500_000);
    });

    it("are cancelled while they wait or run, and too late afterwards", async () => {
      const waiting = await desk.jobs.create({ input_text: "waiting" });
      assert.equal(await desk.jobs.cancel(waiting.id.toUpperCase()), "cancelled");
      await assert.rejects(desk.jobs.read(waiting.id), { code: "not_found" });

      const aborted = Promise.withResolvers<void>();
      const started = Promise.withResolvers<void>();
      desk.before = (_texts, signal) => {
        started.resolve();
        return new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            aborted.resolve();
            reject(signal.reason);
          });
        });
      };
      const running = await desk.jobs.create({ input_text: "running" });
      const crew = await desk.work();
      await started.promise;
      assert.equal(await desk.jobs.cancel(running.id), "aborted");
      await aborted.promise;
      desk.before = async () => undefined;
      const done = await desk.jobs.create({ input_text: "done" });
      await until(isDone(done.id));
      await crew.stop();
      await assert.rejects(desk.jobs.cancel(done.id), { code: "too_late", message: /completed/ });
      await assert.rejects(desk.jobs.cancel(running.id), { code: "not_found" });
    });

    it("are listed newest first, by filter, a page at a time", async () => {
      const texts = Array.from({ length: 25 }, (_, index) => `text ${index}`);
      const made = await desk.jobs.createMany(
        texts.map((input_text, index) => ({ input_text, priority: index % 2 ? "low" : "urgent" })),
      );
      const seen: string[] = [];
      let after: string | undefined;
      do {
        const page = await desk.jobs.list({ limit: 4, after, priority: "low" });
        seen.push(...page.jobs.map(({ id }) => id));
        after = page.next;
      } while (after !== undefined);
      const low = made.filter(({ priority }) => priority === "low").map(({ id }) => id);
      assert.deepEqual(seen, low.toReversed());
      assert.equal((await desk.jobs.list({ status: "completed" })).jobs.length, 0);
      assert.equal((await desk.jobs.list({ embedding_model: "other" })).jobs.length, 0);
      await assert.rejects(desk.jobs.list({ after: "nonsense" }), { code: "invalid_input" });
      await assert.rejects(desk.jobs.list({ limit: 1001 }), { code: "invalid_input" });
    });

    it("that make no sense are refused, and none of a batch is kept", async () => {
      const refused = [
        [{ input_text: "" }, /input_text/],
        [{ input_text: "x", priority: "asap" }, /priority/],
        [{ input_text: "x", embedding_model: "other" }, /not served here/],
        [{ input_text: "x", rule_id: "1" }, /rule_id/],
        [{ input_text: "x", max_attempts: 0 }, /max_attempts/],
        [{ input_text: "x", colour: "red" }, /colour/],
        [{ input_text: "nul \u0000" }, /NUL/],
      ] as const;
      for (const [job, message] of refused)
        await assert.rejects(desk.jobs.createMany([{ input_text: "fine" }, job as never]), {
          code: "invalid_input",
          message,
        });
      const missing = "00000000-0000-4000-8000-000000000000";
      await assert.rejects(desk.jobs.create({ input_text: "x", rule_id: missing }), { code: "not_found" });
      assert.equal((await desk.jobs.list()).jobs.length, 0);
    });
  });
}
