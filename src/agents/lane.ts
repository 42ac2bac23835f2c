import { attempt } from "../outcomes.ts";
import type { Queue } from "../queue/declaration.ts";
import type { Task } from "../queue/held.ts";
import { defineLane, type LaneDeclaration } from "../queue/lane.ts";
import { done, type Outcome } from "../queue/outcome.ts";
import type { FunctionTaskPayload } from "./queue.ts";
import type { FunctionRegistry } from "./registry.ts";
import type { Tasks } from "./tasks.ts";

/** The most tasks that are taken in one look, each of an entity of its own. */
const TAKEN_MAX = 100;

interface Parts {
  readonly queue: Queue<FunctionTaskPayload>;
  readonly registry: FunctionRegistry;
  readonly tasks: Tasks;
  readonly tasksAtOnce: number;
  readonly pollMs: number;
}

export function agentLane(parts: Parts): LaneDeclaration<object> {
  return defineLane({
    queue: parts.queue,
    store: parts.tasks.store,
    concurrency: Math.min(parts.tasksAtOnce, TAKEN_MAX),
    // Short steps and long ones take turns: held in advance, a task would wait here for somebody's model to answer.
    prefetchMax: 0,
    pollMs: parts.pollMs,
    handle: (task) => attempt(task, () => work(parts, task)),
  });
}

/** What follows is written with the completion of the task, so that no step is enqueued twice or forgotten. */
async function work({ registry, tasks }: Parts, task: Task<FunctionTaskPayload>): Promise<Outcome> {
  // A function that is no longer registered, or wants something else now, will not come back by waiting.
  const { run, payload } = registry.resolve(task.row);
  const result = await run.run({
    taskId: String(task.key),
    entityType: task.row.entity_type,
    entityId: task.row.entity_id,
    payload,
    attempt: task.attempt,
    // One that was put back with no tries left has this one.
    attemptsMax: Math.max(task.attempt, task.attemptsMax),
    signal: task.signal,
  });
  const { also, next = [] } = result ?? {};
  tasks.check(next);
  if (!also && next.length === 0) return done();
  return {
    kind: "done",
    also: async (transaction) => {
      await also?.(transaction);
      if (next.length > 0) await tasks.within(transaction).enqueue(next);
    },
  };
}
