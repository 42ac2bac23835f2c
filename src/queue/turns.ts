import type { Database, Row, Statement } from "../database/database.ts";
import { type Dialect, quoted } from "../database/dialect.ts";
import { isQuarryError } from "../errors.ts";
import type { Gate, Queue } from "./declaration.ts";
import { groupKeyOf, indexedBy } from "./indexes.ts";
import { orderOf, predicatesOf } from "./predicates.ts";
import type { Key } from "./roll-up.ts";
import { GROUP, KEY } from "./statements.ts";

/**
 * Rows of one group run one at a time. Only the row that has its group's turn is in the ready index, so a claim
 * never looks at the 100,000 rows behind it; a unique index allows one turn per group, or the database one writer.
 *
 * The turn is passed after the commit that freed or filled a group, in a transaction of its own: whoever passes
 * last sees everything that was committed, so two that finish and enqueue at once cannot strand a group. When a
 * process dies in between, the janitor's sweep passes it. Only a row that finds nobody of its group in line begins with
 * the turn, which saves writing it twice.
 */
export interface Turns {
  /** Gives the turn to the next row of each group that has none, for the groups of these rows. Returns how many. */
  pass(database: Database, rows: readonly Row[]): Promise<number>;
  /** The same for the groups of rows with these keys. */
  passOf(database: Database, keys: readonly Key[]): Promise<number>;
  /** The same for every group that has rows waiting. Returns how many turns were given. */
  sweep(database: Database): Promise<number>;
}

type Recordset = ReturnType<Dialect["recordset"]>;

const PASSES_MAX = 20;
/** For so many groups a look whether anybody is in line at all is worth a round trip. */
const GROUPS_LOOKED_FOR = 10;
const GROUPS_PER_STATEMENT_MAX = 5_000;

interface TurnStatements {
  readonly anyBehind: Statement;
  readonly groupsOf: Statement;
  readonly pass: Statement;
  readonly stranded: Statement;
}

export function compileTurnStatements(queue: Queue, dialect: Dialect): TurnStatements | undefined {
  if (!queue.group) return undefined;
  return {
    anyBehind: { name: `${queue.name}.anyBehind`, sql: anyBehindSql(queue, dialect) },
    groupsOf: { name: `${queue.name}.groupsOf`, sql: groupsOfSql(queue, dialect) },
    pass: { name: `${queue.name}.pass`, sql: passSql(queue, dialect) },
    stranded: { name: `${queue.name}.stranded`, sql: strandedSql(queue, dialect) },
  };
}

export function compileTurns(queue: Queue, dialect: Dialect): Turns | undefined {
  const { group } = queue;
  const statements = compileTurnStatements(queue, dialect);
  if (!group || !statements) return undefined;

  /** Whoever gets in line after this look asks for the turn itself. */
  async function isAnyBehind(database: Database): Promise<boolean> {
    return (await database.query(statements!.anyBehind)).length > 0;
  }

  async function pass(database: Database, rows: readonly Row[]): Promise<number> {
    const isLookCheap = dialect.isSerial || rows.length >= GROUPS_LOOKED_FOR;
    if (isLookCheap && !(await isAnyBehind(database))) return 0;
    return passAll(database, rows);
  }

  async function passOf(database: Database, keys: readonly Key[]): Promise<number> {
    if (!(await isAnyBehind(database))) return 0;
    return passAll(database, await database.query(statements!.groupsOf, [dialect.keys(keys)]));
  }

  async function passAll(database: Database, rows: readonly Row[]): Promise<number> {
    const groups = new Map<string, Row>();
    for (const row of rows) {
      const values = group!.columns.map((_name, index) => row[`${GROUP}${index}`]);
      groups.set(
        JSON.stringify(values),
        Object.fromEntries(group!.columns.map((name, index) => [name, values[index]])),
      );
    }
    const all = [...groups.values()];
    let given = 0;
    for (let start = 0; start < all.length; start += GROUPS_PER_STATEMENT_MAX) {
      given += await passSome(database, all.slice(start, start + GROUPS_PER_STATEMENT_MAX));
    }
    return given;
  }

  /** Another process may give a group's turn to another row at the same moment; an index of turns refuses the second. */
  async function passSome(database: Database, groups: readonly Row[]): Promise<number> {
    for (let round = 1; ; round++) {
      try {
        return (await database.query(statements!.pass, [JSON.stringify(groups)])).length;
      } catch (error) {
        if (round >= PASSES_MAX || !isQuarryError(error, "constraint_violated")) throw error;
      }
    }
  }

  return {
    pass,
    passOf,
    sweep: async (database) => pass(database, await database.query(statements!.stranded)),
  };
}

/** The whole order of the index that is meant, so that PostgreSQL takes no other. */
function anyBehindSql(queue: Queue, dialect: Dialect): string {
  const { behind } = predicatesOf(queue, "w");
  return `select 1 as found from ${quoted(queue.table)} as w${indexedBy(queue, dialect, "behind")} where ${behind} order by ${behindOrder(queue)} limit 1`;
}

/** $1 keys. */
function groupsOfSql(queue: Queue, dialect: Dialect): string {
  const columns = queue.group!.columns.map((name, index) => `t.${quoted(name)} as ${GROUP}${index}`);
  const isNamed = dialect.isOneOf(`t.${quoted(queue.key.column)}`, 1, queue.key.type);
  return `select ${columns.join(", ")} from ${quoted(queue.table)} as t where ${isNamed}`;
}

