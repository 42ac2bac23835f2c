import type { ColumnKind, KeyType, Literal } from "../database/dialect.ts";
import { QuarryError } from "../errors.ts";
import { exponential, type RetryPolicy } from "./retry-policy.ts";

/**
 * A queue is a declaration over a table that can be read with psql. What a row means to its users stays in
 * its own columns; the declaration says which of them the engine may write, and in which words.
 */
export interface QueueDeclaration<Payload extends object = Record<string, unknown>> {
  /** Unique among the queues of a process; also the topic of its wake-ups. */
  readonly name: string;
  readonly table: string;
  readonly key: { readonly column: string; readonly type: KeyType };
  readonly columns: QueueColumns;
  readonly statuses?: Partial<StatusWords>;
  readonly attempts?: {
    /** "failures": a row that succeeds at once has 0. "claims": it has 1. Deaths count in both. */
    readonly count?: "failures" | "claims";
    /** How often a row may be tried: a column of the row, or one number for all. */
    readonly max?: string | number;
    /**
     * What a row that somebody puts back gets: all its attempts "anew" (the default), or "once" more with the count as
     * it stands. With "once" a waiting row is tried whatever its count, which never exceeds the limit.
     */
    readonly again?: "anew" | "once";
  };
  readonly lease?: {
    /** How long a worker may be silent before its row is given to another. */
    readonly ms?: number;
    /** What the lease column holds: when the lease ends, or when the worker was last heard. */
    readonly holds?: "expiry" | "heartbeat";
    /** Only for "expiry": a column with a lease of the row's own, in ms, for those that need a longer one. */
    readonly column?: string;
    /** A row that runs without a lease was marked by others: untouched for this long, it is given on too. Needs `updatedAt`. */
    readonly unheldMs?: number;
    /** What the error of a row that is given on begins with. */
    readonly lostMessage?: string;
    /** An index of the table itself that holds the running rows and no others: it spares one of leases. */
    readonly index?: string;
  };
  /** The rows of the table that belong to this queue, for several queues on one table. Written when enqueued. */
  readonly only?: Readonly<Record<string, Literal>>;
  /** What must be true of a row before it may be claimed. Must be monotone: two workers may look at once. */
  readonly gate?: readonly Gate[];
  /**
   * A text column that says who alone may take a row; '' is anybody. `for` is who takes rows here: those that are theirs
   * and those that are anybody's, in the queue's order.
   */
  readonly reserved?: { readonly column: string; readonly for: string };
  /** Which row is next. The key decides between equals. */
  readonly order?: readonly OrderTerm[];
  /** Rows of one group run one at a time, in the queue's order. */
  readonly group?: Group;
  readonly retry?: RetryPolicy;
  /** Ancestors whose status follows from their children's, nearest first. */
  readonly rollUp?: readonly RollUpLevel[];
  /** Columns a handler is given. */
  readonly reads?: readonly (keyof Payload & string)[];
  /** Columns an outcome may write. */
  readonly results?: readonly string[];
  /** Columns that are not plain text or numbers. */
  readonly kinds?: Readonly<Record<string, Exclude<ColumnKind, "plain">>>;
  /** A second row with the same values in these columns is not inserted. Needs a unique index on them. */
  readonly dedupe?: readonly string[];
  /** Queues that a row which was completed or given back may have a gate opened for; they are woken. */
  readonly wakes?: readonly string[];
  /** "keep" finished rows (the default) or "remove" them as they complete. */
  readonly whenDone?: "keep" | "remove";
  /** Finished rows older than this are deleted by the janitor. */
  readonly retention?: { readonly doneMs?: number; readonly failedMs?: number };
}

export interface Group {
  readonly columns: readonly string[];
  /** A boolean column of the table. */
  readonly turn: string;
  /**
   * An index of the table itself that leads to the rows of a group, for groups that stay small. Where one writes at a
   * time it spares an index of turns, which every row enters and leaves.
   */
  readonly index?: string;
}

export interface QueueColumns {
  readonly status: string;
  readonly token: string;
  readonly lease: string;
  readonly runAfter: string;
  readonly attempts: string;
  readonly error: string;
  readonly worker?: string;
  readonly createdAt?: string;
  readonly startedAt?: string;
  /** When the row reached its end, good or bad. */
  readonly finishedAt?: string;
  readonly updatedAt?: string;
  readonly errorAt?: string;
}

export interface StatusWords {
  readonly pending: string;
  readonly running: string;
  readonly done: string;
  readonly failed: string;
  /** Failed with attempts left. May be the word of `pending` or of `failed`. */
  readonly retrying: string;
  /** Without this word a cancelled row is deleted. */
  readonly cancelled?: string;
}

export type Gate =
  | { readonly column: string; readonly is: Literal | readonly Literal[] }
  | { readonly column: string; readonly isNot: null };

export type OrderTerm =
  | string
  | { readonly column: string; readonly direction: "asc" | "desc" }
  /** These values first, in this order; all others after them. */
  | { readonly column: string; readonly values: readonly string[] };

