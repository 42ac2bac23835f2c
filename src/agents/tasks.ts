import { z } from "zod";
import type { Database, Transaction } from "../database/database.ts";
import { QuarryError } from "../errors.ts";
import { firstProblem } from "../problems.ts";
import type { Queue } from "../queue/declaration.ts";
import type { LaneStore } from "../queue/lane-store.ts";
import { openQueue, type QueueStore } from "../queue/store.ts";
import { checkEntities, createEntity, newAgentId } from "./entities.ts";
import {
  ENTITY_TYPES,
  type EntityType,
  FUNCTION_TASK_STATUSES,
  type FunctionTaskPayload,
  type FunctionTaskStatus,
} from "./queue.ts";
import type { AgentFunction, FunctionRegistry, NewTask } from "./registry.ts";
import { alsoForgetting } from "./retention.ts";
import {
  type FunctionTaskListOptions,
  type FunctionTaskPage,
  type FunctionTaskRow,
  listTasks,
  readTask,
} from "./task-rows.ts";

export const TASKS_ENQUEUED_MAX = 10_000;
export const PAYLOAD_BYTES_MAX = 1_000_000;
const STALE_LISTED_MAX = 1_000;

/** What a task may be made of. What its payload must be says its function. */
export const newTaskSchema = z.strictObject({
  entity_type: z.enum(ENTITY_TYPES),
  entity_id: z.string().min(1).max(200).describe("A planner or a worker that exists."),
  function_name: z.string().min(1).max(100),
  payload: z
    .record(z.string(), z.unknown())
    .nullish()
    .describe("What the function needs; each says what that is."),
  max_retries: z.int().min(0).max(100).optional().describe("How often it is tried before it has failed."),
});

interface Parts {
  readonly database: Database;
  readonly queue: Queue<FunctionTaskPayload>;
  readonly registry: FunctionRegistry;
  /** `max_retries` of tasks that do not say it. */
  readonly attemptsMax: number;
}

/** Steps of agents, and what became of them. */
export class Tasks {
  readonly #parts: Parts;
  readonly #store: QueueStore<FunctionTaskPayload>;
  /** For lanes and janitors. */
  readonly store: LaneStore<FunctionTaskPayload>;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#store = openQueue(parts.database, parts.queue);
    this.store = alsoForgetting(this.#store, parts.database);
  }

  /** Names of the functions that tasks may be for. */
  get functions(): readonly string[] {
    return this.#parts.registry.names;
  }

  /** Also for tasks that are in the table already. Before `work`, or they fail for want of it. */
  register(declared: AgentFunction): void {
    this.#parts.registry.register(declared);
  }

  /** A planner or a worker for functions of one's own. Returns its id. */
  createEntity(entityType: EntityType, about = ""): Promise<string> {
    return createEntity(this.#parts.database, { entityType, about });
  }

  /** All or none, in the order given. Returns their ids. */
  async enqueue(tasks: readonly NewTask[]): Promise<string[]> {
    this.check(tasks);
    return this.#parts.database.transaction((transaction) => this.#insert(transaction, tasks));
  }

  /** The same inside a transaction of the caller's, which may have made the entities. */
  within(transaction: Transaction): Pick<Tasks, "enqueue"> {
    return {
      enqueue: async (tasks) => {
        this.check(tasks);
        return this.#insert(transaction, tasks);
      },
    };
  }

  /** Refuses what could never run: an unknown function, a payload that is not what it needs. */
  check(tasks: readonly NewTask[]): void {
    if (tasks.length > TASKS_ENQUEUED_MAX)
      throw new QuarryError("invalid_input", `at most ${TASKS_ENQUEUED_MAX} tasks are enqueued at once`);
    for (const [position, task] of tasks.entries()) {
      try {
        checkShape(task);
        this.#parts.registry.resolve(task);
      } catch (error) {
        if (tasks.length === 1 || !(error instanceof QuarryError)) throw error;
        throw new QuarryError(error.code, `task ${position + 1} of ${tasks.length}: ${error.message}`);
      }
    }
  }

  async #insert(transaction: Transaction, tasks: readonly NewTask[]): Promise<string[]> {
    const { database, attemptsMax } = this.#parts;
    await checkEntities(transaction, database, tasks);
    const rows = tasks.map(({ payload = null, max_retries = attemptsMax, ...task }) => ({
      ...{ task_id: newAgentId(database), payload, max_retries },
      ...task,
    }));
    await this.#store.within(transaction).enqueue(rows);
    return rows.map(({ task_id }) => task_id);
  }

