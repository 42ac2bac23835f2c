import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { QuarryError } from "../../src/index.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import { findPsql } from "../support/psql.ts";
import { type Desk, openDesk, until } from "./desk.ts";

/** The statements of the design, as they are written there. */
const SEED = {
  health: `SELECT
    status,
    priority,
    COUNT(*) as count,
    AVG(processing_time_ms) as avg_time_ms,
    MAX(created_at) as newest,
    MIN(created_at) as oldest
FROM embedding_jobs
GROUP BY status, priority
ORDER BY priority DESC, status;`,
  workers: `SELECT
    worker_id,
    COUNT(*) as jobs_completed,
    AVG(processing_time_ms) as avg_time,
    SUM(CASE WHEN status = 'failed' THEN 1 ELSE 0 END) as failures
FROM embedding_jobs
WHERE completed_at > NOW() - INTERVAL '24 hours'
GROUP BY worker_id;`,
  pickUp: `WITH next_job AS (
    SELECT id FROM embedding_jobs
    WHERE status = 'pending'
    ORDER BY priority DESC, created_at ASC
    FOR UPDATE SKIP LOCKED
    LIMIT 1
)
UPDATE embedding_jobs
SET
    status = 'processing',
    started_at = NOW(),
    worker_id = 'psql',
    attempts = attempts + 1
WHERE id = (SELECT id FROM next_job)
RETURNING input_text, priority;`,
  twin: `SELECT id, embedding_vector FROM embedding_jobs
WHERE text_hash = md5('three') AND status = 'completed'
LIMIT 1;`,
  batch: `SELECT id, input_text FROM embedding_jobs
WHERE status = 'pending'
ORDER BY priority DESC, created_at ASC
LIMIT 50;`,
} as const;

for (const { name, open } of DATABASES) {
  describe(`figures of embedding jobs on ${name}`, () => {
    let test: TestDatabase;
    let desk: Desk;
    before(async () => {
      test = await open();
      desk = await openDesk(test);
      desk.before = async (texts) => {
        if (texts.includes("bad")) throw new QuarryError("invalid_input", "refused");
      };
      const made = await desk.jobs.createMany([
        { input_text: "one", priority: "urgent" },
        { input_text: "two", priority: "low" },
        { input_text: "three", priority: "low" },
        { input_text: "bad", priority: "high" },
      ]);
      const crew = await desk.work();
      for (const { id } of made)
        await until(async () => ["completed", "failed"].includes((await desk.jobs.read(id)).status));
      await crew.stop();
      await desk.jobs.createMany([{ input_text: "waits" }, { input_text: "waits too", priority: "high" }]);
      await desk.query(
        "insert into embedding_jobs (input_text, text_hash, embedding_model) values ('a', 'b', 'elsewhere')",
      );
    });
    after(() => test.close());

    it("tell what waits, what is done and who did it", async () => {
      const stats = await desk.jobs.stats();
      assert.deepEqual(
        stats.jobs.map(({ status, priority, count }) => `${priority} ${status} ${count}`),
        ["urgent completed 1", "high pending 1", "normal pending 2", "low completed 2"],
      );
      assert.deepEqual(
        stats.workers.map(({ jobs_completed, failures }) => [jobs_completed, failures]),
        [[3, 0]],
      );
      assert.deepEqual(
        stats.dead_letters.map(({ count }) => count),
        [1],
      );
      assert.equal(stats.tokens_used, 30);
      assert.deepEqual(stats.waiting_for_other_models, [{ embedding_model: "elsewhere", count: 1 }]);
    });

    // psql speaks to PostgreSQL only.
    if (name === "PostgreSQL")
      it("agree with the design's own statements in psql", async () => {
        const psql = async (sql: string) => {
          const { stdout } = await promisify(execFile)(findPsql(), [
            "-v",
            "ON_ERROR_STOP=1",
            "-AtqF|",
            "-c",
            sql,
            test.url,
          ]);
          return stdout
            .trim()
            .split("\n")
            .map((line) => line.split("|"));
        };
        const stats = await desk.jobs.stats();
        const health = await psql(SEED.health);
        assert.deepEqual(
          health.map(([status, priority, count, average, newest]) => [
            ...[status, priority, Number(count)],
            ...[average === "" ? null : Number(average), Date.parse(newest!)],
          ]),
          stats.jobs.map((row) => [
            row.status,
            row.priority,
            row.count,
            row.avg_time_ms,
            Date.parse(row.newest),
          ]),
        );
        const workers = await psql(SEED.workers);
        assert.deepEqual(
          workers.map(([id, completed, average, failures]) => [
            id,
            Number(completed),
            Number(average),
            Number(failures),
          ]),
          stats.workers.map((row) => [row.worker_id, row.jobs_completed, row.avg_time, row.failures]),
        );
        assert.equal((await psql(SEED.twin)).length, 1);
        assert.deepEqual((await psql(SEED.batch)).map(([, text]) => text).slice(0, 2), [
          "waits too",
          "waits",
        ]);
        assert.deepEqual((await psql(SEED.pickUp))[0], ["waits too", "high"]);
      });
  });
}
