import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import fc from "fast-check";
import { JOB_PRIORITIES } from "../../src/embeddings/queue.ts";
import { compileQueue } from "../../src/queue/statements.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import { type Desk, openDesk } from "./desk.ts";

const MINUTE_MS = 60_000;
/** How much waiting a step of priority is worth. */
const STEP_MS = 10 * MINUTE_MS;
const NOW = Date.parse("2026-01-01T12:00:00Z");

interface Waiting {
  readonly priority: (typeof JOB_PRIORITIES)[number];
  readonly ageMs: number;
}

for (const { name, open } of DATABASES) {
  describe(`the order of embedding jobs on ${name}`, () => {
    let test: TestDatabase;
    let desk: Desk;
    before(async () => {
      test = await open();
      desk = await openDesk(test);
    });
    after(() => test.close());
    beforeEach(() => desk.query("delete from embedding_jobs"));

    const enqueue = (jobs: readonly Waiting[]) =>
      desk.store.enqueue(
        jobs.map(({ priority, ageMs }, index) => ({
          input_text: `${index}`,
          text_hash: `${index}`,
          embedding_model: desk.jobs.model,
          priority,
          created_at: new Date(NOW - ageMs).toISOString(),
        })),
      );
    const claimAll = async (limit: number) =>
      (await desk.store.claim({ worker: "w", limit })).map(({ row }) => Number(row.input_text));

    it("is urgent, high, normal, low, and by age among equals", async () => {
      const jobs = JOB_PRIORITIES.flatMap((priority) =>
        [1, 3, 2].map((minutes) => ({ priority, ageMs: minutes * MINUTE_MS })),
      );
      await enqueue(jobs);
      const order = (await claimAll(100)).map((index) => jobs[index]!);
      assert.deepEqual(
        order.map(({ priority, ageMs }) => `${priority} ${ageMs / MINUTE_MS}`),
        ["urgent", "high", "normal", "low"].flatMap((priority) => [
          `${priority} 3`,
          `${priority} 2`,
          `${priority} 1`,
        ]),
      );
    });

    it("lets nothing starve: a low job is next after half an hour, whatever keeps coming", async () => {
      await enqueue([{ priority: "low", ageMs: 31 * MINUTE_MS }]);
      await enqueue(Array(50).fill({ priority: "urgent", ageMs: 0 }));
      assert.deepEqual(await claimAll(1), [0]);
    });

    it("weighs priority against age for any jobs", async () => {
      const job = fc.record({
        priority: fc.constantFrom(...JOB_PRIORITIES),
        ageMs: fc.integer({ min: 0, max: 90 * 60 }).map((seconds) => seconds * 1_000),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(job, { minLength: 1, maxLength: 30 }), async (jobs) => {
          await desk.query("delete from embedding_jobs");
          await enqueue(jobs);
          const weight = ({ priority, ageMs }: Waiting) => ageMs + STEP_MS * JOB_PRIORITIES.indexOf(priority);
          const claimed: number[] = [];
          for (let some = await claimAll(7); some.length > 0; some = await claimAll(7)) claimed.push(...some);
          const weights = claimed.map((index) => weight(jobs[index]!));
          assert.deepEqual(
            weights,
            weights.toSorted((a, b) => b - a),
          );
          assert.equal(claimed.length, jobs.length);
        }),
        { numRuns: 30 },
      );
    });

    it("a claim walks one index", async () => {
      const { dialect } = test.database;
      const { pick } = compileQueue(desk.store.queue, dialect);
      const isPostgres = dialect.name === "postgres";
      const rows = await desk.query(
        `explain ${isPostgres ? "" : "query plan "}${pick.sql}`,
        isPostgres ? [null, "w", 1_000, 50] : [50],
      );
      const plan = JSON.stringify(rows);
      assert.match(plan, /embedding_jobs_embeddings_ready/);
      assert.doesNotMatch(plan, /Sort|TEMP B-TREE/);
    });
  });
}
