import { decodePosition, encodeCursor } from "../database/cursor.ts";
import type { Database, Row } from "../database/database.ts";
import { QuarryError } from "../errors.ts";
import type { EntityType, FunctionTaskStatus } from "./queue.ts";

/** A task as its users see it, in the columns' own words. */
export interface FunctionTaskRow {
  readonly task_id: string;
  readonly entity_type: EntityType;
  readonly entity_id: string;
  readonly function_name: string;
  readonly status: FunctionTaskStatus;
  readonly error_message: string | null;
  readonly retry_count: number;
  readonly max_retries: number;
  readonly created_at: string;
  readonly updated_at: string;
  readonly started_at: string | null;
  /** When it is tried again. */
  readonly retry_after: string | null;
  /** The process that works on it, or did. */
  readonly claimed_by: string | null;
  /** What its function is given. Not in lists. */
  readonly payload?: unknown;
}

export interface FunctionTaskFilter {
  readonly status?: FunctionTaskStatus | undefined;
  readonly entity_type?: EntityType | undefined;
  readonly entity_id?: string | undefined;
  readonly function_name?: string | undefined;
}

export interface FunctionTaskListOptions extends FunctionTaskFilter {
  readonly limit?: number | undefined;
  /** The cursor of the page before. */
  readonly after?: string | undefined;
}

export interface FunctionTaskPage {
  readonly tasks: readonly FunctionTaskRow[];
  /** Undefined on the last page. */
  readonly next: string | undefined;
}

export const TASKS_LISTED_MAX = 1_000;
const FILTERS = ["status", "entity_type", "entity_id", "function_name"] as const;
const COLUMNS = [
  ...["task_id", "entity_type", "entity_id", "function_name", "status", "error_message", "retry_count"],
  ...["max_retries", "created_at", "updated_at", "started_at", "retry_after", "claimed_by"],
];

export async function readTask(database: Database, id: string): Promise<FunctionTaskRow | undefined> {
  const sql = `select ${COLUMNS.join(", ")}, payload from task_queue where task_id = ${database.dialect.mark(1)}`;
  const [row] = await database.query({ name: "tasks.read", sql }, [id]);
  return row && { ...taskOf(row), payload: readJson(row.payload) };
}

/** Newest first, without payloads. Pages by the position of the last task, so that a page never skips or repeats one. */
export async function listTasks(
  database: Database,
  options: FunctionTaskListOptions,
): Promise<FunctionTaskPage> {
  const limit = options.limit ?? 100;
  if (!(Number.isInteger(limit) && limit >= 1 && limit <= TASKS_LISTED_MAX))
    throw new QuarryError("invalid_input", `limit must be a whole number from 1 to ${TASKS_LISTED_MAX}`);
  const { mark } = database.dialect;
  const params: unknown[] = [];
  const terms = FILTERS.flatMap((name) =>
    options[name] === undefined ? [] : [`${name} = ${mark(params.push(options[name]))}`],
  );
  if (options.after !== undefined) {
    const [createdAt, id] = decodePosition(options.after, { list: "a list of tasks" });
    terms.push(`(created_at, task_id) < (${mark(params.push(createdAt))}, ${mark(params.push(id))})`);
  }
  const position = database.dialect.name === "postgres" ? "created_at::text" : "created_at";
  const where = terms.length > 0 ? `where ${terms.join(" and ")}` : "";
  const rows = await database.query(
    `select ${COLUMNS.join(", ")}, ${position} as position from task_queue ${where} order by created_at desc, task_id desc limit ${limit + 1}`,
    params,
  );
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    tasks: shown.map(taskOf),
    next: rows.length > limit && last ? encodeCursor([last.position, last.task_id]) : undefined,
  };
}

function taskOf(row: Row): FunctionTaskRow {
  return Object.fromEntries(COLUMNS.map((name) => [name, row[name] ?? null])) as never;
}

/** Others may have written it. */
function readJson(value: unknown): unknown {
  if (typeof value !== "string") return value ?? null;
  try {
    return JSON.parse(value);
  } catch {
    return { unreadable: value };
  }
}