  /** With its payload. */
  async read(id: string): Promise<FunctionTaskRow> {
    const task = await readTask(this.#parts.database, id);
    if (task) return task;
    throw new QuarryError(
      "not_found",
      `there is no task ${JSON.stringify(id)}; it may have been cancelled: see quarry tasks list`,
    );
  }

  list(options: FunctionTaskListOptions = {}): Promise<FunctionTaskPage> {
    return listTasks(this.#parts.database, options);
  }

  async counts(): Promise<Record<FunctionTaskStatus, number>> {
    const counts = await this.#store.countByStatus();
    return Object.fromEntries(
      FUNCTION_TASK_STATUSES.map((status) => [status, counts.get(status) ?? 0]),
    ) as never;
  }

  /**
   * Puts a failed task back into line, or one that waits to be tried again. Its count stays: with tries left it has
   * those, with none it has this one.
   */
  async retry(id: string): Promise<FunctionTaskRow> {
    const [retried] = await this.#store.retry([id]);
    const task = await this.read(id);
    if (retried !== undefined) return task;
    throw new QuarryError("too_late", `task ${id} is ${task.status}: only one that failed can be retried`);
  }

  /** A waiting task goes away, a running one is taken from its worker; a finished one is too late. */
  async cancel(id: string): Promise<"cancelled" | "aborted"> {
    const verdict = (await this.#store.cancel([id])).get(id);
    if (verdict === "cancelled" || verdict === "aborted") return verdict;
    const { status } = await this.read(id);
    throw new QuarryError("too_late", `task ${id} is ${status} and cannot be cancelled`);
  }

  /** Ids of tasks that are IN_PROGRESS and were not touched for so long. Workers that live touch theirs all the time. */
  async stale({ olderThanMs = this.#parts.queue.lease.unheldMs! } = {}): Promise<string[]> {
    const { database } = this.#parts;
    const { now, param, shift } = database.dialect;
    const before = shift(now, `-${param(2, "real")}`);
    const sql = `select task_id from task_queue where status = 'IN_PROGRESS' and updated_at < ${before} order by updated_at limit ${STALE_LISTED_MAX}`;
    const rows = await database.query({ name: "tasks.stale", sql }, [database.now(), olderThanMs]);
    return rows.map((row) => String(row.task_id));
  }

  /**
   * Deletes tasks that are over, good or bad, for at least so long, and planners and workers that are and have no tasks
   * left. Returns how many rows.
   */
  async prune({ olderThanMs = this.#parts.queue.retention!.doneMs! } = {}): Promise<number> {
    let pruned = 0;
    for (let last = -1; last !== 0; pruned += last)
      last = await this.store.prune({ doneOlderThanMs: olderThanMs, failedOlderThanMs: olderThanMs });
    return pruned;
  }
}

function checkShape(task: NewTask): void {
  const parsed = newTaskSchema.safeParse(task);
  if (!parsed.success) {
    throw new QuarryError("invalid_input", firstProblem(parsed.error, "a task"));
  }
  if (Buffer.byteLength(JSON.stringify(task.payload ?? null)) > PAYLOAD_BYTES_MAX)
    throw new QuarryError("invalid_input", `payload: more than ${PAYLOAD_BYTES_MAX} bytes`);
}
