import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Database, openDatabase, type Queue } from "../../src/index.ts";
import { compileQueue } from "../../src/queue/statements.ts";
import { compileTurnStatements } from "../../src/queue/turns.ts";
import { freshPostgres } from "../support/postgres.ts";
import { errands, mail, pageOcr, schema, steps } from "./fixture.ts";

/** 100,000 rows: 30k delayed, 30k exhausted, 30k done, 10k that can be claimed. */
const BATCH = 50;
const KINDS = {
  messages: (n: string) => `
    insert into messages (id, kind, status, attempts, run_after, created_at, finished_at, urgency)
    select ${n}, 'mail',
      case when i % 10 < 3 then 'retrying' when i % 10 < 6 then 'failed' when i % 10 < 9 then 'completed' else 'pending' end,
      case when i % 10 < 3 then 1 when i % 10 < 6 then 3 else 0 end,
      case when i % 10 < 3 then FUTURE end, PAST, PAST, case when i % 7 = 0 then 'high' else 'normal' end from numbers`,
  pages: (n: string) => `
    insert into pages (id, ocr_status, ocr_retry_count, ocr_run_after, created_at)
    select ${n},
      STATUS(case when i % 10 < 6 then 'failed' when i % 10 < 9 then 'completed' else 'pending' end),
      case when i % 10 < 3 then 1 when i % 10 < 6 then 3 else 0 end,
      case when i % 10 < 3 then FUTURE end, PAST from numbers`,
  // One entity holds 90,000 rows; 10,000 others hold one each.
  steps: () => `
    insert into steps (entity_type, entity_id, has_turn, created_at)
    select 'worker', case when i % 10 < 9 then 'busy' else 'e' || i end, i % 10 = 9 or i = 10, PAST from numbers`,
  // Nine of ten are another's, and come first.
  errands: () => `
    insert into errands (place, priority, created_at)
    select case i % 20 when 0 then 'here' when 1 then '' else 'elsewhere' end, case when i % 20 > 1 then 9 else 1 end, PAST from numbers`,
};

function fill(dialect: "sqlite" | "postgres"): string[] {
  const isPostgres = dialect === "postgres";
  const key = isPostgres ? "gen_random_uuid()" : "lower(hex(randomblob(16)))";
  return Object.values(KINDS).map((make) => {
    const sql = make(key)
      .replaceAll("FUTURE", isPostgres ? "now() + interval '1 day'" : "'2999-01-01T00:00:00.000Z'")
      .replaceAll("PAST", isPostgres ? "now() - interval '1 day'" : "'2020-01-01T00:00:00.000Z'")
      .replaceAll(/STATUS\(((?:[^()]|\([^()]*\))*)\)/g, isPostgres ? "($1)::task_status" : "$1");
    return isPostgres
      ? sql.replace(/from numbers$/, "from generate_series(1, 100000) as i")
      : `with recursive numbers(i) as (select 1 union all select i + 1 from numbers where i < 100000) ${sql.trim()}`.replace(
          /^(with recursive .*? from numbers where i < 100000\)) (insert into .*?\)) (?=\s*select)/s,
          "$2 $1 ",
        );
  });
}

interface PlanNode {
  "Node Type": string;
  "Actual Rows"?: number;
  "Actual Loops"?: number;
  "Rows Removed by Filter"?: number;
  "Index Name"?: string;
  Plans?: PlanNode[];
}

const QUEUES: readonly Queue[] = [mail, pageOcr, steps];

