import { z } from "zod";
import { agentLane } from "../../src/agents/lane.ts";
import { type FunctionTaskPayload, functionQueue } from "../../src/agents/queue.ts";
import {
  defineFunction,
  FunctionRegistry,
  type FunctionResult,
  type FunctionTask,
  type NewTask,
} from "../../src/agents/registry.ts";
import type { FunctionTaskRow } from "../../src/agents/task-rows.ts";
import { Tasks } from "../../src/agents/tasks.ts";
import type { Row } from "../../src/database/database.ts";
import { Crew, openQueue, prepareQueue, type QueueStore, type RetryPolicy } from "../../src/index.ts";
import type { TestDatabase } from "../support/databases.ts";

/** Function tasks on one database, with a function that does what the test says. */
export interface Office {
  readonly tasks: Tasks;
  readonly registry: FunctionRegistry;
  readonly store: QueueStore<FunctionTaskPayload>;
  /** What "step" does, for planners; "help" does it for workers. */
  step: (task: FunctionTask<{ n?: number | undefined }>) => Promise<FunctionResult | undefined>;
  query(sql: string, params?: readonly unknown[]): Promise<Row[]>;
  /** When it is refused, its locks are gone before that is told; PostgreSQL tells first. */
  write(sql: string): Promise<Row[]>;
  /** Tasks for one entity, in order. */
  enqueue(entityId: string, count?: number, more?: Partial<NewTask>): Promise<string[]>;
  planner(): Promise<string>;
  read(id: string): Promise<FunctionTaskRow>;
  work(): Promise<Crew>;
}

export const RULES = { staleMs: 60_000, taskStaleMs: 1_800_000, taskRetentionDays: 7, heartbeatMs: 10_000 };

export async function openOffice(
  { database }: Pick<TestDatabase, "database">,
  { retry, ...rules }: Partial<typeof RULES> & { retry?: RetryPolicy } = {},
): Promise<Office> {
  const { heartbeatMs, ...settings } = { ...RULES, ...rules };
  const queue = { ...functionQueue(settings), ...(retry && { retry }) };
  await prepareQueue(database, queue);
  const payload = z.object({ n: z.int().optional() });
  const registry = new FunctionRegistry([
    defineFunction({ name: "step", entityType: "planner", payload, run: (task) => office.step(task) }),
    defineFunction({ name: "help", entityType: "worker", payload, run: (task) => office.step(task) }),
  ]);
  const tasks = new Tasks({ database, queue, registry, attemptsMax: 3 });
  const office: Office = {
    tasks,
    registry,
    store: openQueue(database, queue),
    step: async () => undefined,
    query: (sql, params) => database.query(sql, params),
    write: (sql) => database.transaction((transaction) => transaction.query(sql)),
    enqueue: (entityId, count = 1, more = {}) =>
      tasks.enqueue(
        Array.from({ length: count }, (_, n) => ({
          ...{ entity_type: "planner", entity_id: entityId, function_name: "step", payload: { n } },
          ...more,
        })),
      ),
    planner: () => tasks.createEntity("planner", "What is granite?"),
    read: (id) => tasks.read(id),
    work: () =>
      new Crew({
        database,
        lanes: [agentLane({ queue, registry, tasks, tasksAtOnce: 8, pollMs: 50 })],
        heartbeatMs,
        checkEveryMs: 200,
        staleMs: settings.staleMs,
        pollMs: 50,
      }).start(),
  };
  return office;
}

/** Looks until it holds; a test that never gets there is ended by the runner. */
export async function until(isReached: () => Promise<boolean>): Promise<void> {
  while (!(await isReached())) await new Promise((resolve) => setTimeout(resolve, 10));
}
