import { createHash } from "node:crypto";
import { type Dialect, quoted } from "../database/dialect.ts";
import { childIndexName, childLevels, indexPrefix, type Queue } from "./declaration.ts";
import { equals, orderOf, predicatesOf } from "./predicates.ts";

export interface QueueIndex {
  readonly name: string;
  readonly table: string;
  readonly sql: string;
}

/**
 * The indexes that make the cost of every statement depend on its batch alone. Delayed, exhausted and finished
 * rows, and rows whose gate is shut, are in none that a claim walks.
 */
export function indexesOf(queue: Queue, dialect: Dialect): QueueIndex[] {
  const prefix = indexPrefix(queue);
  const where = predicatesOf(queue, "");
  const column = (name: string) => quoted(name);
  const order = orderOf(queue, "").map(bare);
  const found: QueueIndex[] = [];
  const add = (
    suffix: string,
    columns: readonly string[],
    condition: string,
    options: { unique?: boolean } = {},
  ) => {
    const { table } = queue;
    const kind = options.unique ? "unique index" : "index";
    const filter = condition ? ` where ${bare(condition)}` : "";
    const definition = `on ${quoted(table)} (${columns.join(", ")})${filter}`;
    // A declaration that changes needs an index of its own: an old one under the same name would be taken for it.
    const name = `${prefix}_${suffix}_${digest(definition)}`;
    found.push({ name, table, sql: `create ${kind} if not exists ${column(name)} ${definition}` });
  };

  const taker = queue.reserved ? [column(queue.reserved.column)] : [];
  add("ready", [...taker, ...order], where.ready);
  add("delayed", [column(queue.columns.runAfter)], where.delayed);
  if (!ownIndex(queue, dialect, "lease")) add("lease", [column(queue.columns.lease)], where.running);
  if (queue.group) {
    const group = queue.group.columns.map(column);
    if (!ownIndex(queue, dialect, "turn"))
      add("turn", group, `${column(queue.group.turn)} = true`, { unique: true });
    add("behind", [...groupKeyOf(queue).map(column), ...order], where.behind);
  }
  if (queue.retention) {
    const { done, failed } = queue.statuses;
    const finished = equals(column(queue.columns.status), [done, failed]);
    add("finished", [column(queue.columns.status), column(queue.columns.finishedAt!)], finished);
  }
  for (const child of childLevels(queue)) {
    const name = childIndexName(child, child.via);
    const sql = `create index if not exists ${column(name)} on ${quoted(child.table)} (${column(child.via)}, ${column(child.status)})`;
    found.push({ name, table: child.table, sql });
  }
  return found;
}

/**
 * What tells the groups apart in an index on rows whose gate is open. PostgreSQL does not look for a value that the
 * index's own condition names: with that column first it would walk all of the index.
 */
export function groupKeyOf({ group, gate }: Queue): readonly string[] {
  const isFixed = (name: string) =>
    gate.some((condition) => condition.column === name && "is" in condition && !Array.isArray(condition.is));
  const varying = group!.columns.filter((name) => !isFixed(name));
  return varying.length > 0 ? varying : group!.columns;
}

/**
 * For SQLite, whose planner takes any index on the status that it finds, or believes averages when one group has nearly
 * all rows, and then sorts what it has found.
 */
export function indexedBy(queue: Queue, dialect: Dialect, purpose: Purpose): string {
  if (!dialect.isSerial) return "";
  const prefix = `${indexPrefix(queue)}_${purpose}_`;
  const made = () => indexesOf(queue, dialect).find(({ name }) => name.startsWith(prefix))!.name;
  return ` indexed by ${quoted(ownIndex(queue, dialect, purpose) ?? made())}`;
}

type Purpose = "ready" | "delayed" | "lease" | "turn" | "behind";

/** What the table has anyway. Turns need one that refuses a second of a group, unless one writes at a time. */
function ownIndex({ lease, group }: Queue, dialect: Dialect, purpose: Purpose): string | undefined {
  if (purpose === "lease") return lease.index;
  return purpose === "turn" && dialect.isSerial ? group?.index : undefined;
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 6);
}

/** Index definitions name columns without the alias that statements use. */
function bare(sql: string): string {
  return sql.replaceAll(/(^|[\s(])\."/g, '$1"');
}
