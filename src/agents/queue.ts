import { defineQueue, type Queue } from "../queue/declaration.ts";
import { exponential } from "../queue/retry-policy.ts";

/**
 * Function tasks, to be read first. A task is a function's name, its payload and the entity (a planner or a worker)
 * that it works for. Tasks of one entity are a group: they run one after another, in the order they were created,
 * whichever process takes them; one that will be tried again keeps its entity's turn. What must hold whoever writes a
 * row is done by checks and triggers of the database:
 *
 *   task_queue         only the transitions below, only for entities that exist, one running task an entity
 *   planners, workers  an entity that is deleted takes its tasks along
 */
export const ENTITY_TYPES = ["planner", "worker"] as const;
export type EntityType = (typeof ENTITY_TYPES)[number];

export const FUNCTION_TASK_STATUSES = ["PENDING", "IN_PROGRESS", "COMPLETED", "FAILED"] as const;
export type FunctionTaskStatus = (typeof FUNCTION_TASK_STATUSES)[number];

/** What may follow what. The schema has the same as a trigger. */
export const TRANSITIONS: Readonly<Record<FunctionTaskStatus, readonly FunctionTaskStatus[]>> = {
  PENDING: ["IN_PROGRESS"],
  // Back to PENDING: given back, tried again, or taken from a worker that fell silent.
  IN_PROGRESS: ["COMPLETED", "FAILED", "PENDING"],
  FAILED: ["PENDING"],
  COMPLETED: [],
};

export interface FunctionTaskPayload {
  entity_type: EntityType;
  entity_id: string;
  function_name: string;
  payload: object | null;
}

export const FUNCTION_QUEUE = "tasks";
export const STALE_MESSAGE = "Task timed out and was reset";
const DAY_MS = 24 * 3_600_000;

export function functionQueue(settings: {
  /** A worker that is silent for this long has lost its tasks. */
  staleMs: number;
  /** So has whoever marked a task IN_PROGRESS without a lease, and has not touched it since. */
  taskStaleMs: number;
  taskRetentionDays: number;
}): Queue<FunctionTaskPayload> {
  const keptMs = settings.taskRetentionDays * DAY_MS;
  return defineQueue<FunctionTaskPayload>({
    name: FUNCTION_QUEUE,
    table: "task_queue",
    key: { column: "task_id", type: "text" },
    columns: {
      status: "status",
      token: "lease_token",
      lease: "lease_until",
      runAfter: "retry_after",
      attempts: "retry_count",
      error: "error_message",
      worker: "claimed_by",
      // Not createdAt: the table's default tells the rows of one transaction apart.
      startedAt: "started_at",
      // A task that is over is not touched any more.
      finishedAt: "updated_at",
      updatedAt: "updated_at",
    },
    statuses: { pending: "PENDING", running: "IN_PROGRESS", done: "COMPLETED", failed: "FAILED" },
    attempts: { count: "failures", max: "max_retries", again: "once" },
    lease: { ms: settings.staleMs, unheldMs: settings.taskStaleMs, lostMessage: STALE_MESSAGE },
    order: ["created_at"],
    group: { columns: ["entity_type", "entity_id"], turn: "has_turn" },
    retry: exponential({ baseMs: 1_000, capMs: 300_000 }),
    reads: ["entity_type", "entity_id", "function_name", "payload"],
    kinds: { payload: "json", has_turn: "boolean" },
    retention: { doneMs: keptMs, failedMs: keptMs },
  });
}
