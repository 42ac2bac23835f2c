/**
 * All that differs between the two databases in the statements of the engine. Every statement takes "now" as its
 * first parameter; batches are keyed JSON, so that a statement has one text whatever the size of the batch.
 */
export type KeyType = "uuid" | "text" | "integer";

/** One entry per row: its key and the values that go with it, by position. */
export type BatchEntry = readonly [key: string | number, ...fields: unknown[]];

export interface Batch {
  /** Goes after `update … set …` (or is empty). */
  readonly from: string;
  /** The rows of the batch, to be used in `where`. */
  readonly match: string;
  /** The first parameter after the batch. */
  readonly next: number;
  /** The nth value of the row's entry. */
  field(position: number, type: FieldType): string;
  /** Columns of `table` taken from what `results` has written, from the nth value on. */
  merge(table: string, position: number, columns: readonly { name: string; kind: ColumnKind }[]): string;
}

/** JSON that goes into a batch as it stands. */
export class Json {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** A batch that carries a token for each key and nothing else. */
export interface TokenBatch {
  readonly from: string;
  readonly match: string;
  readonly token: string;
  /** The same test for a statement that cannot join the batch. */
  matchAlone(tokenColumn: string): string;
}

export type FieldType = "integer" | "real" | "text" | "boolean" | "json";

export interface Dialect {
  readonly name: "sqlite" | "postgres";
  readonly now: string;
  /** A parameter whose type the database takes from where it stands. */
  mark(index: number): string;
  param(index: number, type: FieldType): string;
  /** `time` moved by a number of milliseconds (an SQL expression). */
  shift(time: string, ms: string): string;
  /** A test that `column` is one of the keys in parameter `index`. */
  isOneOf(column: string, index: number, type: KeyType): string;
  /** A test that `column` is one of what a sub-select finds; the sub-select runs once. */
  isAmong(column: string, select: string): string;
  /** A batch whose parameters start at `index`; only what is packed comes after them. */
  batch(column: string, index: number, type: KeyType): Batch;
  tokens(column: string, index: number, type: KeyType): TokenBatch;
  /** Rows written as a JSON array in parameter `index`, read as columns of `table`. */
  recordset(
    table: string,
    index: number,
  ): { readonly from: string; column(name: string, kind: ColumnKind): string };
  /** A condition that must not lead the planner to an index: rows are found by key, this only checks them. */
  check(condition: string): string;
  readonly skipLocked: string;
  readonly lockParents: string;
  readonly isSerial: boolean;
  /** A random whole number below a thousand million. */
  readonly random: string;
  greatest(a: string, b: string): string;
  least(a: string, b: string): string;

