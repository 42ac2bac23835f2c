import type { Database, Row, Session, Statement } from "../database/database.ts";
import { type Dialect, literal, quoted } from "../database/dialect.ts";
import { childLevels, type Queue } from "./declaration.ts";
import { equals } from "./predicates.ts";

export type Key = string | number;

/**
 * A parent's status follows from its children's: any running → running, any pending → pending, any failed →
 * failed, else done. Each is one probe of an index on (parent, status), so the cost does not grow with the
 * number of siblings.
 */
interface LevelStatements {
  /** $1 keys. Parents are locked after their children were written, in key order, leaf to root. */
  readonly lock: Statement;
  /** $1 keys. Must be a statement of its own: its snapshot has to be younger than the lock. */
  readonly derive: Statement;
  /** $1 now, $2 keys; one statement per status. */
  readonly write: ReadonlyMap<string, Statement>;
  /** $1 the last key seen, $2 how many. */
  readonly page: Statement;
}

export interface RollUp {
  /** Brings the ancestors of rows whose parents are given into line, in the transaction that wrote the rows. */
  follow(session: Session, parents: Iterable<unknown>): Promise<void>;
  /** Re-derives the next `limit` parents of each level and mends what is wrong. Returns how many were. */
  repair(database: Database, limit: number): Promise<number>;
}

export function compileRollUp(queue: Queue, dialect: Dialect, now: () => string | null): RollUp | undefined {
  if (queue.rollUp.length === 0) return undefined;
  const levels = compileLevels(queue, dialect);
  const cursors: (Key | undefined)[] = levels.map(() => undefined);

  async function follow(session: Session, parents: Iterable<unknown>, depth = 0): Promise<void> {
    const statements = levels[depth];
    const keys = sortedKeys(parents);
    if (!statements || keys.length === 0) return;
    if (!dialect.isSerial) await session.query(statements.lock, [dialect.keys(keys)]);
    const rows = await session.query(statements.derive, [dialect.keys(keys)]);
    // No child is left that counts (all were cancelled): what was open is over.
    const open = [queue.statuses.running, queue.statuses.pending];
    const settled = rows.map((row) =>
      row.derived === null
        ? { ...row, derived: open.includes(String(row.status)) ? queue.statuses.done : row.status }
        : row,
    );
    const changed = settled.filter((row) => row.derived !== row.status);
    for (const [status, group] of Map.groupBy(changed, (row) => String(row.derived))) {
      const write = statements.write.get(status)!;
      await session.query(write, [now(), dialect.keys(group.map((row) => row.key as Key))]);
    }
    await follow(
      session,
      changed.map((row) => row.parent),
      depth + 1,
    );
  }

  return {
    follow: (session, parents) => follow(session, parents),
    repair: async (database, limit) => {
      let mended = 0;
      for (const [depth, statements] of levels.entries()) {
        const { rows, next } = await pageOf(database, statements.page, cursors[depth], limit);
        cursors[depth] = next;
        // A parent without children may not have got them yet.
        const wrong = rows
          .filter((row) => row.derived !== null && row.derived !== row.status)
          .map((row) => row.key);
        if (wrong.length === 0) continue;
        await database.transaction((session) => follow(session, wrong, depth));
        mended += wrong.length;
      }
      return mended;
    },
  };
}

export function compileLevels(queue: Queue, dialect: Dialect): LevelStatements[] {
  return queue.rollUp.map((_level, depth) => compileLevel(queue, dialect, depth));
}

async function pageOf(database: Database, page: Statement, after: Key | undefined, limit: number) {
  const rows = await database.query(page, [after ?? null, limit]);
  const isLast = rows.length < limit;
  return { rows, next: isLast ? undefined : (rows.at(-1)!.key as Key) };
}

function sortedKeys(values: Iterable<unknown>): Key[] {
  const keys = new Set<Key>();
  for (const value of values) if (value !== null && value !== undefined) keys.add(value as Key);
  return [...keys].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
}

