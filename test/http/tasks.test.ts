import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { z } from "zod";
import { defineFunction } from "../../src/index.ts";
import { type Serving, serveForTest } from "./serving.ts";

describe("function tasks over HTTP", () => {
  let serving: Serving;
  let planner: string;
  before(async () => {
    serving = await serveForTest();
    serving.quarry.tasks.register(
      defineFunction({
        name: "double",
        entityType: "planner",
        payload: z.object({ n: z.int() }),
        run: async ({ payload }) => {
          if (payload.n < 0) throw Object.assign(new Error("below zero"));
        },
      }),
    );
    planner = await serving.quarry.tasks.createEntity("planner", "?");
  });
  after(() => serving.close());

  async function ask(path: string, init?: RequestInit) {
    const response = await serving.ask(path, init);
    return { status: response.status, body: JSON.parse(await response.text()) };
  }
  const post = (path: string, body?: unknown) =>
    ask(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  const task = (more: object = {}) => ({
    ...{ entity_type: "planner", entity_id: planner, function_name: "double", payload: { n: 1 } },
    ...more,
  });

  it("one or many are enqueued, listed by filter and read with their payloads", async () => {
    const one = await post("/tasks", task({ max_retries: 5 }));
    assert.equal(one.status, 201);
    const many = await post("/tasks", [task(), task({ payload: { n: 2 } })]);
    assert.equal(many.body.length, 2);
    const { body } = await ask(`/tasks/${one.body.task_id}`);
    assert.deepEqual([body.status, body.max_retries, body.payload], ["PENDING", 5, { n: 1 }]);
    const first = (await ask(`/tasks?entity_id=${planner}&status=PENDING&limit=2`)).body;
    assert.deepEqual(
      first.tasks.map(({ task_id: id }: { task_id: string }) => id),
      [many.body[1].task_id, many.body[0].task_id],
    );
    assert.equal(first.tasks[0].payload, undefined);
    const second = (await ask(`/tasks?entity_id=${planner}&limit=2&after=${first.next}`)).body;
    assert.deepEqual([second.tasks.length, second.next], [1, null]);
    assert.deepEqual((await ask("/tasks?function_name=other")).body.tasks, []);
  });

  it("what could never run is refused, and the whole batch with it", async () => {
    const total = async () => (await ask("/tasks?limit=1000")).body.tasks.length;
    const before = await total();
    for (const [wrong, status, says] of [
      [{ function_name: "unknown" }, 400, /"unknown" is not registered/],
      [{ payload: {} }, 400, /payload\.n/],
      [{ payload: null }, 400, /payload\.n/],
      [{ entity_id: "nobody" }, 404, /no planner "nobody"/],
      [{ entity_type: "agent" }, 400, /entity_type/],
      [{ status: "COMPLETED" }, 400, /status/],
    ] as const) {
      const { status: code, body } = await post("/tasks", [task(), task(wrong)]);
      assert.equal(code, status, JSON.stringify(body));
      assert.match(JSON.stringify(body).replaceAll('\\"', '"'), says);
    }
    assert.equal(await total(), before);
    assert.equal((await post("/tasks", [])).status, 400);
  });

  it("one that failed is retried with its count, one that waits is cancelled, one that is over is too late", async () => {
    const { body: made } = await post("/tasks", task({ payload: { n: -1 }, max_retries: 0 }));
    const crew = await serving.quarry.work({ lanes: ["tasks"] });
    const read = async () => (await ask(`/tasks/${made.task_id}`)).body;
    while ((await read()).status !== "FAILED") await new Promise((resolve) => setTimeout(resolve, 20));
    await crew.stop();
    assert.equal((await read()).error_message, "below zero");
    assert.equal((await ask(`/tasks/${made.task_id}`, { method: "DELETE" })).status, 409);
    const retried = await post(`/tasks/${made.task_id}/retry`);
    assert.deepEqual(
      [retried.status, retried.body.status, retried.body.error_message],
      [200, "PENDING", null],
    );
    assert.equal((await post(`/tasks/${made.task_id}/retry`)).status, 409);
    const cancelled = await ask(`/tasks/${made.task_id}`, { method: "DELETE" });
    assert.deepEqual(cancelled.body, { task_id: made.task_id, verdict: "cancelled" });
    for (const path of [`/tasks/${made.task_id}`, "/tasks/nothing"])
      assert.equal((await ask(path)).status, 404);
    assert.equal((await post("/tasks/nothing/retry")).status, 404);
    assert.match(
      await (await serving.ask("/metrics")).text(),
      /quarry_tasks\{queue="tasks",status="COMPLETED"\} 3/,
    );
  });
});
