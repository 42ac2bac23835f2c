import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { createJanitor } from "../../src/index.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import { type AskingDesk, openAskingDesk, passage } from "./asking.ts";

const DAY_MS = 86_400_000;

for (const { name, open } of DATABASES) {
  describe(`what is kept of questions on ${name}`, () => {
    let test: TestDatabase;
    let desk: AskingDesk;
    before(async () => {
      test = await open();
      desk = await openAskingDesk(test);
      desk.retrieve = async () => ({ passages: [passage("Talc is soft.")], warnings: [] });
    });
    after(async () => {
      await desk.close();
      await test.close();
    });
    beforeEach(() => desk.query("delete from planners"));

    const sweep = () => createJanitor({ database: test.database, queues: [desk.tasks.store] }).sweep();
    const age = async (table: string, days: number, where = "true") => {
      const { mark } = test.database.dialect;
      const at = new Date(test.database.clock.now() - days * DAY_MS).toISOString();
      await desk.query(`update ${table} set updated_at = ${mark(1)} where ${where}`, [at]);
    };
    const counts = async () => {
      const rows = await desk.query(
        "select (select count(*) from planners) as p, (select count(*) from workers) as w, (select count(*) from task_queue) as t",
      );
      return Object.values(rows[0]!).map(Number);
    };
    const answered = async () => {
      const id = await desk.asks.start({ question: "Which stone is soft, and who found it?" });
      const crew = await desk.work();
      for await (const _ of desk.asks.follow(id, new AbortController().signal));
      await crew.stop();
      return id;
    };

    it("an answer goes with its workers and their tasks when it is as old as tasks may be", async () => {
      await answered();
      assert.deepEqual(await counts(), [1, 2, 7]);
      for (const table of ["planners", "workers", "task_queue"]) await age(table, 6.9);
      await sweep();
      assert.deepEqual(await counts(), [1, 2, 7]);
      for (const table of ["planners", "workers", "task_queue"]) await age(table, 7.1);
      await sweep();
      assert.deepEqual(await counts(), [0, 0, 0]);
    });

    it("so does a question that was cancelled before anything was done", async () => {
      await desk.asks.cancel(await desk.asks.start({ question: "Which stone is soft?" }));
      await age("planners", 8);
      await sweep();
      assert.deepEqual(await counts(), [0, 0, 0]);
    });

    it("whoever has a task left stays: one that waits, one of its workers' that may be retried", async () => {
      const waiting = await answered();
      const retriable = await answered();
      await desk.enqueue(waiting);
      await age("planners", 8);
      await age("workers", 8);
      await age(
        "task_queue",
        8,
        `entity_id not in (select worker_id from workers where planner_id = '${retriable}')`,
      );
      await sweep();
      const rows = await desk.query("select planner_id from planners order by planner_id");
      assert.deepEqual(
        rows.map((row) => row.planner_id),
        [waiting, retriable].toSorted(),
      );
    });

    it("workers of no plan go when they are over, and stay as long as they are not", async () => {
      const over = await desk.tasks.createEntity("worker");
      const open = await desk.tasks.createEntity("worker");
      await desk.query(`update workers set status = 'COMPLETED' where worker_id = '${over}'`);
      await age("workers", 8);
      assert.equal(await desk.tasks.prune(), 1);
      const rows = await desk.query("select worker_id from workers");
      assert.deepEqual(
        rows.map((row) => row.worker_id),
        [open],
      );
      await desk.query("delete from workers");
    });

    it("a task that is being enqueued keeps its planner", async () => {
      const id = await desk.planner();
      await desk.query(`update planners set status = 'COMPLETED' where planner_id = '${id}'`);
      await age("planners", 8);
      let sweeping: Promise<unknown> | undefined;
      await test.database.transaction(async (transaction) => {
        await desk.tasks
          .within(transaction)
          .enqueue([{ entity_type: "planner", entity_id: id, function_name: "step" }]);
        sweeping = sweep();
        // SQLite has one writer at a time: there the sweep waits.
        if (name === "PostgreSQL") await sweeping;
      });
      await sweeping;
      assert.deepEqual(await counts(), [1, 0, 1]);
    });
  });
}
