import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { functionQueue } from "../../src/agents/queue.ts";
import type { Row } from "../../src/index.ts";
import { compileQueue } from "../../src/queue/statements.ts";
import { compileTurnStatements } from "../../src/queue/turns.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import { type Office, openOffice, RULES } from "./office.ts";

/** One entity has this many tasks; as many have one each, and a few have another that waits behind it. */
const MANY = 5_000;
const FEW = 10;

for (const { name, open } of DATABASES) {
  describe(`what is looked at to find the next task, on ${name}`, () => {
    let test: TestDatabase;
    let office: Office;
    before(async () => {
      test = await open();
      office = await openOffice(test);
      const isPostgres = test.database.dialect.name === "postgres";
      const numbers = isPostgres
        ? `generate_series(1, ${MANY}) as s(n)`
        : `(with recursive s(n) as (select 1 union all select n + 1 from s where n < ${MANY}) select n from s) as s`;
      await office.query(`insert into planners (planner_id) select 'p' || n from ${numbers}`);
      const insert =
        "insert into task_queue (entity_type, entity_id, function_name, has_turn) select 'planner'";
      for (const values of [
        `'p1', 'step', n = 1 from ${numbers}`,
        `'p' || n, 'step', true from ${numbers} where n > 1`,
        `'p' || n, 'step', false from ${numbers} where n <= ${FEW}`,
      ])
        await office.query(`${insert}, ${values}`);
    });
    after(() => test.close());

    for (const statistics of ["without", "with"]) {
      it(`${statistics} statistics: the rows that are meant, whatever indexes the status and the entity have`, async () => {
        if (statistics === "with") await office.query("analyze");
        const { dialect } = test.database;
        const queue = functionQueue(RULES);
        const { pick } = compileQueue(queue, dialect);
        const { pass, stranded } = compileTurnStatements(queue, dialect)!;
        const isRead = dialect.name === "postgres" ? readByPostgres : readBySqlite;
        for (const [statement, indexes] of [
          [pick, ["_ready_"]],
          [pass, ["_behind_", "_turn_"]],
          [stranded, ["_behind_", "_turn_"]],
        ] as const)
          await isRead(office, statement, indexes);
      });
    }

    it("turns that nobody passed are found and passed", async () => {
      await office.query("update task_queue set has_turn = false where entity_id in ('p1', 'p7', 'p8')");
      assert.equal(await office.store.repair(), 3);
      assert.equal(await office.store.repair(), 0);
    });
  });
}

type Reads = (
  office: Office,
  statement: { name: string; sql: string },
  indexes: readonly string[],
) => Promise<void>;

const readBySqlite: Reads = async (office, { name, sql }, indexes) => {
  const plan = (await office.query(`explain query plan ${sql}`)).map((row) => String(row.detail));
  const shown = `${name}: ${plan.join("\n")}`;
  for (const index of indexes)
    assert.ok(
      plan.some((line) => line.includes(index)),
      shown,
    );
  for (const line of plan) {
    assert.doesNotMatch(line, /TEMP B-TREE|AUTOMATIC|^SCAN (t|w|h|c)$/, shown);
    // A step from one entity to the next begins where the last one ended.
    if (line.startsWith("SEARCH w") && line.includes(">"))
      assert.match(line, /\(entity_type,entity_id\)>\(\?,\?\)/);
    if (/^SEARCH w|^SCAN w/.test(line)) assert.match(line, /_behind_/, shown);
  }
};

const readByPostgres: Reads = async (office, { name, sql }, indexes) => {
  const values: Record<string, string> = {
    pick: "(null, 'w', 60000, 50)",
    pass: `('[{"entity_type":"planner","entity_id":"p1"}]')`,
    stranded: "",
  };
  const verb = name.split(".")[1]!.replace("claim", "pick");
  // One connection: a prepared statement belongs to it.
  const plan = await explained(office, { sql, values: values[verb]! });
  const shown = `${name}: ${JSON.stringify(plan, null, 1)}`;
  const nodes = nodesOf(plan);
  for (const node of nodes) assert.doesNotMatch(String(node["Node Type"]), /Sort|Seq Scan|Bitmap/, shown);
  for (const index of indexes)
    assert.ok(
      nodes.some((node) => String(node["Index Name"]).includes(index)),
      shown,
    );
};

async function explained(office: Office, { sql, values }: { sql: string; values: string }): Promise<Row> {
  return office.store.database.transaction(async (transaction) => {
    await transaction.query(`prepare planned as ${sql}`);
    const [row] = await transaction.query(`explain (format json) execute planned${values}`);
    await transaction.query("deallocate planned");
    return (row!["QUERY PLAN"] as [{ Plan: Row }])[0].Plan;
  });
}

function nodesOf(plan: Row): Row[] {
  return [plan, ...((plan.Plans as Row[] | undefined) ?? []).flatMap(nodesOf)];
}