describe("what a claim looks at, with 100,000 rows of which 10,000 can be claimed", () => {
  it("PostgreSQL: the batch and nothing else, with stale and with fresh statistics", async () => {
    const { url, drop } = await freshPostgres();
    const database = openDatabase(url);
    for (const sql of schema("postgres")) await database.query(sql);
    await database.query("alter table messages set (autovacuum_enabled = off)");
    await database.query("analyze");
    for (const sql of fill("postgres")) await database.query(sql);
    for (const statistics of ["stale", "fresh"]) {
      if (statistics === "fresh") await database.query("vacuum analyze");
      for (const queue of QUEUES) {
        const plan = await postgresPlan(database, queue);
        for (const node of nodesOf(plan)) {
          const what = `${queue.name} with ${statistics} statistics: ${JSON.stringify({ ...node, Plans: undefined })}`;
          assert.ok(!/Sort|Seq Scan|Bitmap/.test(node["Node Type"]), what);
          const looked =
            ((node["Actual Rows"] ?? 0) + (node["Rows Removed by Filter"] ?? 0)) *
            (node["Actual Loops"] ?? 1);
          assert.ok(looked <= BATCH, what);
        }
        const indexes = nodesOf(plan).map((node) => node["Index Name"]);
        assert.ok(
          indexes.some((name) => name?.includes("_ready_")),
          `${queue.name} does not use its ready index`,
        );
      }
      for (const node of nodesOf(await postgresPlan(database, errands))) {
        const what = `errands with ${statistics} statistics: ${JSON.stringify({ ...node, Plans: undefined })}`;
        assert.ok(!/Seq Scan|Bitmap/.test(node["Node Type"]), what);
        const looked = (node["Actual Rows"] ?? 0) + (node["Rows Removed by Filter"] ?? 0);
        // A batch of one's own and a batch of anybody's, of which the first are taken.
        assert.ok(looked <= (node["Index Name"] ? BATCH : 2 * BATCH), what);
      }
    }
    for (const queue of [...QUEUES, errands]) {
      const { complete, fail, extend, release, rescue, promote, retry } = compileQueue(
        queue,
        database.dialect,
      );
      const turns = compileTurnStatements(queue, database.dialect);
      for (const { name, sql } of [
        complete,
        fail,
        extend,
        release,
        rescue,
        promote,
        retry,
        ...Object.values(turns ?? {}).filter((statement) => statement !== undefined),
      ]) {
        for (const node of nodesOf(await genericPlan(database, sql))) {
          assert.ok(!/Sort|Seq Scan|Bitmap/.test(node["Node Type"]), `${name}: ${JSON.stringify(node)}`);
          // Rows that a worker names are found by their key, never by walking all that run.
          if (sql.includes("jsonb") && node["Index Name"]) assert.match(node["Index Name"], /_pkey$/, name);
        }
      }
    }
    await database.close();
    await drop();
  });

  it("SQLite: the ready index in its order, without sorting", async () => {
    const database = openDatabase(":memory:");
    for (const sql of schema("sqlite")) await database.query(sql);
    for (const sql of fill("sqlite")) await database.query(sql);
    for (const statistics of ["no", "fresh"]) {
      if (statistics === "fresh") await database.query("analyze");
      for (const queue of QUEUES) {
        const { pick, mark } = compileQueue(queue, database.dialect);
        const plan = await sqlitePlan(database, pick.sql);
        assert.equal(plan.length, 1, `${queue.name}: ${plan.join("; ")}`);
        assert.match(
          plan[0]!,
          /^SCAN t USING INDEX \w+_ready_[0-9a-f]{6}$/,
          `${queue.name} with ${statistics} statistics`,
        );
        const marking = await sqlitePlan(database, mark!.sql);
        assert.match(
          marking[0]!,
          /^SEARCH t USING (INTEGER PRIMARY KEY|.*INDEX sqlite_autoindex)/,
          queue.name,
        );
      }
      const plan = await sqlitePlan(database, compileQueue(errands, database.dialect).pick.sql);
      // Only what was found behind each name is sorted, and not on the way there.
      const walk = /SEARCH t USING INDEX \w+_ready_[0-9a-f]{6} \(place=\?\); SCAN line/g;
      assert.equal(plan.join("; ").match(walk)?.length, 2, plan.join("; "));
      assert.equal(plan.join("; ").match(/ t /g)?.length, 2, plan.join("; "));
    }
    await database.close();
  });

  it("SQLite: settling, renewing, rescuing and promoting find their rows by an index", async () => {
    const database = openDatabase(":memory:");
    for (const sql of schema("sqlite")) await database.query(sql);
    for (const sql of fill("sqlite")) await database.query(sql);
    for (const queue of QUEUES) {
      const { complete, fail, extend, release, rescue, promote, retry } = compileQueue(
        queue,
        database.dialect,
      );
      const turns = compileTurnStatements(queue, database.dialect);
      for (const { name, sql } of [
        complete,
        fail,
        extend,
        release,
        rescue,
        promote,
        retry,
        ...Object.values(turns ?? {}).filter((statement) => statement !== undefined),
      ]) {
        for (const line of await sqlitePlan(database, sql)) {
          assert.doesNotMatch(line, /^SCAN (t|w|h|c)$/, `${name}: ${line}`);
          assert.doesNotMatch(line, /TEMP B-TREE/, `${name}: ${line}`);
        }
      }
    }
    await database.close();
  });
});

async function postgresPlan(database: Database, queue: Queue): Promise<PlanNode> {
  const { pick } = compileQueue(queue, database.dialect);
  const undo = new Error("undo");
  let plan: PlanNode | undefined;
  await database
    .transaction(async (session) => {
      await session.query(`prepare looked_at as ${pick.sql}`);
      const sql = `explain (analyze, costs off, timing off, format json) execute looked_at(null, 'w', 60000, ${BATCH})`;
      const [row] = await session.query(sql);
      plan = (row!["QUERY PLAN"] as [{ Plan: PlanNode }])[0].Plan;
      await session.query("deallocate looked_at");
      throw undo;
    })
    .catch((error) => {
      if (error !== undo) throw error;
    });
  return plan!;
}

async function genericPlan(database: Database, sql: string): Promise<PlanNode> {
  return database.transaction(async (session) => {
    await session.query(`prepare planned as ${sql}`);
    const count = new Set(sql.match(/\$\d/g)).size;
    const nulls = Array.from({ length: count }, () => "null").join(", ");
    const [row] = await session.query(
      `explain (costs off, format json) execute planned${count > 0 ? `(${nulls})` : ""}`,
    );
    await session.query("deallocate planned");
    return (row!["QUERY PLAN"] as [{ Plan: PlanNode }])[0].Plan;
  });
}

function nodesOf(plan: PlanNode): PlanNode[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
}

async function sqlitePlan(database: Database, sql: string): Promise<string[]> {
  const rows = await database.query(`explain query plan ${sql}`);
  return rows.map((row) => String(row.detail));
}
