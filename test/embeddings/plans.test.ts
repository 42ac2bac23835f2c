import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Database, Statement } from "../../src/database/database.ts";
import { DATABASES } from "../support/databases.ts";
import { withPoints } from "../support/points.ts";
import { MODEL, openDesk } from "./desk.ts";

const JOBS = 20_000;

interface PlanNode {
  readonly "Node Type": string;
  readonly "Actual Rows"?: number;
  readonly "Actual Loops"?: number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Shared Hit Blocks"?: number;
  readonly "Shared Read Blocks"?: number;
  readonly Plans?: readonly PlanNode[];
}

interface Asked {
  readonly statement: Statement;
  readonly params: readonly unknown[];
}

/** Half are done, others wait, with the turn of their text or without: whatever looks further than its own text meets them. */
function fill(isPostgres: boolean): string {
  const numbers = isPostgres
    ? `generate_series(1, ${JOBS}) as i`
    : `(with recursive n(i) as (select 1 union all select i + 1 from n where i < ${JOBS}) select i from n)`;
  const vector = isPostgres ? "'{1}'::real[]" : "x'0000803f'";
  return `insert into embedding_jobs (id, input_text, text_hash, embedding_model, status, has_turn, embedding_vector)
    select ${isPostgres ? "gen_random_uuid()" : "'job-' || i"}, 'text', 'hash-' || i, '${MODEL}',
      ${isPostgres ? "(case when i % 2 = 0 then 'completed' else 'pending' end)::job_status" : "case when i % 2 = 0 then 'completed' else 'pending' end"},
      i % 4 = 1, case when i % 2 = 0 then ${vector} end from ${numbers}`;
}

for (const { name, open } of DATABASES) {
  describe(`what a new embedding job looks at, with ${JOBS} others, on ${name}`, () => {
    it("jobs of its own text and nothing else, however stale the statistics", async () => {
      const test = await open();
      try {
        const asked: Asked[] = [];
        const desk = await openDesk({ ...test, database: recorded(test.database, asked) });
        await desk.jobs.create({ input_text: "a" });
        await desk.jobs.create({ input_text: "a" });
        const names = new Set(asked.map(({ statement }) => statement.name));
        assert.deepEqual([...names], ["embeddings.twins", "embeddings.enqueue", "embeddings.pass"]);
        if (test.database.dialect.name === "postgres") await checkPostgres(test.database, asked);
        else await checkSqlite(test.database, asked);
      } finally {
        await test.close();
      }
    });
  });
}

function recorded(database: Database, asked: Asked[]): Database {
  const { database: same } = withPoints(database);
  const query: Database["query"] = (statement, params = []) => {
    const isOurs = typeof statement !== "string" && statement.name.startsWith("embeddings.");
    if (isOurs && !statement.name.endsWith(".anyBehind")) asked.push({ statement, params });
    return database.query(statement, params);
  };
  return { ...same, query };
}

/** Planned while the table is nearly empty, as a server that has just been started does. */
async function checkPostgres(database: Database, asked: readonly Asked[]): Promise<void> {
  await database.query("analyze embedding_jobs");
  await database
    .transaction(async (transaction) => {
      await transaction.query("alter table embedding_jobs disable trigger user");
      await transaction.query("delete from embedding_jobs");
      const executed = asked.map(({ params }, nth) => `execute asked_${nth}(${params.map(asLiteral)})`);
      for (const [nth, { statement }] of asked.entries()) {
        await transaction.query(`prepare asked_${nth} as ${statement.sql}`);
        await transaction.query(`explain ${executed[nth]}`);
      }
      await transaction.query(fill(true));
      for (const [nth, { statement }] of asked.entries()) {
        const sql = `explain (analyze, buffers, costs off, timing off, format json) ${executed[nth]}`;
        const [row] = await transaction.query(sql);
        const [{ Plan }] = row!["QUERY PLAN"] as [{ Plan: PlanNode }];
        for (const node of nodesOf(Plan)) {
          const rows = (node["Actual Rows"] ?? 0) + (node["Rows Removed by Filter"] ?? 0);
          const what = `${statement.name}: ${JSON.stringify({ ...node, Plans: undefined })}`;
          assert.ok(rows * (node["Actual Loops"] ?? 1) <= 4, what);
          // An index that is walked instead of searched gives no more rows.
          const blocks = (node["Shared Hit Blocks"] ?? 0) + (node["Shared Read Blocks"] ?? 0);
          if (node["Node Type"].startsWith("Index")) assert.ok(blocks <= 20, what);
        }
      }
      throw new Error("undo");
    })
    .catch((error) => {
      if (error.message !== "undo") throw error;
    });
}

async function checkSqlite(database: Database, asked: readonly Asked[]): Promise<void> {
  await database.query(fill(false));
  for (const { statement } of asked) {
    for (const { detail } of await database.query(`explain query plan ${statement.sql}`))
      assert.doesNotMatch(
        String(detail),
        /^SCAN (t|w|h)\b(?! VIRTUAL)|TEMP B-TREE/,
        `${statement.name}: ${detail}`,
      );
  }
}

function asLiteral(value: unknown): string {
  if (value === null) return "null";
  const text = Array.isArray(value) ? `{${value.join(",")}}` : String(value);
  return `'${text.replaceAll("'", "''")}'`;
}

function nodesOf(plan: PlanNode): PlanNode[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
}