function behindOrder(queue: Queue): string {
  return [...groupKeyOf(queue).map((name) => `w.${quoted(name)}`), ...orderOf(queue, "w")].join(", ");
}

/** $1 groups. The condition stands twice: the row may have been cancelled or taken since it was chosen. */
function passSql(queue: Queue, dialect: Dialect): string {
  const table = quoted(queue.table);
  const key = quoted(queue.key.column);
  const source = dialect.recordset(table, 1);
  const heads = `select (${firstSql(queue, dialect, source)}) from ${source.from} where ${isFreeSql(queue, dialect, source)}`;
  return `update ${table} as t set ${quoted(queue.group!.turn)} = true where ${dialect.isAmong(`t.${key}`, heads)} and ${dialect.check(predicatesOf(queue).behind)} returning ${key} as ${KEY}`;
}

/** Whether a row of the source finds its group without anybody in line, so that it may begin with the turn. */
export function beginsWithTurnSql(queue: Queue, dialect: Dialect, source: Recordset): string {
  const isCandidate = source.column(queue.group!.turn, "boolean");
  return `(${isCandidate} and ${isFreeSql(queue, dialect, source)} and (${firstSql(queue, dialect, source)}) is null)`;
}

/** Who is next in a group of the source. */
function firstSql(queue: Queue, dialect: Dialect, source: Recordset): string {
  const waiting = `${quoted(queue.table)} as w${indexedBy(queue, dialect, "behind")}`;
  return `select w.${quoted(queue.key.column)} from ${waiting} where ${isSameSql(queue, source, "w")} and ${predicatesOf(queue, "w").behind} order by ${orderOf(queue, "w").join(", ")} limit 1`;
}

/** A scalar sub-select, which no planner can turn into a walk over every turn there is. */
function isFreeSql(queue: Queue, dialect: Dialect, source: Recordset): string {
  const holder = `select 1 from ${quoted(queue.table)} as h${indexedBy(queue, dialect, "turn")} where ${isSameSql(queue, source, "h")} and h.${quoted(queue.group!.turn)} = true limit 1`;
  return `(${holder}) is null`;
}

function isSameSql(queue: Queue, source: Recordset, alias: string): string {
  return queue
    .group!.columns.map((name) => `${alias}.${quoted(name)} = ${source.column(name, "plain")}`)
    .join(" and ");
}

/** Which of these new rows could run at once. Of several in one group the database knows the first, when they are in. */
export function candidatesForTurns(queue: Queue, rows: readonly Row[]): ReadonlySet<Row> {
  const groups = Map.groupBy(rows, (row) =>
    JSON.stringify(queue.group?.columns.map((name) => coarse(row[name]))),
  );
  const alone = [...groups.values()].flatMap(([row, other]) => (row && !other ? [row] : []));
  return new Set(alone.filter((row) => canRun(queue, row)));
}

/** What a database may hold for equal is equal here: rows that are told apart by too little get their turn a moment later. */
function coarse(value: unknown): string {
  return String(typeof value === "boolean" ? Number(value) : value)
    .trimEnd()
    .toLowerCase();
}

/** Said by the row itself: what it leaves to the table's defaults is not known here. */
function canRun({ gate, attempts, columns }: Queue, row: Row): boolean {
  const { max } = attempts;
  const hasAttempts = typeof max === "number" || Number(row[max]) > 0;
  const isDue = row[columns.runAfter] === undefined || row[columns.runAfter] === null;
  return hasAttempts && isDue && gate.every((condition) => isOpen(condition, row[condition.column]));
}

function isOpen(gate: Gate, value: unknown): boolean {
  if (value === undefined) return false;
  return "is" in gate ? [gate.is].flat().includes(value as never) : value !== null;
}

/** Walks from group to group, one index look-up each, and keeps those where nobody has the turn. */
function strandedSql(queue: Queue, dialect: Dialect): string {
  const group = queue.group!;
  const table = quoted(queue.table);
  const key = quoted(queue.key.column);
  const columns = (alias: string) =>
    groupKeyOf(queue)
      .map((name) => `${alias}.${quoted(name)}`)
      .join(", ");
  const behind = predicatesOf(queue, "w").behind;
  // SQLite compares whole rows by an index only with what has no type of its own, and looks through all of a table for few keys.
  const after = dialect.isSerial ? columns("+c") : columns("c");
  const join = dialect.isSerial ? "cross join" : "join";
  const waiting = `${table} as w${indexedBy(queue, dialect, "behind")}`;
  // The whole order of the index that is meant, so that no other one on the group gives it.
  const order = behindOrder(queue);
  const first = `select w.${key} as head from ${waiting} where ${behind} order by ${order} limit 1`;
  const next = `select w.${key} from ${waiting} where ${behind} and (${columns("w")}) > (${after}) order by ${order} limit 1`;
  const selected = group.columns.map((name, index) => `t.${quoted(name)} as ${GROUP}${index}`).join(", ");
  const same = group.columns.map((name) => `h.${quoted(name)} = t.${quoted(name)}`).join(" and ");
  return (
    `with recursive heads(head) as (select * from (${first}) as f union all ` +
    `select (${next}) from heads join ${table} as c on c.${key} = heads.head where heads.head is not null) ` +
    `select ${selected} from heads ${join} ${table} as t on t.${key} = heads.head ` +
    `where not exists (select 1 from ${table} as h${indexedBy(queue, dialect, "turn")} where ${same} and h.${quoted(group.turn)} = true)`
  );
}
