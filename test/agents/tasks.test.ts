import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { z } from "zod";
import { STALE_MESSAGE } from "../../src/agents/queue.ts";
import { defineFunction, FunctionRegistry, type NewTask } from "../../src/agents/registry.ts";
import { PAYLOAD_BYTES_MAX } from "../../src/agents/tasks.ts";
import { failed, QuarryError, retry } from "../../src/index.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import { type Office, openOffice, until } from "./office.ts";

describe("the function registry", () => {
  const payload = z.object({});
  const step = defineFunction({ name: "step", entityType: "planner", payload, run: async () => undefined });

  it("knows a name once", () => {
    assert.throws(() => new FunctionRegistry([step, step]), { code: "invalid_declaration" });
  });

  it("refuses names that are none", () => {
    for (const name of ["", "two words", "1st", "x".repeat(101), "drop;table"])
      assert.throws(() => defineFunction({ ...step, name }), { code: "invalid_declaration" });
  });
});

for (const { name, open } of DATABASES) {
  describe(`function tasks on ${name}`, () => {
    let test: TestDatabase;
    let office: Office;
    let planner: string;
    before(async () => {
      test = await open();
      office = await openOffice(test);
      const payload = z.object({ user_question: z.string(), instruction: z.string() });
      office.tasks.register(
        defineFunction({ name: "plan", entityType: "planner", payload, run: async () => undefined }),
      );
    });
    after(() => test.close());
    beforeEach(async () => {
      await office.query("delete from task_queue");
      planner = await office.planner();
      office.step = async () => undefined;
    });

    const count = async () => Object.values(await office.tasks.counts()).reduce((sum, one) => sum + one, 0);
    const task = (more: object = {}): NewTask => ({
      ...{ entity_type: "planner", entity_id: planner, function_name: "step" },
      ...more,
    });
    async function statusOf(id: string) {
      return (await office.read(id)).status;
    }
    async function claimed() {
      const [claim] = await office.store.claim({ worker: "somebody", limit: 1 });
      return claim!;
    }
    /** As if it had happened so long ago. */
    async function age(id: string, ms: number, column = "updated_at") {
      const at = new Date(Date.now() - ms).toISOString();
      await office.query(`update task_queue set ${column} = '${at}' where task_id = '${id}'`);
    }

    describe("enqueue", () => {
      const cases: [string, () => NewTask, string, RegExp][] = [
        [
          "an unknown function",
          () => task({ function_name: "stpe" }),
          "invalid_input",
          /"stpe" is not registered here; there are step, help, plan/,
        ],
        [
          "a missing payload field",
          () => task({ function_name: "plan", payload: { user_question: "?" } }),
          "invalid_input",
          /payload\.instruction: .*plan/,
        ],
        [
          "no payload where one is needed",
          () => task({ function_name: "plan" }),
          "invalid_input",
          /payload\.user_question/,
        ],
        ["a payload of another kind", () => task({ payload: { n: "one" } }), "invalid_input", /payload\.n/],
        ["a payload that is no object", () => task({ payload: "one" }), "invalid_input", /payload/],
        ["an unknown planner", () => task({ entity_id: "nobody" }), "not_found", /no planner "nobody"/],
        [
          "an unknown worker",
          () => task({ entity_type: "worker", entity_id: planner, function_name: "help" }),
          "not_found",
          /no worker/,
        ],
        [
          "a function of another kind of entity",
          () => task({ function_name: "help" }),
          "invalid_input",
          /help is a function of a worker/,
        ],
        ["another kind of entity", () => task({ entity_type: "agent" }), "invalid_input", /entity_type/],
        ["a negative limit", () => task({ max_retries: -1 }), "invalid_input", /max_retries/],
        ["a field that no task has", () => task({ status: "COMPLETED" }), "invalid_input", /status/],
        [
          "a payload that is too large",
          () => task({ payload: { text: "x".repeat(PAYLOAD_BYTES_MAX) } }),
          "invalid_input",
          /bytes/,
        ],
        ["what PostgreSQL cannot keep", () => task({ payload: { text: "a\u0000b" } }), "invalid_input", /.*/],
      ];
      for (const [what, made, code, message] of cases) {
        it(`refuses ${what}, and the whole batch with it`, async () => {
          await assert.rejects(office.tasks.enqueue([made()]), { code, message });
          await assert.rejects(office.tasks.enqueue([task(), made(), task()]), { code, message });
          assert.equal(await count(), 0);
        });
      }

      it("says which task of a batch it refused", async () => {
        await assert.rejects(office.tasks.enqueue([task(), task({ function_name: "no" })]), {
          message: /^task 2 of 2: function_name/,
        });
      });

      it("writes a batch with its caller's transaction, or not at all", async () => {
        const failure = new Error("on purpose");
        await assert.rejects(
          test.database.transaction(async (transaction) => {
            await office.tasks.within(transaction).enqueue([task(), task()]);
            throw failure;
          }),
          failure,
        );
        assert.equal(await count(), 0);
        await test.database.transaction(async (transaction) => {
          await transaction.query("insert into planners (planner_id) values ('made in here')");
          await office.tasks.within(transaction).enqueue([task({ entity_id: "made in here" })]);
        });
        assert.equal((await claimed()).row.entity_id, "made in here");
      });

      it("keeps what it was given", async () => {
        const payload = { n: 7, text: "Schiefer – 板岩", more: { deep: [1, null] } };
        const [id] = (await office.tasks.enqueue([task({ payload, max_retries: 0 })])) as [string];
        const read = await office.read(id);
        assert.match(id, /^[0-9a-f]{32}$/);
        assert.deepEqual(read.payload, payload);
        assert.equal(read.max_retries, 0);
        assert.equal(read.entity_id, planner);
      });
    });

    describe("run", () => {
      it("tasks of an entity one after another in their order, also of one transaction", async () => {
        const others = [await office.planner(), await office.planner()];
        const order: Record<string, number[]> = {};
        const atWork = new Set<string>();
        office.step = async ({ entityId, payload }) => {
          assert.ok(!atWork.has(entityId));
          atWork.add(entityId);
          await new Promise((resolve) => setTimeout(resolve, Math.random() * 3));
          atWork.delete(entityId);
          order[entityId] = [...(order[entityId] ?? []), payload.n!];
          return undefined;
        };
        const crew = await office.work();
        for (const entity of [planner, ...others]) await office.enqueue(entity, 30);
        await until(async () => (await office.tasks.counts()).COMPLETED === 90);
        await crew.stop();
        const all = Array.from({ length: 30 }, (_, n) => n);
        assert.deepEqual(order, { [planner]: all, [others[0]!]: all, [others[1]!]: all });
      });

      it("what follows with the completion, in one transaction", async () => {
        office.step = async ({ entityId, payload }) => ({
          also: async (transaction) => {
            await transaction.query(
              `update planners set answer = 'n${payload.n}' where planner_id = '${entityId}'`,
            );
            if (payload.n === 0)
              await transaction.query("insert into workers (worker_id) values ('follower')");
          },
          ...(payload.n === 0 && {
            next: [
              task({ payload: { n: 1 } }),
              task({
                entity_type: "worker",
                entity_id: "follower",
                function_name: "help",
                payload: { n: 2 },
              }),
            ],
          }),
        });
        const crew = await office.work();
        await office.enqueue(planner);
        await until(async () => (await office.tasks.counts()).COMPLETED === 3);
        await crew.stop();
        const [row] = await office.query(`select answer from planners where planner_id = '${planner}'`);
        assert.equal(row?.answer, "n1");
      });

      it("nothing of what follows when it is refused", async () => {
        office.step = async ({ entityId, payload }) => ({
          also: async (transaction) => {
            await transaction.query(
              `update planners set answer = 'written' where planner_id = '${entityId}'`,
            );
          },
          next: [payload.n === 0 ? task({ entity_id: "nobody" }) : task({ function_name: "unknown" })],
        });
        const crew = await office.work();
        const [first, second] = (await office.enqueue(planner, 2)) as [string, string];
        await until(async () => (await statusOf(second)) === "FAILED");
        await crew.stop();
        assert.match(String((await office.read(first)).error_message), /no planner "nobody"/);
        assert.match(String((await office.read(second)).error_message), /"unknown" is not registered/);
        const [row] = await office.query(`select answer from planners where planner_id = '${planner}'`);
        assert.equal(row?.answer, null);
        assert.equal(await count(), 2);
      });

      it("a task whose function is not registered fails with that reason, once", async () => {
        const { mark } = test.database.dialect;
        const insert = `insert into task_queue (task_id, entity_type, entity_id, function_name, payload) values (${mark(1)}, 'planner', ${mark(2)}, ${mark(3)}, ${mark(4)})`;
        await office.query(insert, ["gone", planner, "removed_last_year", "{}"]);
        await office.query(insert, ["misfit", planner, "plan", '{"user_question":"?"}']);
        await office.query(insert, ["wrong kind", planner, "help", "{}"]);
        const crew = await office.work();
        await until(async () => (await office.tasks.counts()).FAILED === 3);
        await crew.stop();
        const gone = await office.read("gone");
        assert.match(String(gone.error_message), /"removed_last_year" is not registered here/);
        assert.equal(gone.retry_count, 1);
        assert.equal(gone.retry_after, null);
        assert.match(String((await office.read("misfit")).error_message), /payload\.instruction/);
        assert.match(String((await office.read("wrong kind")).error_message), /a function of a worker/);
      });

      it("a task that fails for now again, while its entity waits for it", async () => {
        const seen: string[] = [];
        office.step = async ({ payload, attempt, attemptsMax }) => {
          seen.push(`${payload.n}: ${attempt}/${attemptsMax}`);
          if (payload.n === 0 && attempt === 1) throw new Error("not now");
          return undefined;
        };
        const crew = await office.work();
        const [first, second] = (await office.enqueue(planner, 2)) as [string, string];
        await until(async () => (await office.read(first)).retry_count === 1);
        const waiting = await office.read(first);
        assert.equal(waiting.status, "PENDING");
        assert.equal(waiting.error_message, "not now");
        const delayMs = Date.parse(waiting.retry_after!) - Date.parse(waiting.updated_at);
        assert.ok(delayMs >= 850 && delayMs <= 1_001, `${delayMs} ms`);
        await until(async () => (await statusOf(second)) === "COMPLETED");
        await crew.stop();
        assert.deepEqual(seen, ["0: 1/3", "0: 2/3", "1: 1/3"]);
        assert.equal((await office.read(first)).error_message, null);
        assert.equal((await office.read(first)).retry_count, 1);
      });

      it("a task that can never succeed is not tried again", async () => {
        office.step = async () => {
          throw new QuarryError("invalid_input", "the question is empty");
        };
        const crew = await office.work();
        const [id] = (await office.enqueue(planner)) as [string];
        await until(async () => (await statusOf(id)) === "FAILED");
        await crew.stop();
        assert.equal((await office.read(id)).error_message, "the question is empty");
        assert.equal((await office.read(id)).retry_count, 1);
      });

      it("a task that is cancelled is aborted, and leaves nothing behind", async () => {
        const started = Promise.withResolvers<void>();
        const ended = Promise.withResolvers<void>();
        office.step = async ({ payload, signal, entityId }) => {
          if (payload.n !== 0) return undefined;
          started.resolve();
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          ended.resolve();
          return {
            also: async (transaction) => {
              await transaction.query(
                `update planners set answer = 'zombie' where planner_id = '${entityId}'`,
              );
            },
          };
        };
        const crew = await office.work();
        const [first, second] = (await office.enqueue(planner, 2)) as [string, string];
        await started.promise;
        assert.equal(await office.tasks.cancel(first), "aborted");
        await ended.promise;
        await until(async () => (await statusOf(second)) === "COMPLETED");
        await crew.stop();
        const [row] = await office.query(`select answer from planners where planner_id = '${planner}'`);
        assert.equal(row?.answer, null);
      });
    });

    describe("tries", () => {
      async function fail(outcome = retry("not now")) {
        const [verdict] = await office.store.settle([{ claim: await claimed(), outcome }]);
        await office.query("update task_queue set retry_after = null");
        return verdict;
      }

      for (const [limit, tries] of [
        [0, 1],
        [1, 1],
        [3, 3],
      ] as const)
        it(`a limit of ${limit} gives ${tries === 1 ? "one" : tries}`, async () => {
          const [id] = (await office.enqueue(planner, 1, { max_retries: limit })) as [string];
          for (let n = 1; n < tries; n++) assert.equal(await fail(), "retrying");
          assert.equal(await fail(), "failed");
          const read = await office.read(id);
          assert.equal(read.status, "FAILED");
          assert.equal(read.retry_count, limit);
          assert.equal(read.error_message, "not now");
          assert.deepEqual(await office.store.claim({ worker: "w", limit: 1 }), []);
        });

      it("a retry by hand keeps the count, clears the error and gives what is left", async () => {
        const [id] = (await office.enqueue(planner)) as [string];
        await fail(failed("never"));
        const retried = await office.tasks.retry(id);
        assert.equal(retried.status, "PENDING");
        assert.equal(retried.retry_count, 1);
        assert.equal(retried.error_message, null);
        assert.equal(await fail(), "retrying");
        assert.equal(await fail(), "failed");
        assert.equal((await office.read(id)).retry_count, 3);
      });

      it("a retry by hand of a task with none left gives it one, as often as it is asked for", async () => {
        const [id] = (await office.enqueue(planner, 1, { max_retries: 2 })) as [string];
        await fail();
        await fail();
        for (let n = 0; n < 3; n++) {
          assert.equal((await office.tasks.retry(id)).retry_count, 2);
          assert.equal(await fail(), "failed");
          assert.equal((await office.read(id)).retry_count, 2);
        }
        await office.tasks.retry(id);
        await office.store.settle([{ claim: await claimed(), outcome: { kind: "done" } }]);
        assert.equal((await office.read(id)).retry_count, 2);
        await assert.rejects(office.tasks.retry(id), { code: "too_late", message: /COMPLETED/ });
      });

      it("the wait doubles from one second and ends at five minutes", () => {
        const { retry: policy } = office.store.queue;
        const waits = [1, 2, 3, 4, 9, 10, 50].map((attempt) => policy.delayMs(attempt, () => 0) / 1000);
        assert.deepEqual(waits, [1, 2, 4, 8, 256, 300, 300]);
      });

      it("a waiting task is tried at once when somebody asks for it", async () => {
        const [id] = (await office.enqueue(planner)) as [string];
        await office.store.settle([{ claim: await claimed(), outcome: retry("not now", 60_000) }]);
        assert.deepEqual(await office.store.claim({ worker: "w", limit: 1 }), []);
        assert.equal((await office.tasks.retry(id)).retry_after, null);
        assert.equal((await claimed()).key, id);
      });

      it("a retried task goes before those that were created after it", async () => {
        const [first] = (await office.enqueue(planner, 3)) as [string];
        await fail(failed("never"));
        const second = await claimed();
        await office.tasks.retry(first);
        assert.deepEqual(await office.store.claim({ worker: "w", limit: 5 }), []);
        await office.store.settle([{ claim: second, outcome: { kind: "done" } }]);
        assert.equal((await claimed()).key, first);
      });
    });

    describe("stale tasks", () => {
      it("that a worker stopped renewing are put back, and it costs a try", async () => {
        const [id] = (await office.enqueue(planner, 1, { max_retries: 2 })) as [string];
        await office.store.claim({ worker: "somebody", limit: 1 });
        assert.equal((await office.store.rescueStale()).length, 0);
        await age(id, 1_000, "lease_until");
        assert.deepEqual(await office.store.rescueStale(), [{ key: id, isFailed: false }]);
        const back = await office.read(id);
        assert.equal(back.status, "PENDING");
        assert.equal(back.retry_count, 1);
        assert.equal(
          back.error_message,
          `${STALE_MESSAGE}: worker somebody stopped renewing its lease (attempt 1 of 2)`,
        );
        await office.store.claim({ worker: "somebody", limit: 1 });
        await age(id, 1_000, "lease_until");
        assert.deepEqual(await office.store.rescueStale(), [{ key: id, isFailed: true }]);
        assert.equal(
          (await office.read(id)).error_message,
          "worker somebody stopped renewing its lease (attempt 2 of 2)",
        );
      });

      it("that somebody marked without a lease are put back after half an hour with the design's message", async () => {
        const [id] = (await office.enqueue(planner)) as [string];
        await office.query(`update task_queue set status = 'IN_PROGRESS' where task_id = '${id}'`);
        await age(id, 29 * 60_000);
        assert.deepEqual(await office.tasks.stale(), []);
        assert.deepEqual(await office.store.rescueStale(), []);
        await age(id, 31 * 60_000);
        assert.deepEqual(await office.tasks.stale(), [id]);
        assert.deepEqual(await office.store.rescueStale(), [{ key: id, isFailed: false }]);
        const back = await office.read(id);
        assert.equal(back.status, "PENDING");
        assert.equal(back.error_message, "Task timed out and was reset");
        assert.equal(back.retry_count, 1);
        assert.deepEqual(await office.tasks.stale(), []);
        assert.equal((await claimed()).key, id);
      });

      it("are not those whose worker lives, however long they take", async () => {
        const [id] = (await office.enqueue(planner)) as [string];
        const claim = await claimed();
        await age(id, 3 * 3_600_000);
        assert.deepEqual(await office.tasks.stale(), [id]);
        await office.store.extend([claim]);
        assert.deepEqual(await office.tasks.stale(), []);
        assert.deepEqual(await office.store.rescueStale(), []);
      });

      it("are lost to whoever held them before somebody started them by hand", async () => {
        const [id] = (await office.enqueue(planner)) as [string];
        const before = await claimed();
        await office.store.settle([{ claim: before, outcome: retry("not now", 60_000) }]);
        await office.query(`update task_queue set status = 'IN_PROGRESS' where task_id = '${id}'`);
        const [verdict] = await office.store.settle([{ claim: before, outcome: { kind: "done" } }]);
        assert.equal(verdict, "lost");
        const { status, retry_after, claimed_by } = await office.read(id);
        assert.deepEqual([status, retry_after, claimed_by], ["IN_PROGRESS", null, null]);
      });

      it("cannot be completed by whoever lost them", async () => {
        const [id] = (await office.enqueue(planner)) as [string];
        const lost = await claimed();
        await age(id, 1_000, "lease_until");
        await office.store.rescueStale();
        const held = await claimed();
        const done = { kind: "done" } as const;
        assert.deepEqual(await office.store.settle([{ claim: lost, outcome: done }]), ["lost"]);
        assert.deepEqual(await office.store.settle([{ claim: held, outcome: done }]), ["done"]);
      });
    });

    describe("the design's own SQL", () => {
      const PENDING = `SELECT task_id, entity_type, entity_id, function_name, payload
FROM task_queue 
WHERE status = 'PENDING'
ORDER BY created_at
LIMIT 100;`;

      it("finds the tasks that wait, in their order", async () => {
        const ids = await office.enqueue(planner, 5);
        const others = await office.enqueue(await office.planner(), 3);
        assert.deepEqual(
          (await office.query(PENDING)).map((row) => row.task_id),
          [...ids, ...others],
        );
        await office.store.claim({ worker: "w", limit: 10 });
        const waiting = (await office.query(PENDING)).length;
        assert.equal(waiting, 6);
        assert.equal(waiting, (await office.tasks.counts()).PENDING);
      });

      it("finds stale tasks and resets them; they run again and their old worker is shut out", async () => {
        const [id] = (await office.enqueue(planner, 2)) as [string];
        const lost = await claimed();
        await age(id, 31 * 60_000);
        const { mark } = test.database.dialect;
        const threshold = new Date(Date.now() - 30 * 60_000).toISOString();
        const found = await office.query(
          `SELECT task_id FROM task_queue WHERE status = 'IN_PROGRESS' AND updated_at < ${mark(1)}`,
          [threshold],
        );
        assert.deepEqual(
          found.map((row) => row.task_id),
          await office.tasks.stale(),
        );
        await office.query(
          `UPDATE task_queue SET status='PENDING', error_message='Task timed out and was reset', updated_at=${mark(1)} WHERE task_id IN (${mark(2)})`,
          [new Date().toISOString(), id],
        );
        const done = { kind: "done" } as const;
        assert.deepEqual(await office.store.settle([{ claim: lost, outcome: done }]), ["lost"]);
        const held = await claimed();
        assert.equal(held.key, id);
        assert.deepEqual(await office.store.settle([{ claim: held, outcome: done }]), ["done"]);
      });

      it("deletes what ended a week ago, as many as we would", async () => {
        const { mark } = test.database.dialect;
        const WEEK_MS = 7 * 24 * 3_600_000;
        const CLEANUP = `DELETE FROM task_queue WHERE status IN ('COMPLETED', 'FAILED') AND updated_at < ${mark(1)}`;
        const fill = async () => {
          const ids = await office.enqueue(planner, 6);
          for (const outcome of [
            { kind: "done" } as const,
            failed("no"),
            { kind: "done" } as const,
            failed("no"),
          ])
            await office.store.settle([{ claim: await claimed(), outcome }]);
          await age(ids[0]!, WEEK_MS + 60_000);
          await age(ids[1]!, WEEK_MS + 60_000);
          await age(ids[2]!, WEEK_MS - 60_000);
          await age(ids[4]!, WEEK_MS + 60_000);
          return ids;
        };
        const ids = await fill();
        await office.query(CLEANUP, [new Date(Date.now() - WEEK_MS).toISOString()]);
        const left = async () => (await office.tasks.list()).tasks.map((row) => row.task_id).toSorted();
        assert.deepEqual(await left(), ids.slice(2).toSorted());
        await office.query("delete from task_queue");
        const again = await fill();
        assert.equal(await office.tasks.prune(), 2);
        assert.deepEqual(await left(), again.slice(2).toSorted());
      });

      it("retries as the library does", async () => {
        const [id] = (await office.enqueue(planner, 2, { max_retries: 1 })) as [string];
        await office.store.settle([{ claim: await claimed(), outcome: failed("no") }]);
        await office.query(
          `UPDATE task_queue SET status='PENDING', error_message=NULL, updated_at=${test.database.dialect.mark(1)} WHERE task_id = '${id}'`,
          [new Date().toISOString()],
        );
        // The other one has had the turn since.
        await office.store.settle([{ claim: await claimed(), outcome: { kind: "done" } }]);
        await office.store.repair();
        assert.equal((await claimed()).key, id);
      });
    });

    describe("lists", () => {
      it("tasks newest first, by status, entity and function, in pages", async () => {
        const other = await office.planner();
        const mine = await office.enqueue(planner, 4);
        const theirs = await office.enqueue(other, 3);
        const newest = [...mine, ...theirs].toReversed();
        const seen: string[] = [];
        let after: string | undefined;
        do {
          const page = await office.tasks.list({ limit: 2, after });
          seen.push(...page.tasks.map((row) => row.task_id));
          after = page.next;
        } while (after !== undefined);
        assert.deepEqual(seen, newest);
        const ids = async (filter: object) =>
          (await office.tasks.list(filter)).tasks.map((row) => row.task_id);
        assert.deepEqual(await ids({ entity_id: other }), theirs.toReversed());
        assert.deepEqual(await ids({ entity_type: "worker" }), []);
        assert.deepEqual(await ids({ function_name: "plan" }), []);
        await claimed();
        assert.deepEqual(await ids({ status: "IN_PROGRESS" }), [mine[0]]);
        assert.deepEqual(await office.tasks.counts(), {
          PENDING: 6,
          IN_PROGRESS: 1,
          COMPLETED: 0,
          FAILED: 0,
        });
        await assert.rejects(office.tasks.list({ limit: 0 }), { code: "invalid_input" });
        await assert.rejects(office.tasks.list({ after: "nonsense" }), { code: "invalid_input" });
        await assert.rejects(office.tasks.read("nothing"), { code: "not_found" });
      });
    });
  });
}