export interface RollUpLevel {
  readonly table: string;
  readonly key: { readonly column: string; readonly type: KeyType };
  /** The column of the level below that names its parent. */
  readonly via: string;
  /** The status column of this level; it uses the queue's words for pending, running, done and failed. */
  readonly status: string;
  /** Only the nearest level: it follows from the rows of the "queue" (the default) or from all of the "table". */
  readonly children?: "queue" | "table";
  /** A column that says why this level failed, taken from a column of its failed children. */
  readonly error?: { readonly column: string; readonly from: string };
  readonly startedAt?: string;
  readonly finishedAt?: string;
  readonly updatedAt?: string;
}

/** A checked declaration with its defaults filled in. */
export interface Queue<Payload extends object = object>
  extends Required<
    Omit<QueueDeclaration, "statuses" | "attempts" | "lease" | "reserved" | "group" | "retention">
  > {
  readonly statuses: StatusWords;
  readonly attempts: {
    readonly count: "failures" | "claims";
    readonly max: string | number;
    readonly again: "anew" | "once";
  };
  readonly lease: {
    readonly ms: number;
    readonly holds: "expiry" | "heartbeat";
    readonly column: string | undefined;
    readonly unheldMs: number | undefined;
    readonly lostMessage: string | undefined;
    readonly index: string | undefined;
  };
  readonly reserved: { readonly column: string; readonly for: string } | undefined;
  readonly group: Group | undefined;
  readonly retention: { readonly doneMs?: number; readonly failedMs?: number } | undefined;
  /** Only for types: what a claim of this queue carries. */
  readonly payload?: Payload;
}

const IDENTIFIER = /^[a-z_][a-z0-9_]*$/;
/** PostgreSQL cuts longer names in silence. Index names add a suffix. */
const IDENTIFIER_BYTES_MAX = 63;
export const INDEX_SUFFIX_MAX = 17;
const ROLL_UP_LEVELS_MAX = 8;

export function defineQueue<Payload extends object = Record<string, unknown>>(
  declaration: QueueDeclaration<Payload>,
): Queue<Payload> {
  const statuses = { ...DEFAULT_STATUSES, ...declaration.statuses };
  const queue: Queue<Payload> = {
    ...declaration,
    statuses: { ...statuses, retrying: declaration.statuses?.retrying ?? statuses.pending },
    attempts: {
      count: declaration.attempts?.count ?? "failures",
      max: declaration.attempts?.max ?? 3,
      again: declaration.attempts?.again ?? "anew",
    },
    lease: {
      ms: declaration.lease?.ms ?? 60_000,
      holds: declaration.lease?.holds ?? "expiry",
      column: declaration.lease?.column,
      unheldMs: declaration.lease?.unheldMs,
      lostMessage: declaration.lease?.lostMessage,
      index: declaration.lease?.index,
    },
    only: declaration.only ?? {},
    gate: declaration.gate ?? [],
    order: declaration.order ?? (declaration.columns.createdAt ? [declaration.columns.createdAt] : []),
    reserved: declaration.reserved,
    group: declaration.group,
    retry: declaration.retry ?? exponential({ baseMs: 1_000, capMs: 300_000 }),
    rollUp: declaration.rollUp ?? [],
    reads: declaration.reads ?? [],
    results: declaration.results ?? [],
    kinds: declaration.kinds ?? {},
    dedupe: declaration.dedupe ?? [],
    wakes: declaration.wakes ?? [],
    whenDone: declaration.whenDone ?? "keep",
    retention: declaration.retention,
  };
  checkNames(queue);
  checkWords(queue);
  checkLimits(queue);
  return Object.freeze(queue);
}

const DEFAULT_STATUSES = {
  pending: "pending",
  running: "processing",
  done: "completed",
  failed: "failed",
} as const;

/** Every column the engine may name in a statement for this queue. */
export function columnsOf(queue: Queue): string[] {
  const names = [
    queue.key.column,
    ...Object.values(queue.columns).filter((name) => name !== undefined),
    ...(typeof queue.attempts.max === "string" ? [queue.attempts.max] : []),
    ...(queue.lease.column ? [queue.lease.column] : []),
    ...Object.keys(queue.only),
    ...queue.gate.map((gate) => gate.column),
    ...(queue.reserved ? [queue.reserved.column] : []),
    ...queue.order.map((term) => (typeof term === "string" ? term : term.column)),
    ...(queue.group ? [...queue.group.columns, queue.group.turn] : []),
    ...(queue.rollUp[0] ? [queue.rollUp[0].via] : []),
    ...queue.reads,
    ...queue.results,
    ...queue.dedupe,
  ];
  return [...new Set(names)];
}

/** For each level of parents, the children it follows from. */
export function childLevels(queue: Queue): { table: string; status: string; via: string }[] {
  return queue.rollUp.map(({ via }, depth) => {
    const below = queue.rollUp[depth - 1];
    return {
      table: below?.table ?? queue.table,
      status: below?.status ?? queue.columns.status,
      via,
    };
  });
}

export function kindOf(queue: Queue, column: string): ColumnKind {
  return queue.kinds[column] ?? "plain";
}