  keys(keys: readonly (string | number)[]): unknown;
  batchParams(entries: readonly BatchEntry[]): unknown[];
  /** The last values of an entry, for `merge`. */
  results(row: Readonly<Record<string, unknown>>, stringify: (value: unknown) => string): Json;
  tokenParams(entries: readonly BatchEntry[]): unknown[];
  blob(bytes: Uint8Array): string;
  /** Values one behind the other, as one parameter. */
  pack(kind: PackedKind, values: readonly Packed[]): Uint8Array;
  /** One of them: parameter `index` from `start` (the first is 1), so many bytes or floats. Null when `start` is. */
  unpack(kind: PackedKind, index: number, place: { start: string; length: string }): string;
}

/** Written as text they would cost more than the rest of their row, and more again to be read. */
export type PackedKind = "blob" | "floats";
export type Packed = Uint8Array | Float32Array;
/** "floats" of 32 bits: their bytes on SQLite, `real[]` on PostgreSQL or what takes one, such as `vector`. */
export type ColumnKind = "plain" | "json" | "boolean" | PackedKind;

export function isPacked(kind: ColumnKind): kind is PackedKind {
  return kind === "blob" || kind === "floats";
}

export function quoted(name: string): string {
  return name
    .split(".")
    .map((part) => `"${part}"`)
    .join(".");
}

export type Literal = string | number | boolean | null;

export function literal(value: Literal): string {
  if (typeof value === "string") return `'${value.replaceAll("'", "''")}'`;
  return String(value);
}

const POSTGRES_KEY: Record<KeyType, string> = { uuid: "uuid", text: "text", integer: "bigint" };
const POSTGRES_FIELD: Record<FieldType, string> = {
  integer: "bigint",
  real: "float8",
  text: "text",
  boolean: "boolean",
  json: "jsonb",
};

function tokenOf(column: string, index: number): string {
  return `($${index + 1}::jsonb ->> ${column}::text)::bigint`;
}

export const postgresDialect: Dialect = {
  name: "postgres",
  // Null means the database's own clock; only tests hand in a time.
  now: "coalesce($1::timestamptz, now())",
  mark: (index) => `$${index}`,
  param: (index, type) => `$${index}::${POSTGRES_FIELD[type]}`,
  shift: (time, ms) => `${time} + ${ms} * interval '1 millisecond'`,
  isOneOf: (column, index, type) => `${column} = any($${index}::${POSTGRES_KEY[type]}[])`,
  isAmong: (column, select) => `${column} = any(array(${select}))`,
  // One relation and a look-up per row instead of a join: there is no join order for stale statistics to get wrong.
  batch: (column, index, type) => ({
    from: "",
    match: `${column} = any($${index}::${POSTGRES_KEY[type]}[])`,
    next: index + 2,
    field: (position, fieldType) =>
      `($${index + 1}::jsonb -> ${column}::text ->> ${position})::${POSTGRES_FIELD[fieldType]}`,
    merge: (table, position, columns) => {
      const names = columns.map(({ name }) => quoted(name));
      const values = names.map((name) => `r.${name}`).join(", ");
      const json = `$${index + 1}::jsonb -> ${column}::text -> ${position}`;
      return `(${names.join(", ")}) = (select ${values} from jsonb_populate_record(${table}, ${json}) as r)`;
    },
  }),
  tokens: (column, index, type) => ({
    from: "",
    match: `${column} = any($${index}::${POSTGRES_KEY[type]}[])`,
    token: tokenOf(column, index),
    matchAlone: (tokenColumn) =>
      `${column} = any($${index}::${POSTGRES_KEY[type]}[]) and ${tokenColumn} = ${tokenOf(column, index)}`,
  }),
  recordset: (table, index) => ({
    from: `json_populate_recordset(null::${table}, $${index}::json) as r`,
    column: (name) => `r.${quoted(name)}`,
  }),
  check: (condition) => `coalesce(${condition}, false)`,
  // "No key": a claim does not hold up another process that inserts children of the row.
  skipLocked: " for no key update skip locked",
  lockParents: " for no key update",
  isSerial: false,
  random: "floor(random() * 1000000000)::bigint",
  greatest: (a, b) => `greatest(${a}, ${b})`,
  least: (a, b) => `least(${a}, ${b})`,
  keys: (keys) => keys,
  batchParams: (entries) => {
    const fields = entries.map(([key, ...values]) => `${JSON.stringify(String(key))}:${written(values)}`);
    return [entries.map(([key]) => key), `{${fields.join(",")}}`];
  },
  // As an object, which PostgreSQL turns into a record with the table's own types.
  results: (row, stringify) => new Json(stringify(row)),
  tokenParams: (entries) => [entries.map(([key]) => key), tokensByKey(entries)],
  blob: (bytes) => `\\x${Buffer.from(bytes).toString("hex")}`,
  pack: (kind, values) => (kind === "blob" ? joined(values) : realArray(values)),
  unpack: (kind, index, { start, length }) =>
    kind === "blob"
      ? `substring($${index}::bytea from (${start})::integer for (${length})::integer)`
      : `($${index}::real[])[${start} : ${start} + ${length} - 1]`,
};

export const sqliteDialect: Dialect = {
  name: "sqlite",
  now: "?1",
  mark: (index) => `?${index}`,
  param: (index) => `?${index}`,
  shift: (time, ms) => `strftime('%Y-%m-%dT%H:%M:%fZ', ${time}, (${ms} / 1000.0) || ' seconds')`,
  isOneOf: (column, index) => `${column} in (select value from json_each(?${index}))`,
  isAmong: (column, select) => `${column} in (${select})`,
  batch: (column, index) => ({
    from: ` from json_each(?${index}) as batch`,
    match: `${column} = batch.value ->> 0`,
    next: index + 1,
    field: (position) => `(batch.value ->> ${position + 1})`,
    merge: (_table, position, columns) =>
      columns
        .map(
          ({ name, kind }, nth) =>
            `${quoted(name)} = ${jsonValue("batch.value", `$[${position + nth + 1}]`, kind)}`,
        )
        .join(", "),
  }),
  // Read as they stand; the values of a nested array would be parsed once more for every row.
  tokens: (column, index) => ({
    from: ` from json_each(?${index}) as batch`,
    match: `${column} = batch.key`,
    token: "batch.value",
    matchAlone: (tokenColumn) =>
      `${column} in (select key from json_each(?${index})) and (${column}, ${tokenColumn}) in (select key, value from json_each(?${index}))`,
  }),
  recordset: (_table, index) => ({
    from: `json_each(?${index}) as r`,
    column: (name, kind) => jsonColumn("r.value", name, kind),
  }),
  check: (condition) => `coalesce(${condition}, false)`,
  skipLocked: "",
  lockParents: "",
  isSerial: true,
  random: "abs(random() % 1000000000)",
  greatest: (a, b) => `max(${a}, ${b})`,
  least: (a, b) => `min(${a}, ${b})`,
  keys: (keys) => JSON.stringify(keys),
  batchParams: (entries) => [`[${entries.map(written).join(",")}]`],
  // One behind the other: an object inside would take twice as long to be read.
  results: (row, stringify) => new Json(stringify(Object.values(row)).slice(1, -1)),
  tokenParams: (entries) => [tokensByKey(entries)],
  blob: (bytes) => Buffer.from(bytes).toString("hex"),
  // The driver takes no bytes at all for null.
  pack: (_kind, values) => (values.every(({ length }) => length === 0) ? NO_BYTES : joined(values)),
  unpack: (kind, index, { start, length }) =>
    kind === "blob"
      ? `substr(?${index}, ${start}, ${length})`
      : `substr(?${index}, 4 * ${start} - 3, 4 * ${length})`,
};

const NO_BYTES = new Uint8Array(1);

function joined(values: readonly Packed[]): Buffer {
  return Buffer.concat(
    values.map(({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength)),
  );
}

const FLOAT4 = 700;

/** PostgreSQL's binary form of an array: a head of five numbers, then the length and the bytes of each float, big end first. */
function realArray(values: readonly Packed[]): Buffer {
  const count = values.reduce((sum, { length }) => sum + length, 0);
  const bytes = Buffer.allocUnsafe(20 + 8 * count);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (const [position, word] of [1, 0, FLOAT4, count, 1].entries()) view.setInt32(4 * position, word);
  let at = 20;
  for (const floats of values) {
    for (let index = 0; index < floats.length; index++, at += 8) {
      view.setInt32(at, 4);
      view.setFloat32(at + 4, floats[index]!);
    }
  }
  return bytes;
}

/** Written by hand: an object with thousands of numeric keys is slow to build and slow to write. */
function tokensByKey(entries: readonly BatchEntry[]): string {
  const pairs = entries.map(
    ([key, token]) => `${typeof key === "number" ? `"${key}"` : JSON.stringify(key)}:${token}`,
  );
  return `{${pairs.join(",")}}`;
}

function written(values: readonly unknown[]): string {
  const texts = values.map((value) => (value instanceof Json ? value.text : JSON.stringify(value)));
  return `[${texts.join(",")}]`;
}

function jsonColumn(json: string, name: string, kind: ColumnKind): string {
  return jsonValue(json, `$."${name}"`, kind);
}

function jsonValue(json: string, path: string, kind: ColumnKind): string {
  const value = `${json} ->> '${path}'`;
  if (kind === "json") return `nullif(${json} -> '${path}', 'null')`;
  return isPacked(kind) ? `unhex(${value})` : value;
}
