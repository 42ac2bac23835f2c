import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { FUNCTION_TASK_STATUSES, type FunctionTaskStatus, TRANSITIONS } from "../../src/agents/queue.ts";
import { isQuarryError } from "../../src/errors.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import { type Office, openOffice } from "./office.ts";

/** The design's table, and the way back that its own reset of stale tasks takes. */
const ALLOWED = new Set([
  "PENDING → IN_PROGRESS",
  "IN_PROGRESS → COMPLETED",
  "IN_PROGRESS → FAILED",
  "FAILED → PENDING",
  "IN_PROGRESS → PENDING",
]);
const PAIRS = FUNCTION_TASK_STATUSES.flatMap((from) =>
  FUNCTION_TASK_STATUSES.filter((to) => to !== from).map((to) => ({ from, to })),
);

describe("transitions of function tasks", () => {
  it("are those of the design", () => {
    const declared = PAIRS.filter(({ from, to }) => TRANSITIONS[from].includes(to));
    assert.deepEqual(new Set(declared.map(({ from, to }) => `${from} → ${to}`)), ALLOWED);
  });
});

for (const { name, open } of DATABASES) {
  describe(`transitions of function tasks on ${name}`, () => {
    let test: TestDatabase;
    let office: Office;
    before(async () => {
      test = await open();
      office = await openOffice(test);
    });
    after(() => test.close());

    const set = (id: string, status: FunctionTaskStatus) =>
      office.write(
        `update task_queue set status = '${status}', error_message = 'said' where task_id = '${id}'`,
      );

    async function taskThatIs(status: FunctionTaskStatus): Promise<string> {
      const [id] = (await office.enqueue(await office.planner())) as [string];
      if (status === "PENDING") return id;
      await set(id, "IN_PROGRESS");
      if (status !== "IN_PROGRESS") await set(id, status);
      return id;
    }

    for (const { from, to } of PAIRS) {
      const isAllowed = ALLOWED.has(`${from} → ${to}`);
      it(`the database ${isAllowed ? "allows" : "refuses"} ${from} → ${to}`, async () => {
        const id = await taskThatIs(from);
        if (isAllowed) await set(id, to);
        else
          await assert.rejects(
            set(id, to),
            (error) =>
              isQuarryError(error, "constraint_violated") &&
              error.message.includes(`invalid status transition: ${from} → ${to}`),
          );
        assert.equal((await office.read(id)).status, isAllowed ? to : from);
      });
    }

    it("writing the status that a task has is no transition", async () => {
      for (const status of FUNCTION_TASK_STATUSES) await set(await taskThatIs(status), status);
    });

    /** What may be asked of a task in each status, and what becomes of it. */
    const ASKED: Record<FunctionTaskStatus, { retry: string; cancel: string; claim: string }> = {
      PENDING: { retry: "too_late", cancel: "cancelled", claim: "IN_PROGRESS" },
      IN_PROGRESS: { retry: "too_late", cancel: "aborted", claim: "IN_PROGRESS" },
      COMPLETED: { retry: "too_late", cancel: "too_late", claim: "COMPLETED" },
      FAILED: { retry: "PENDING", cancel: "too_late", claim: "FAILED" },
    };
    const codeOf = (error: unknown) => (isQuarryError(error) ? error.code : String(error));
    for (const status of FUNCTION_TASK_STATUSES) {
      it(`the library does with a task that is ${status} what may be done`, async () => {
        const { retry, cancel, claim } = ASKED[status];
        const retried = await office.tasks
          .retry(await taskThatIs(status))
          .then((task) => task.status, codeOf);
        assert.equal(retried, retry);
        const cancelled = await taskThatIs(status);
        assert.equal(await office.tasks.cancel(cancelled).catch(codeOf), cancel);
        if (cancel === "too_late") assert.equal((await office.read(cancelled)).status, status);
        else await assert.rejects(office.read(cancelled), { code: "not_found" });
        const id = await taskThatIs(status);
        await office.store.claim({ worker: "w", limit: 1_000 });
        assert.equal((await office.read(id)).status, claim);
      });
    }

    it("a task that is not there can neither be retried nor cancelled", async () => {
      await assert.rejects(office.tasks.retry("nothing"), { code: "not_found" });
      await assert.rejects(office.tasks.cancel("nothing"), { code: "not_found" });
    });
  });
}