function fail(queue: { name: string }, problem: string): never {
  throw new QuarryError("invalid_declaration", `queue ${JSON.stringify(queue.name)}: ${problem}`);
}

function checkNames(queue: Queue): void {
  if (!/^[a-z][a-z0-9_.-]{0,39}$/.test(queue.name)) {
    fail(queue, "a name is 1 to 40 of a-z, 0-9, dot, dash and underscore, and starts with a letter");
  }
  const tables = [queue.table, ...queue.rollUp.map((level) => level.table)].flatMap((name) =>
    name.split("."),
  );
  const columns = [
    ...columnsOf(queue),
    ...Object.keys(queue.kinds),
    ...queue.rollUp.flatMap((level) => [
      level.key.column,
      level.via,
      level.status,
      ...(level.error ? [level.error.column, level.error.from] : []),
      ...[level.startedAt, level.finishedAt, level.updatedAt].filter((name) => name !== undefined),
    ]),
  ];
  const indexes = [queue.lease.index, queue.group?.index].filter((name) => name !== undefined);
  for (const name of [...tables, ...columns, ...indexes]) {
    if (!IDENTIFIER.test(name))
      fail(queue, `${JSON.stringify(name)} is not a name of a-z, 0-9 and underscore`);
    if (name.length > IDENTIFIER_BYTES_MAX)
      fail(queue, `${name} is longer than ${IDENTIFIER_BYTES_MAX} bytes`);
  }
  for (const { table, status, via } of childLevels(queue)) {
    const name = childIndexName({ table, status }, via);
    if (name.length > IDENTIFIER_BYTES_MAX) fail(queue, `${name}, the name of an index, is too long`);
  }
  if (indexPrefix(queue).length + INDEX_SUFFIX_MAX > IDENTIFIER_BYTES_MAX) {
    fail(
      queue,
      `${indexPrefix(queue)}, from which index names are made, is too long: shorten the queue's name`,
    );
  }
}

function checkWords(queue: Queue): void {
  const { pending, running, done, failed, retrying, cancelled } = queue.statuses;
  const apart = [pending, running, done, failed, ...(cancelled === undefined ? [] : [cancelled])];
  if (new Set(apart).size !== apart.length)
    fail(queue, "pending, running, done, failed and cancelled need words of their own");
  if ([running, done, cancelled].includes(retrying))
    fail(queue, "retrying cannot share the word of running, done or cancelled");
  for (const word of [...apart, retrying]) {
    if (!/^[\w -]{1,63}$/.test(word)) fail(queue, `${JSON.stringify(word)} is not a status word`);
  }
  for (const gate of queue.gate) {
    if (gate.column === queue.columns.status) fail(queue, "a gate on the queue's own status makes no sense");
  }
}

function checkLimits(queue: Queue): void {
  const { max } = queue.attempts;
  if (typeof max === "number" && !(Number.isInteger(max) && max >= 1))
    fail(queue, "attempts.max must be at least 1");
  if (new Set(queue.results).size < queue.results.length) fail(queue, "results names a column twice");
  if (!(queue.lease.ms >= 100)) fail(queue, "lease.ms must be at least 100");
  if (queue.lease.column && queue.lease.holds === "heartbeat")
    fail(queue, "lease.column needs a lease column that holds the expiry");
  if (queue.lease.unheldMs !== undefined && !queue.columns.updatedAt)
    fail(queue, "lease.unheldMs needs columns.updatedAt to know when a row was touched");
  if (queue.attempts.again === "once" && queue.statuses.retrying === queue.statuses.failed)
    fail(queue, 'attempts.again "once" needs a word for failed rows that are not tried again');
  if (queue.rollUp.length > ROLL_UP_LEVELS_MAX)
    fail(queue, `more than ${ROLL_UP_LEVELS_MAX} levels of roll-up`);
  if (queue.reserved?.for === "") fail(queue, "reserved.for needs a name: '' is anybody");
  // Whoever has a group's turn would hold it until they who may take the row come.
  if (queue.reserved && queue.group) fail(queue, "a queue with reserved rows cannot have groups");
  if (queue.group && queue.group.columns.length === 0) fail(queue, "a group needs at least one column");
  if (queue.whenDone === "remove" && (queue.results.length > 0 || queue.rollUp.length > 0)) {
    fail(queue, "rows that are removed when done can neither keep results nor roll up to parents");
  }
  if (queue.retention && !queue.columns.finishedAt)
    fail(queue, "retention needs columns.finishedAt to know a row's age");
}

/** Queues whose rows have the same parents share the index that finds children by parent and status. */
export function childIndexName(
  child: { readonly table: string; readonly status: string },
  via: string,
): string {
  return `${child.table.split(".").at(-1)}_by_${via}_${child.status}`;
}

/** Where the names of a queue's indexes begin. */
export function indexPrefix(queue: Queue): string {
  const table = queue.table.split(".").at(-1)!;
  const name = queue.name.replaceAll(/[.-]/g, "_");
  return name === table ? table : `${table}_${name}`;
}
