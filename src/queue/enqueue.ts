import type { Database, Row, Session, Statement } from "../database/database.ts";
import { literal, quoted } from "../database/dialect.ts";
import { QuarryError } from "../errors.ts";
import { uuidv7 } from "../ids.ts";
import { kindOf, type Queue } from "./declaration.ts";
import type { Key } from "./roll-up.ts";
import { GROUP, KEY, PARENT, TURN } from "./statements.ts";
import { refuseUnstorable } from "./text.ts";
import { beginsWithTurnSql, candidatesForTurns } from "./turns.ts";

export interface Enqueued {
  readonly key: Key;
  /** False when a row with the same `dedupe` values was there already; `key` is that row's. */
  readonly isNew: boolean;
  /** Of a new row, as the database has written it: the columns that were asked for, among others. */
  readonly row?: Row;
}

export interface EnqueueOptions {
  /** Not before this much time has passed. */
  readonly delayMs?: number;
  /** Columns to be handed back. */
  readonly returning?: readonly string[];
}

/** How a statement of its own may save others. */
interface Shortcuts {
  /** Notifies with its commit. */
  readonly notice?: string | undefined;
  /** Rows that nobody of their group is before begin with the turn. Of two that do so at once an index of turns refuses one. */
  readonly takesTurns?: boolean;
}

const ROWS_PER_STATEMENT_MAX = 5_000;
const COLUMN = /^[a-z_][a-z0-9_]*$/;

/** Rows of one shape that go into one statement, and where they stood in the call. */
interface Insert {
  readonly columns: readonly string[];
  readonly rows: readonly Row[];
  readonly positions: readonly number[];
}

export type Inserts = readonly Insert[];

const STATEMENTS_CACHED_MAX = 200;

interface InsertForm extends Shortcuts {
  readonly columns: readonly string[];
  readonly isDelayed: boolean;
  readonly returning: readonly string[];
}

/** Puts rows into one queue's table. Keeps the statements it has made, one per shape of row. */
export class Inserter {
  readonly #database: Database;
  readonly #queue: Queue;
  readonly #statements = new Map<string, Statement>();

  constructor(database: Database, queue: Queue) {
    this.#database = database;
    this.#queue = queue;
  }

