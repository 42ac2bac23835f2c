import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { isQuarryError } from "../../src/errors.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import { type Office, openOffice } from "./office.ts";

type Values = Record<string, string | number | null>;

/** What the design's own tests write, and what the database must say. */
const REFUSED: readonly { what: string; values: Values; says: RegExp }[] = [
  { what: "an entity type of its own", values: { entity_type: "invalid_type" }, says: /chk_entity_type/ },
  { what: "a status of its own", values: { status: "INVALID_STATUS" }, says: /chk_status/ },
  { what: "a status in lower case", values: { status: "pending" }, says: /chk_status/ },
  { what: "a negative retry count", values: { retry_count: -1 }, says: /chk_retry_count_positive/ },
  {
    what: "a negative limit",
    values: { max_retries: -1 },
    // Of several checks that do not hold, a database names one.
    says: /chk_max_retries_positive|chk_retry_count_within_max/,
  },
  {
    what: "more retries than the limit",
    values: { retry_count: 4, max_retries: 3 },
    says: /chk_retry_count_within_max/,
  },
  {
    what: "a failure without a reason",
    values: { status: "FAILED", error_message: null },
    says: /chk_error_message_on_failure/,
  },
  { what: "no entity type", values: { entity_type: null }, says: /entity_type/ },
  { what: "no entity", values: { entity_id: null }, says: /entity_id/ },
  { what: "no function", values: { function_name: null }, says: /function_name/ },
  {
    what: "a planner that is not there",
    values: { entity_id: "nobody" },
    says: /no planner (nobody|with the entity_id)/,
  },
  {
    what: "a worker that is not there",
    values: { entity_type: "worker", entity_id: "nobody" },
    says: /no worker (nobody|with the entity_id)/,
  },
  {
    what: "a worker under a planner's id",
    values: { entity_type: "worker", entity_id: "p1" },
    says: /no worker (p1|with the entity_id)/,
  },
];

