import { decodeCursor, encodeCursor } from "../database/cursor.ts";
import type { Database, Row } from "../database/database.ts";
import { type Literal, quoted } from "../database/dialect.ts";
import { QuarryError } from "../errors.ts";
import { columnsOf, type Queue } from "./declaration.ts";
import { predicatesOf } from "./predicates.ts";
import type { Key } from "./roll-up.ts";
import { KEY } from "./statements.ts";

export interface QueueFilter {
  readonly status?: string | readonly string[];
  /** Declared columns, each equal to a value or to one of several. */
  readonly where?: Readonly<Record<string, Literal | readonly Literal[]>>;
}

export interface ListOptions extends QueueFilter {
  readonly limit?: number;
  /** The cursor of the page before. */
  readonly after?: string;
  readonly order?: "newest" | "oldest";
}

export interface QueuePage {
  readonly rows: readonly { readonly key: Key; readonly row: Row }[];
  /** Undefined on the last page. */
  readonly next: string | undefined;
}

export const LIST_LIMIT_MAX = 1_000;
const CURSOR = "q_cursor";

/** Pages by the position of the last row, so that a page never skips or repeats rows that did not move. */
export async function listRows(database: Database, queue: Queue, options: ListOptions): Promise<QueuePage> {
  const limit = Math.min(options.limit ?? 100, LIST_LIMIT_MAX);
  if (!(Number.isInteger(limit) && limit >= 1))
    throw new QuarryError("invalid_input", "limit must be a whole number from 1");
  const position = positionOf(queue);
  const { terms, params } = filterTerms(database, queue, options);
  if (options.after !== undefined) {
    const values = decodeCursor(options.after, position.length);
    const marks = values.map((value) => database.dialect.mark(params.push(value)));
    terms.push(`(${position.join(", ")}) ${options.order === "oldest" ? ">" : "<"} (${marks.join(", ")})`);
  }
  const direction = options.order === "oldest" ? "" : " desc";
  const columns = columnsOf(queue).map((name) => `t.${quoted(name)}`);
  const cursor = position.map((column, index) => `${exactText(database, column)} as ${CURSOR}${index}`);
  const sql = `select ${[...columns, `t.${quoted(queue.key.column)} as ${KEY}`, ...cursor].join(", ")} from ${quoted(queue.table)} as t where ${terms.join(" and ")} order by ${position.map((column) => column + direction).join(", ")} limit ${limit + 1}`;
  const found = await database.query(sql, params);
  const rows = found.slice(0, limit);
  const last = rows.at(-1);
  const next =
    found.length > limit && last
      ? encodeCursor(position.map((_column, index) => last[`${CURSOR}${index}`]))
      : undefined;
  return {
    rows: rows.map((row) => ({ key: row[KEY] as Key, row: withoutEngineNames(queue, row, database) })),
    next,
  };
}

export async function countRows(
  database: Database,
  queue: Queue,
  filter: QueueFilter,
): Promise<Map<string, number>> {
  const { terms, params } = filterTerms(database, queue, filter);
  const status = `t.${quoted(queue.columns.status)}`;
  const sql = `select ${status} as status, count(*) as total from ${quoted(queue.table)} as t where ${terms.join(" and ")} group by ${status}`;
  const rows = await database.query(sql, params);
  return new Map(rows.map((row) => [String(row.status), Number(row.total)]));
}

function filterTerms(database: Database, queue: Queue, filter: QueueFilter) {
  const terms = [predicatesOf(queue).member];
  const params: unknown[] = [];
  const where = {
    ...filter.where,
    ...(filter.status !== undefined && { [queue.columns.status]: filter.status }),
  };
  const known = new Set(columnsOf(queue));
  for (const [name, value] of Object.entries(where)) {
    if (!known.has(name)) {
      throw new QuarryError(
        "invalid_input",
        `queue ${queue.name} cannot be filtered by ${JSON.stringify(name)}; it has ${[...known].join(", ")}`,
      );
    }
    const column = `t.${quoted(name)}`;
    if (value === null) terms.push(`${column} is null`);
    else if (Array.isArray(value))
      terms.push(anyOf(database, column, params.push(database.dialect.keys(value))));
    else terms.push(`${column} = ${database.dialect.mark(params.push(value))}`);
  }
  return { terms, params };
}

function anyOf(database: Database, column: string, index: number): string {
  return database.dialect.name === "postgres"
    ? `${column} = any($${index})`
    : `${column} in (select value from json_each(?${index}))`;
}

function positionOf(queue: Queue): string[] {
  const { createdAt } = queue.columns;
  return [...(createdAt ? [createdAt] : []), queue.key.column].map((name) => `t.${quoted(name)}`);
}

/** Times are read in milliseconds but stored in microseconds; the cursor must be exact. */
function exactText(database: Database, column: string): string {
  return database.dialect.name === "postgres" ? `${column}::text` : column;
}

function withoutEngineNames(queue: Queue, row: Row, database: Database): Row {
  const plain: Row = {};
  for (const name of columnsOf(queue))
    plain[name] = shownValue(queue, name, row[name], database.dialect.name === "sqlite");
  return plain;
}

/** A list shows what it cannot read as it stands, so that it can be found and mended. */
function shownValue(queue: Queue, name: string, value: unknown, isText: boolean): unknown {
  try {
    return readValue(queue, name, value, isText);
  } catch {
    return value;
  }
}

/** SQLite keeps JSON as text and booleans as 0 and 1; readers see the same from both databases. */
export function readValue(queue: Queue, name: string, value: unknown, isText: boolean): unknown {
  const kind = queue.kinds[name];
  if (kind === "json" && isText && typeof value === "string") return JSON.parse(value);
  const isBoolean = kind === "boolean" || name === queue.group?.turn;
  if (isBoolean && typeof value === "number") return value !== 0;
  return value;
}
