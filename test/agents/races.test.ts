import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import pg from "pg";
import { openDatabase } from "../../src/index.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import { type Office, openOffice, until } from "./office.ts";

const POSTGRES = DATABASES.find(({ name }) => name === "PostgreSQL")!;

/** SQLite has one writer at a time: there is nothing in between. */
describe("whoever writes tasks by hand, beside workers, on PostgreSQL", () => {
  let test: TestDatabase;
  let office: Office;
  let hand: pg.Client;
  before(async () => {
    test = await POSTGRES.open();
    office = await openOffice(test);
    hand = new pg.Client({ connectionString: test.url });
    await hand.connect();
  });
  after(async () => {
    await hand.end();
    await test.close();
  });

  const claimed = async () => (await office.store.claim({ worker: "w", limit: 10 })).map(({ key }) => key);
  const start = (id: string) => `update task_queue set status = 'IN_PROGRESS' where task_id = '${id}'`;
  const isWaiting = async () => {
    const rows = await office.query("select 1 from pg_stat_activity where wait_event_type = 'Lock'");
    return rows.length > 0;
  };

  it("who starts a task while another waits has the entity; a worker takes nothing of it meanwhile", async () => {
    const [, second] = (await office.enqueue(await office.planner(), 2)) as [string, string];
    await hand.query("begin");
    await hand.query(start(second));
    assert.deepEqual(await claimed(), []);
    await hand.query("commit");
    assert.deepEqual(await claimed(), []);
    await hand.query(`update task_queue set status = 'COMPLETED' where task_id = '${second}'`);
  });

  it("who starts a task while another is being started waits for that, and is refused", async () => {
    const [first, second] = (await office.enqueue(await office.planner(), 2)) as [string, string];
    await hand.query("begin");
    await hand.query(start(first));
    const refused = assert.rejects(office.query(start(second)), { code: "constraint_violated" });
    await until(isWaiting);
    await hand.query("commit");
    await refused;
    assert.equal((await office.read(second)).status, "PENDING");
    await hand.query(`update task_queue set status = 'COMPLETED' where task_id = '${first}'`);
  });

  it("who deletes an entity waits for a task that is being enqueued, and takes it along", async () => {
    const planner = await office.planner();
    const deleted = Promise.withResolvers<unknown>();
    await test.database.transaction(async (transaction) => {
      await office.tasks
        .within(transaction)
        .enqueue([{ entity_type: "planner", entity_id: planner, function_name: "step" }]);
      deleted.resolve(hand.query(`delete from planners where planner_id = '${planner}'`));
      const other = openDatabase(test.url);
      const looks = async () =>
        (await other.query("select 1 from pg_stat_activity where wait_event_type = 'Lock'")).length > 0;
      await until(looks);
      await other.close();
    });
    await deleted.promise;
    assert.deepEqual((await office.tasks.list({ entity_id: planner })).tasks, []);
  });

  it("who enqueues for an entity that is being deleted is told that it is gone", async () => {
    const planner = await office.planner();
    await hand.query("begin");
    await hand.query(`delete from planners where planner_id = '${planner}'`);
    const refused = assert.rejects(office.enqueue(planner), {
      code: "not_found",
      message: new RegExp(`no planner .*${planner}`),
    });
    await until(isWaiting);
    await hand.query("commit");
    await refused;
  });
});