for (const { name, open } of DATABASES) {
  describe(`the schema of function tasks on ${name}`, () => {
    let test: TestDatabase;
    let office: Office;
    before(async () => {
      test = await open();
      office = await openOffice(test);
      await office.query("insert into planners (planner_id) values ('p1')");
      await office.query("insert into workers (worker_id, planner_id) values ('w1', 'p1')");
    });
    after(() => test.close());

    let made = 0;
    async function insert(values: Values): Promise<string> {
      const id = `test${++made}`;
      const row = {
        ...{ task_id: id, entity_type: "planner", entity_id: "p1", function_name: "step" },
        ...values,
      };
      const { mark } = test.database.dialect;
      const marks = Object.keys(row).map((_, index) => mark(index + 1));
      await office.query(
        `insert into task_queue (${Object.keys(row).join(", ")}) values (${marks.join(", ")})`,
        Object.values(row),
      );
      return id;
    }
    async function claimedOf(entityId: string) {
      const claims = await office.store.claim({ worker: "w", limit: 100 });
      return claims.filter(({ row }) => row.entity_id === entityId).map(({ key }) => key);
    }
    const isRefused = (says: RegExp) => (error: unknown) =>
      isQuarryError(error, "constraint_violated") && says.test(error.message);

    it("takes a row with only what the design requires, and fills in the rest", async () => {
      const task = await office.read(await insert({}));
      assert.equal(task.status, "PENDING");
      assert.equal(task.retry_count, 0);
      assert.equal(task.max_retries, 3);
      assert.equal(task.payload, null);
      assert.ok(Date.parse(task.created_at) > 0 && Date.parse(task.updated_at) > 0);
      await insert({ entity_type: "worker", entity_id: "w1" });
      await insert({ status: "FAILED", error_message: "said" });
      await insert({ retry_count: 3, max_retries: 3 });
      await insert({ max_retries: 0 });
    });

    for (const { what, values, says } of REFUSED) {
      it(`refuses ${what}`, async () => {
        const [before] = await office.query("select count(*) as total from task_queue");
        await assert.rejects(insert(values), isRefused(says));
        assert.deepEqual(await office.query("select count(*) as total from task_queue"), [before]);
      });
    }

    it("refuses a second task with the same id", async () => {
      const id = await insert({});
      await assert.rejects(insert({ task_id: id }), isRefused(/task_id|pk_task_queue/));
    });

    it("keeps the checks when a row is changed", async () => {
      const id = await insert({});
      const update = (set: string) => office.query(`update task_queue set ${set} where task_id = '${id}'`);
      await assert.rejects(update("retry_count = 4"), isRefused(/chk_retry_count_within_max/));
      await assert.rejects(update("max_retries = -1"), isRefused(/chk_max|chk_retry_count_within_max/));
      await assert.rejects(update("status = 'DONE'"), isRefused(/chk_status/));
      await assert.rejects(update("entity_id = 'p2'"), isRefused(/stays with its entity/));
      await update("status = 'IN_PROGRESS'");
      await assert.rejects(update("status = 'FAILED'"), isRefused(/chk_error_message_on_failure/));
      await update("status = 'FAILED', error_message = 'said'");
      await assert.rejects(update("error_message = null"), isRefused(/chk_error_message_on_failure/));
    });

    it("has the design's indexes and the trigger for updated_at", async () => {
      const indexes =
        test.database.dialect.name === "postgres"
          ? "select indexdef as definition from pg_indexes where tablename = 'task_queue'"
          : "select sql as definition from sqlite_schema where tbl_name = 'task_queue' and type = 'index'";
      const have = (await office.query(indexes)).map(({ definition }) =>
        String(definition)
          .replaceAll(/"| using btree|public\./gi, "")
          .replaceAll(" (", "("),
      );
      for (const expected of [
        "idx_task_queue_status_created on task_queue(status, created_at)",
        "idx_task_queue_entity on task_queue(entity_type, entity_id)",
        "idx_task_queue_function on task_queue(function_name)",
        "idx_task_queue_status_updated on task_queue(status, updated_at)",
      ])
        assert.ok(
          have.some((definition) => definition.toLowerCase().endsWith(expected)),
          expected,
        );
      const id = await insert({ updated_at: "2020-01-01T00:00:00.000Z" });
      await office.query(`update task_queue set payload = '{"n":1}' where task_id = '${id}'`);
      assert.ok((await office.read(id)).updated_at > "2026");
      const given = "2021-01-01T00:00:00.000Z";
      await office.query(
        `update task_queue set payload = '{"n":2}', updated_at = '${given}' where task_id = '${id}'`,
      );
      assert.equal((await office.read(id)).updated_at, given);
    });

    it("lets one task of an entity run, whoever says so", async () => {
      const planner = await office.planner();
      const [first, second, third] = (await office.enqueue(planner, 3)) as [string, string, string];
      const mark = (id: string, status: string) =>
        office.write(
          `update task_queue set status = '${status}', error_message = 'said' where task_id = '${id}'`,
        );
      // Not the one whose turn it is: whoever writes by hand may choose.
      await mark(second, "IN_PROGRESS");
      for (const other of [first, third])
        await assert.rejects(mark(other, "IN_PROGRESS"), isRefused(/unique/i));
      assert.deepEqual(await claimedOf(planner), []);
      await mark(second, "COMPLETED");
      await office.store.repair();
      assert.deepEqual(await claimedOf(planner), [first]);
      await assert.rejects(mark(third, "IN_PROGRESS"), isRefused(/unique/i));
      await mark(first, "FAILED");
      await office.store.repair();
      assert.deepEqual(await claimedOf(planner), [third]);
      await assert.rejects(
        insert({ entity_id: planner, status: "IN_PROGRESS" }),
        isRefused(/unique/i),
        "also a row that comes as running",
      );
    });

    it("takes the tasks of an entity along when that is deleted", async () => {
      const planner = await office.planner();
      await office.enqueue(planner, 2);
      await office.query(`insert into workers (worker_id, planner_id) values ('w2', '${planner}')`);
      await insert({ entity_type: "worker", entity_id: "w2" });
      await office.query(`delete from planners where planner_id = '${planner}'`);
      const left = await office.query(
        `select task_id from task_queue where entity_id in ('${planner}', 'w2')`,
      );
      assert.deepEqual(left, []);
    });
  });
}
