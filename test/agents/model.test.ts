import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import fc from "fast-check";
import { FUNCTION_TASK_STATUSES } from "../../src/agents/queue.ts";
import { type Claim, done, failed, isQuarryError, type Outcome, released, retry } from "../../src/index.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import { type ModelOutcome, type ModelTask, TaskModel } from "./model.ts";
import { type Office, openOffice } from "./office.ts";

const ENTITIES = 3;
const OUTCOMES: Record<ModelOutcome, Outcome> = {
  done: done(),
  retry: retry("not now", 0),
  "retry later": retry("not now", 3_600_000),
  failed: failed("never"),
  released: released(),
};

const pick = fc.nat({ max: 50 });
const command = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("enqueue" as const),
      entity: fc.nat({ max: ENTITIES - 1 }),
      count: fc.integer({ min: 1, max: 3 }),
      limit: fc.nat({ max: 3 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant("claim" as const), limit: fc.integer({ min: 1, max: 3 }) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("settle" as const),
      pick,
      outcome: fc.constantFrom(...(Object.keys(OUTCOMES) as ModelOutcome[])),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom("lapse", "retry", "cancel"), pick }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("write" as const),
      pick,
      status: fc.constantFrom(...FUNCTION_TASK_STATUSES),
    }),
  },
);
type Command = typeof command extends fc.Arbitrary<infer One> ? One : never;

for (const { name, open } of DATABASES) {
  describe(`the state machine of function tasks on ${name}`, () => {
    let test: TestDatabase;
    let office: Office;
    before(async () => {
      test = await open();
      office = await openOffice(test);
    });
    after(() => test.close());

    it("does what the model does, whatever is asked of it and in whatever order", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(command, { minLength: 5, maxLength: 30 }), async (commands) => {
          await office.query("delete from planners");
          const entities = [];
          for (let made = 0; made < ENTITIES; made++) entities.push(await office.planner());
          const run = new Run(office, entities);
          for (const one of commands) {
            await run.step(one);
            await run.compare(one);
          }
        }),
        { numRuns: name === "SQLite" ? 200 : 80 },
      );
    });
  });
}

interface Held {
  readonly task: ModelTask;
  readonly holder: number;
  readonly claim: Claim<object>;
}

/** The same commands against the model and the database. */
class Run {
  readonly #model = new TaskModel();
  readonly #office: Office;
  readonly #entities: readonly string[];
  /** Also those that were lost since. */
  readonly #held: Held[] = [];

  constructor(office: Office, entities: readonly string[]) {
    this.#office = office;
    this.#entities = entities;
  }

  async step(command: Command): Promise<void> {
    const { store, tasks } = this.#office;
    switch (command.do) {
      case "enqueue": {
        const more = { max_retries: command.limit };
        const ids = await this.#office.enqueue(this.#entities[command.entity]!, command.count, more);
        for (const id of ids) this.#model.add(id, command.entity, command.limit);
        return;
      }
      case "claim": {
        const taken = this.#model.claim(command.limit);
        const claims = await store.claim({ worker: "model", limit: command.limit });
        assert.deepEqual(
          claims.map(({ key }) => key),
          taken.map(({ id }) => id),
        );
        for (const [index, task] of taken.entries())
          this.#held.push({ task, holder: task.holder, claim: claims[index]! });
        return;
      }
      case "settle": {
        const held = this.#held[command.pick % this.#held.length];
        if (!held) return;
        const isWritten = this.#model.settle(held.task, held.holder, command.outcome);
        const [verdict] = await store.settle([{ claim: held.claim, outcome: OUTCOMES[command.outcome] }]);
        assert.equal(verdict !== "lost", isWritten);
        return;
      }
      case "lapse":
        return this.#lapse(command.pick);
      case "retry":
      case "cancel": {
        const task = this.#pick(command.pick);
        if (!task) return;
        const isDone = this.#model[command.do](task);
        const answer = tasks[command.do](task.id).then(
          () => true,
          (error) => !isQuarryError(error, "too_late"),
        );
        assert.equal(await answer, isDone);
        return;
      }
      case "write": {
        const task = this.#pick(command.pick);
        if (!task) return;
        const isAllowed = this.#model.write(task, command.status);
        const sql = `update task_queue set status = '${command.status}', error_message = 'by hand' where task_id = '${task.id}'`;
        const written = this.#office.write(sql).then(
          () => true,
          (error) => !isQuarryError(error, "constraint_violated"),
        );
        assert.equal(await written, isAllowed);
        await store.repair();
        return;
      }
      default:
        command satisfies never;
    }
  }

  /** One that is held, or was marked by hand, is left alone for too long. */
  async #lapse(picked: number): Promise<void> {
    const running = this.#model.tasks.filter(({ status }) => status === "IN_PROGRESS");
    const task = running[picked % running.length];
    if (!task) return;
    const longAgo = "2020-01-01T00:00:00.000Z";
    const isHeld = `status = 'IN_PROGRESS' and task_id = '${task.id}'`;
    await this.#office.query(
      `update task_queue set lease_until = '${longAgo}' where lease_until is not null and ${isHeld}`,
    );
    await this.#office.query(`update task_queue set updated_at = '${longAgo}' where ${isHeld}`);
    this.#model.rescue(task);
    const rescued = await this.#office.store.rescueStale();
    assert.deepEqual(rescued, [{ key: task.id, isFailed: task.status === "FAILED" }]);
  }

  #pick(picked: number): ModelTask | undefined {
    return this.#model.tasks[picked % this.#model.tasks.length];
  }

  async compare(after: Command): Promise<void> {
    const rows = await this.#office.query("select * from task_queue order by created_at, task_id");
    const found = rows.map((row) => ({
      id: row.task_id,
      status: row.status,
      count: Number(row.retry_count),
      isDelayed: row.retry_after !== null,
      hasTurn: Boolean(row.has_turn),
    }));
    const expected = this.#model.tasks.map(({ id, status, count, isDelayed, hasTurn }) => ({
      ...{ id, status, count, isDelayed, hasTurn },
    }));
    assert.deepEqual(found, expected, `after ${JSON.stringify(after)}`);
  }
}