function compileLevel(queue: Queue, dialect: Dialect, depth: number): LevelStatements {
  const level = queue.rollUp[depth]!;
  const table = quoted(level.table);
  const key = `p.${quoted(level.key.column)}`;
  const named = dialect.isOneOf(key, 1, level.key.type);
  const above = queue.rollUp[depth + 1];
  const parent = above ? `p.${quoted(above.via)}` : "null";
  const columns = `${key} as key, p.${quoted(level.status)} as status, ${derivedStatus(queue, depth)} as derived, ${parent} as parent`;
  const name = `${queue.name}.parent${depth}`;
  const last =
    dialect.name === "postgres" ? `$1::${level.key.type === "integer" ? "bigint" : level.key.type}` : "?1";
  return {
    lock: {
      name: `${name}.lock`,
      sql: `select ${key} from ${table} as p where ${named} order by ${key}${dialect.lockParents}`,
    },
    derive: { name: `${name}.derive`, sql: `select ${columns} from ${table} as p where ${named}` },
    write: new Map(
      parentStatuses(queue).map((status) => [
        status,
        { name: `${name}.${status}`, sql: writeParent(queue, dialect, depth, status) },
      ]),
    ),
    page: {
      name: `${name}.page`,
      sql: `select ${columns} from ${table} as p where (${last} is null or ${key} > ${last}) order by ${key} limit ${dialect.param(2, "integer")}`,
    },
  };
}

function parentStatuses({ statuses }: Queue): string[] {
  return [statuses.running, statuses.pending, statuses.failed, statuses.done];
}

function derivedStatus(queue: Queue, depth: number): string {
  const { statuses } = queue;
  const level = queue.rollUp[depth]!;
  const below = queue.rollUp[depth - 1];
  const childTable = quoted(below?.table ?? queue.table);
  const childStatus = quoted(below?.status ?? queue.columns.status);
  const members =
    below || level.children === "table"
      ? []
      : Object.entries(queue.only).map(([name, value]) => equals(`c.${quoted(name)}`, value));
  const any = (words: readonly string[]) => {
    const tests = [
      `c.${quoted(level.via)} = p.${quoted(level.key.column)}`,
      equals(`c.${childStatus}`, words),
      ...members,
    ];
    return `exists (select 1 from ${childTable} as c where ${tests.join(" and ")})`;
  };
  const isRetryingApart = ![statuses.pending, statuses.failed].includes(statuses.retrying);
  const waiting = isRetryingApart && !below ? [statuses.pending, statuses.retrying] : [statuses.pending];
  const rules: [readonly string[], string][] = [
    [[statuses.running], statuses.running],
    [waiting, statuses.pending],
    [[statuses.failed], statuses.failed],
    [[statuses.done], statuses.done],
  ];
  const branches = rules.map(([words, result]) => `when ${any(words)} then ${literal(result)}`);
  return `case ${branches.join(" ")} end`;
}

function writeParent(queue: Queue, dialect: Dialect, depth: number, status: string): string {
  const { statuses } = queue;
  const level = queue.rollUp[depth]!;
  const { now } = dialect;
  const isFinished = status === statuses.done || status === statuses.failed;
  const startedAt = level.startedAt && quoted(level.startedAt);
  const set: Row = {
    [quoted(level.status)]: literal(status),
    ...(startedAt && status === statuses.running && { [startedAt]: `coalesce(p.${startedAt}, ${now})` }),
    ...(level.finishedAt && { [quoted(level.finishedAt)]: isFinished ? now : "null" }),
    ...(level.updatedAt && { [quoted(level.updatedAt)]: now }),
    ...(level.error && {
      [quoted(level.error.column)]: status === statuses.failed ? childError(queue, depth) : "null",
    }),
  };
  const assignments = Object.entries(set).map(([column, value]) => `${column} = ${value}`);
  const key = `p.${quoted(level.key.column)}`;
  const named = dialect.isOneOf(key, 2, level.key.type);
  return `update ${quoted(level.table)} as p set ${assignments.join(", ")} where ${named} and ${now} is not null`;
}

/** What one failed child says; looking for a particular one would cost more the more have failed. */
function childError(queue: Queue, depth: number): string {
  const level = queue.rollUp[depth]!;
  const { table, status, via } = childLevels(queue)[depth]!;
  const isFailedChild = `c.${quoted(via)} = p.${quoted(level.key.column)} and ${equals(`c.${quoted(status)}`, queue.statuses.failed)}`;
  return `(select c.${quoted(level.error!.from)} from ${quoted(table)} as c where ${isFailedChild} limit 1)`;
}