  /** Splits rows into as few statements as their shapes and number allow. */
  plan(rows: readonly object[]): Inserts {
    const prepared = rows.map((row) => withKey(this.#queue, row as Row, this.#database));
    const inserts: Insert[] = [];
    for (const [columns, positions] of byShape(this.#queue, prepared)) {
      for (let start = 0; start < positions.length; start += ROWS_PER_STATEMENT_MAX) {
        const some = positions.slice(start, start + ROWS_PER_STATEMENT_MAX);
        inserts.push({ columns, positions: some, rows: some.map((position) => prepared[position]!) });
      }
    }
    return inserts;
  }

  /** Returns what became of each row, in the order of the call, and what the engine must know of those written. */
  async run(
    session: Session,
    inserts: Inserts,
    options: EnqueueOptions,
    shortcuts: Shortcuts = {},
  ): Promise<{ enqueued: Enqueued[]; written: Row[] }> {
    const enqueued: Enqueued[] = [];
    const written: Row[] = [];
    const { delayMs, returning = [] } = options;
    const delay = delayMs === undefined ? [] : [delayMs];
    const isDelayed = delay.length > 0;
    const takesTurns = shortcuts.takesTurns === true && this.#queue.group !== undefined && !isDelayed;
    for (const { columns, rows, positions } of inserts) {
      const json = encode(this.#database, this.#queue, takesTurns ? withTurns(this.#queue, rows) : rows);
      const statement = this.#statement({ ...shortcuts, takesTurns, columns, isDelayed, returning });
      const inserted = await session.query(statement, [this.#database.now(), json, ...delay]);
      const results =
        this.#queue.dedupe.length > 0
          ? await resolveDuplicates(this.#database, session, this.#queue, rows, json, inserted)
          : inserted.map((row) => ({ key: row[KEY] as Key, isNew: true }));
      const rowsByKey = new Map(returning.length > 0 ? inserted.map((row) => [row[KEY], row]) : []);
      for (const [index, position] of positions.entries()) {
        const result = results[index]!;
        const row = result.isNew ? rowsByKey.get(result.key) : undefined;
        enqueued[position] = row ? { ...result, row } : result;
      }
      for (const row of inserted) written.push(row);
    }
    return { enqueued, written };
  }

  #statement(form: InsertForm): Statement {
    const { columns, returning, isDelayed, takesTurns, notice } = form;
    const shape = [columns, returning, isDelayed, takesTurns, notice !== undefined].join(" ");
    const known = this.#statements.get(shape);
    if (known) return known;
    const statement = {
      name: `${this.#queue.name}.enqueue`,
      sql: insertSql(this.#database, this.#queue, form),
    };
    if (this.#statements.size < STATEMENTS_CACHED_MAX) this.#statements.set(shape, statement);
    return statement;
  }
}

function withKey(queue: Queue, row: Row, database: Database): Row {
  const owned = [
    queue.columns.status,
    queue.columns.token,
    queue.columns.lease,
    queue.columns.attempts,
    queue.columns.error,
    queue.group?.turn,
  ];
  for (const column of Object.keys(row)) {
    if (!COLUMN.test(column))
      throw new QuarryError("invalid_input", `${JSON.stringify(column)} is not a column name`);
    if (owned.includes(column)) {
      throw new QuarryError(
        "invalid_input",
        `queue ${queue.name}: column ${column} belongs to the engine, leave it out`,
      );
    }
  }
  for (const column of queue.group?.columns ?? []) {
    if (row[column] === null || row[column] === undefined) {
      throw new QuarryError(
        "invalid_input",
        `queue ${queue.name}: a row needs its group, ${column} is missing`,
      );
    }
  }
  const { column, type } = queue.key;
  if (row[column] !== undefined || type === "integer") return row;
  return { ...row, [column]: uuidv7(database.clock.now()) };
}

function withTurns(queue: Queue, rows: readonly Row[]): Row[] {
  const candidates = candidatesForTurns(queue, rows);
  return rows.map((row) => ({ ...row, [queue.group!.turn]: candidates.has(row) }));
}

/** Rows with the same columns go together; a column that is left out gets the table's default. */
function byShape(queue: Queue, rows: readonly Row[]): [string[], number[]][] {
  const shapes = new Map<string, number[]>();
  for (const [position, row] of rows.entries()) {
    const columns = Object.keys(row).filter((name) => row[name] !== undefined && !(name in queue.only));
    const shape = columns.sort().join(",");
    const positions = shapes.get(shape);
    if (positions) positions.push(position);
    else shapes.set(shape, [position]);
  }
  return [...shapes].map(([shape, positions]) => [shape.split(",").filter((name) => name !== ""), positions]);
}

function encode(database: Database, queue: Queue, rows: readonly Row[]): string {
  const encoded = rows.map((row) => {
    const json = stringify(database, row);
    refuseUnstorable(json, `queue ${queue.name}: a row`);
    return json;
  });
  return `[${encoded.join(",")}]`;
}

/** A Buffer turns itself into an object before a replacer sees it; what it was is still in its holder. */
export function stringify(database: Database, value: unknown): string {
  return JSON.stringify(value, function replace(this: Record<string, unknown>, name, encoded) {
    const plain = this[name];
    if (plain instanceof Uint8Array) return database.dialect.blob(plain);
    return typeof plain === "bigint" ? plain.toString() : encoded;
  });
}

/** $1 now, $2 rows, $3 delay in ms. */
function insertSql(database: Database, queue: Queue, form: InsertForm): string {
  const { columns, isDelayed, takesTurns, notice, returning } = form;
  const { dialect } = database;
  const source = dialect.recordset(quoted(queue.table), 2);
  const values: Record<string, string> = {
    [queue.columns.status]: literal(queue.statuses.pending),
    // Keys can come back after a row was deleted; its tokens must not, or an old worker would hold the new row.
    [queue.columns.token]: dialect.random,
  };
  for (const [name, value] of Object.entries(queue.only)) values[name] = literal(value);
  for (const name of [queue.columns.createdAt, queue.columns.updatedAt]) if (name) values[name] = dialect.now;
  if (isDelayed) values[queue.columns.runAfter] = dialect.shift(dialect.now, dialect.param(3, "real"));
  for (const name of columns) values[name] = source.column(name, kindOf(queue, name));
  if (takesTurns) values[queue.group!.turn] = beginsWithTurnSql(queue, dialect, source);
  const names = Object.keys(values).map(quoted).join(", ");
  const conflict =
    queue.dedupe.length > 0 ? ` on conflict (${queue.dedupe.map(quoted).join(", ")}) do nothing` : "";
  const returned = [
    `${quoted(queue.key.column)} as ${KEY}`,
    ...(queue.rollUp[0] ? [`${quoted(queue.rollUp[0].via)} as ${PARENT}`] : []),
    ...(queue.group?.columns ?? []).map((name, index) => `${quoted(name)} as ${GROUP}${index}`),
    ...(queue.group ? [`${quoted(queue.group.turn)} as ${TURN}`] : []),
    ...new Set([...queue.dedupe, ...returning].map(quoted)),
  ];
  const insert = `insert into ${quoted(queue.table)} (${names}) select ${Object.values(values).join(", ")} from ${source.from} where ${dialect.now} is not null${conflict} returning ${returned.join(", ")}`;
  return notice ? `with inserted as (${insert}) select * from inserted where ${notice} is not null` : insert;
}

/** Tells new rows from duplicates, and finds the rows that were there before. */
async function resolveDuplicates(
  database: Database,
  session: Session,
  queue: Queue,
  rows: readonly Row[],
  json: string,
  inserted: readonly Row[],
): Promise<Enqueued[]> {
  if (queue.key.type === "integer") return resolveByValues(database, session, queue, rows, json, inserted);
  const keyOf = (row: Row) => String(row[queue.key.column]).toLowerCase();
  const fresh = new Map(inserted.map((row) => [String(row[KEY]).toLowerCase(), row[KEY] as Key]));
  const known = new Map<string, Key>();
  if (fresh.size < rows.length) {
    const { from, asked } = duplicatesSql(database, queue);
    for (const row of await session.query(
      `select ${asked} as asked, t.${quoted(queue.key.column)} as ${KEY} ${from}`,
      [json],
    )) {
      known.set(String(row.asked).toLowerCase(), row[KEY] as Key);
    }
  }
  return rows.map((row) => {
    const key = fresh.get(keyOf(row));
    return key !== undefined
      ? { key, isNew: true }
      : { key: found(queue, known.get(keyOf(row))), isNew: false };
  });
}

/** The rows of the call beside those with the same values; the database compares them in its own types. */
function duplicatesSql(database: Database, queue: Queue): { from: string; asked: string } {
  const source = database.dialect.recordset(quoted(queue.table), 1);
  const same = queue.dedupe.map((name) => {
    const value = name in queue.only ? `t.${quoted(name)}` : source.column(name, kindOf(queue, name));
    return `t.${quoted(name)} = ${value}`;
  });
  return {
    from: `from ${source.from} join ${quoted(queue.table)} as t on ${same.join(" and ")}`,
    asked: source.column(queue.key.column, "plain"),
  };
}

/** Keys that the database makes say nothing about which row of the call they belong to; their values do. */
async function resolveByValues(
  database: Database,
  session: Session,
  queue: Queue,
  rows: readonly Row[],
  json: string,
  inserted: readonly Row[],
): Promise<Enqueued[]> {
  const valuesOf = (row: Row) => queue.dedupe.map((name) => row[name] ?? queue.only[name] ?? null);
  const signature = (row: Row) => JSON.stringify(valuesOf(row).map(String));
  // Null is equal to nothing: such rows are always inserted, in the order given.
  const isUnique = (row: Row) => valuesOf(row).includes(null);
  const unique = inserted.filter(isUnique).values();
  const fresh = new Map(
    inserted.filter((row) => !isUnique(row)).map((row) => [signature(row), row[KEY] as Key]),
  );
  const known = new Map<string, Key>();
  if (inserted.length < rows.length) {
    const columns = queue.dedupe.map((name) => `t.${quoted(name)}`).join(", ");
    const { from } = duplicatesSql(database, queue);
    const sql = `select t.${quoted(queue.key.column)} as ${KEY}, ${columns} ${from}`;
    for (const row of await session.query(sql, [json])) known.set(signature(row), row[KEY] as Key);
  }
  return rows.map((row) => {
    const mark = signature(row);
    const isNew = isUnique(row) || fresh.has(mark);
    const key = isUnique(row)
      ? (unique.next().value?.[KEY] as Key | undefined)
      : (fresh.get(mark) ?? known.get(mark));
    // A second row with the same values in one call is a duplicate of the first.
    if (fresh.delete(mark) && key !== undefined) known.set(mark, key);
    return { key: found(queue, key), isNew };
  });
}

function found(queue: Queue, key: Key | undefined): Key {
  if (key !== undefined) return key;
  throw new QuarryError(
    "invalid_input",
    `queue ${queue.name}: give every dedupe column (${queue.dedupe.join(", ")}) a value, in the type of its column`,
  );
}
