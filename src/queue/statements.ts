import type { Statement } from "../database/database.ts";
import { type Batch, type Dialect, isPacked, literal, quoted, type TokenBatch } from "../database/dialect.ts";
import { kindOf, type Queue } from "./declaration.ts";
import { indexedBy } from "./indexes.ts";
import { attemptsMax, equals, orderOf, orderTermsOf, type Predicates, predicatesOf } from "./predicates.ts";

/**
 * What a declaration compiles to: a dozen fixed statements. Parameters are listed above each; the first is always
 * "now" where a statement needs the time. A batch (key, token, …) comes last, as the dialect encodes it.
 */
export interface QueueStatements {
  readonly pick: Statement;
  /** Only where picking and marking are two statements. */
  readonly mark: Statement | undefined;
  readonly extend: Statement;
  readonly complete: Statement;
  /** The same without saying which rows; only where they can be counted afterwards. */
  readonly completeUnnamed: Statement | undefined;
  readonly fail: Statement;
  readonly release: Statement;
  /** Only for queues that say who works on a row. */
  readonly expire: Statement | undefined;
  readonly rescue: Statement;
  /** Only for queues that say how long a row may run without a lease. */
  readonly rescueUnheld: Statement | undefined;
  readonly promote: Statement;
  readonly nextDue: Statement;
  readonly lookUp: Statement;
  readonly cancel: Statement;
  readonly retry: Statement;
  readonly pruneDone: Statement;
  readonly pruneFailed: Statement;
}

/** Names under which the engine's own values come back, beside the columns that the queue reads. */
export const KEY = "q_key";
export const TOKEN = "q_token";
export const ATTEMPT = "q_attempt";
export const ATTEMPTS_MAX = "q_attempts_max";
export const STATUS = "q_status";
export const PARENT = "q_parent";
export const GROUP = "q_group_";
export const TURN = "q_turn";

export function compileQueue(queue: Queue, dialect: Dialect): QueueStatements {
  return new Compiler(queue, dialect).statements();
}

/** Completes rows and writes these of the queue's result columns; a column that is not named costs no index anything. */
export function compileCompletion(queue: Queue, dialect: Dialect, results: readonly string[]): Completion {
  return new Compiler(queue, dialect).completion(results);
}

export interface Completion {
  readonly statement: Statement;
  /** The same without saying which rows; only where they can be counted afterwards. */
  readonly unnamed: Statement | undefined;
}

class Compiler {
  readonly #queue: Queue;
  readonly #dialect: Dialect;
  readonly #where: Predicates;
  readonly #table: string;
  readonly #key: string;

  constructor(queue: Queue, dialect: Dialect) {
    this.#queue = queue;
    this.#dialect = dialect;
    this.#where = predicatesOf(queue);
    this.#table = quoted(queue.table);
    this.#key = `t.${quoted(queue.key.column)}`;
  }

  statements(): QueueStatements {
    const { name } = this.#queue;
    const statement = (verb: string, sql: string): Statement => ({ name: `${name}.${verb}`, sql });
    const isSerial = this.#dialect.isSerial;
    return {
      pick: statement("claim", isSerial ? this.#pick() : this.#pickAndMark()),
      mark: isSerial
        ? statement("mark", this.#mark(this.#dialect.isOneOf(this.#key, 4, this.#queue.key.type)))
        : undefined,
      extend: { ...statement("extend", this.#extend()), isUrgent: true },
      complete: statement("complete", this.#complete(true)),
      completeUnnamed: this.#isCountable ? statement("complete", this.#complete(false)) : undefined,
      fail: statement("fail", this.#fail()),
      release: statement("release", this.#release()),
      expire: this.#queue.columns.worker
        ? statement("expire", this.#expire(this.#queue.columns.worker))
        : undefined,
      rescue: statement("rescue", this.#rescue(this.#isSilent(), this.#queue.columns.lease)),
      rescueUnheld: this.#rescueUnheld(statement),
      promote: statement("promote", this.#promote()),
      nextDue: statement("nextDue", this.#nextDue()),
      lookUp: statement("lookUp", this.#lookUp()),
      cancel: statement("cancel", this.#cancel()),
      retry: statement("retry", this.#retry()),
      pruneDone: statement("pruneDone", this.#prune(this.#where.done)),
      pruneFailed: statement("pruneFailed", this.#prune(this.#where.failedForGood)),
    };
  }

  /** $1 how many. */
  #pick(limit = this.#dialect.param(1, "integer")): string {
    const { reserved } = this.#queue;
    if (!reserved) return this.#pickWhere(this.#where.ready, limit);
    // Two walks along the index, one behind each name, and the first of both: rows of others are not even passed by.
    const terms = orderTermsOf(this.#queue).map((term, nth) => ({ ...term, name: `q_order_${nth}` }));
    const order = terms.map(({ value, name }) => `${value} as ${name}`);
    const lines = [reserved.for, ""].map((taker) => {
      const isTheirs = equals(`t.${quoted(reserved.column)}`, taker);
      return `select * from (${this.#pickWhere(`${this.#where.ready} and ${isTheirs}`, limit, order)}) as line`;
    });
    return `select * from (${lines.join(" union all ")}) as lines order by ${terms.map(({ name, way }) => name + way).join(", ")} limit ${limit}`;
  }

  #pickWhere(isMeant: string, limit: string, more: readonly string[] = []): string {
    const { columns, reads } = this.#queue;
    const selected = [
      `${this.#key} as ${KEY}`,
      `t.${quoted(columns.token)} + 1 as ${TOKEN}`,
      `t.${quoted(columns.attempts)} + 1 as ${ATTEMPT}`,
      `${attemptsMax(this.#queue)} as ${ATTEMPTS_MAX}`,
      ...this.#parent(),
      ...reads.map((name) => `t.${quoted(name)}`),
      ...more,
    ];
    return `select ${selected.join(", ")} from ${this.#tableBy("ready")} where ${isMeant} order by ${orderOf(this.#queue).join(", ")} limit ${limit}${this.#dialect.skipLocked}`;
  }

  /**
   * $1 now, $2 worker, $3 lease in ms, $4 how many. The rows come from the locking select, in the queue's order;
   * the update then walks their keys. Joining the two would leave the planner a choice it gets wrong.
   */
  #pickAndMark(): string {
    const picked = this.#pick(this.#dialect.param(4, "integer"));
    const mark = this.#mark(this.#dialect.isAmong(this.#key, `select ${KEY} from picked`));
    return `with picked as materialized (${picked}), marked as (${mark}) select * from picked`;
  }

  /** $1 now, $2 worker, $3 lease in ms, $4 keys. */
  #mark(isPicked: string): string {
    const { columns, statuses, attempts } = this.#queue;
    const { now } = this.#dialect;
    return this.#update(
      {
        [columns.status]: literal(statuses.running),
        [columns.token]: `t.${quoted(columns.token)} + 1`,
        [columns.lease]: this.#leaseUntil(3),
        ...(columns.worker && { [columns.worker]: this.#dialect.param(2, "text") }),
        ...(columns.startedAt && { [columns.startedAt]: now }),
        ...(attempts.count === "claims" && { [columns.attempts]: `t.${quoted(columns.attempts)} + 1` }),
      },
      columns.worker ? isPicked : `${isPicked} and ${this.#dialect.param(2, "text")} is not null`,
    );
  }

  /** $1 now, $2 lease in ms, tokens. A key that does not come back lost its lease. */
  #extend(): string {
    const tokens = this.#tokens(3);
    const set = { [this.#queue.columns.lease]: this.#leaseUntil(2) };
    return `${this.#update(set, this.#held(tokens), tokens.from)} returning ${this.#returned()}`;
  }

  /** Parents need to know which rows were written, and groups too when those are gone afterwards; otherwise their number may do. */
  get #isCountable(): boolean {
    const { rollUp, group, whenDone } = this.#queue;
    return this.#dialect.isSerial && rollUp.length === 0 && (!group || whenDone === "keep");
  }

  /** $1 now, tokens. */
  #complete(isNamed: boolean): string {
    const tokens = this.#tokens(2);
    const returning = isNamed ? ` returning ${this.#returned()}` : "";
    if (this.#queue.whenDone === "keep") {
      return `${this.#update(this.#completed(), this.#held(tokens), tokens.from)}${returning}`;
    }
    const isHeld = tokens.matchAlone(`t.${quoted(this.#queue.columns.token)}`);
    const isRunning = this.#dialect.check(this.#where.running);
    return `delete from ${this.#table} as t where ${isHeld} and ${isRunning} and ${this.#dialect.now} is not null${returning}`;
  }

  completion(results: readonly string[]): Completion {
    const sql = this.#completeWithResults(results);
    const name = `${this.#queue.name}.completeWithResults`;
    return {
      statement: { name, sql: `${sql} returning ${this.#returned()}` },
      unnamed: this.#isCountable ? { name, sql } : undefined,
    };
  }

  /** $1 now, batch (key, token, start and length of each that is packed, results), the packed columns. */
  #completeWithResults(results: readonly string[]): string {
    const batch = this.#batch(2);
    const columns = results.map((name) => ({ name, kind: kindOf(this.#queue, name) }));
    const written = columns.filter(({ kind }) => !isPacked(kind));
    const packed = columns.flatMap(({ name, kind }) => (isPacked(kind) ? [{ name, kind }] : []));
    const unpacked = packed.map(({ name, kind }, nth) => {
      const [start, length] = [1, 2].map((field) => batch.field(2 * nth + field, "integer"));
      return `${quoted(name)} = ${this.#dialect.unpack(kind, batch.next + nth, { start: start!, length: length! })}`;
    });
    const merged = written.length > 0 ? [batch.merge("t", 1 + 2 * packed.length, written)] : [];
    return this.#update(
      this.#completed(),
      this.#held(batch),
      batch.from,
      [...merged, ...unpacked].join(", "),
    );
  }

  #completed(): Record<string, string> {
    const { columns, statuses } = this.#queue;
    return {
      [columns.status]: literal(statuses.done),
      ...this.#ended(this.#dialect.now),
      [columns.error]: "null",
    };
  }

  /** $1 now, batch (key, token, delay in ms, reason, is fatal). */
  #fail(): string {
    const { columns, statuses } = this.#queue;
    const { now } = this.#dialect;
    const batch = this.#batch(2);
    const spent = this.#spent();
    const isOver = `(${batch.field(3, "boolean")} or ${spent} >= ${attemptsMax(this.#queue)})`;
    const delayMs = batch.field(1, "real");
    const set = {
      [columns.status]: this.#choose(isOver, statuses.failed, statuses.retrying),
      [columns.attempts]: this.#attemptsAfterFailure(spent, isOver),
      [columns.runAfter]: `case when ${isOver} or ${delayMs} <= 0 then null else ${this.#dialect.shift(now, delayMs)} end`,
      [columns.error]: batch.field(2, "text"),
      ...(columns.errorAt && { [columns.errorAt]: now }),
      ...this.#ended(`case when ${isOver} then ${now} end`, `not ${isOver}`),
    };
    return `${this.#update(set, this.#held(batch), batch.from)} returning ${this.#returned()}`;
  }

  /** $1 now, batch (key, token, delay in ms). Costs no attempt. */
  #release(): string {
    const { columns, statuses, attempts } = this.#queue;
    const { now } = this.#dialect;
    const batch = this.#batch(2);
    const delayMs = batch.field(1, "real");
    const set = {
      [columns.status]: literal(statuses.pending),
      [columns.runAfter]: `case when ${delayMs} > 0 then ${this.#dialect.shift(now, delayMs)} end`,
      [columns.lease]: "null",
      ...(columns.worker && { [columns.worker]: "null" }),
      ...(columns.startedAt && { [columns.startedAt]: "null" }),
      ...(attempts.count === "claims" && { [columns.attempts]: `t.${quoted(columns.attempts)} - 1` }),
    };
    return `${this.#update(set, this.#held(batch), batch.from)} returning ${this.#returned()}`;
  }

  /** $1 now, $2 workers. Their leases are over, whatever they said. */
  #expire(worker: string): string {
    const { lease, columns } = this.#queue;
    const longAgo = this.#dialect.shift(this.#dialect.now, `-${2 * lease.ms}`);
    const isTheirs = this.#dialect.isOneOf(`t.${quoted(worker)}`, 2, "text");
    return `${this.#update({ [columns.lease]: longAgo }, `${this.#where.running} and ${isTheirs}`)} returning ${quoted(this.#queue.key.column)} as ${KEY}`;
  }

  /** $1 now, $2 how many. The condition stands twice: a row that was settled meanwhile is left alone. */
  #rescue(isStale: string, since: string): string {
    const { columns, statuses } = this.#queue;
    const { now } = this.#dialect;
    const spent = this.#spent();
    const isOver = `(${spent} >= ${attemptsMax(this.#queue)})`;
    const set = {
      [columns.status]: this.#choose(isOver, statuses.failed, statuses.pending),
      [columns.attempts]: this.#capped(spent),
      [columns.token]: `t.${quoted(columns.token)} + 1`,
      [columns.runAfter]: "null",
      [columns.error]: this.#lostError(spent, isOver),
      ...(columns.errorAt && { [columns.errorAt]: now }),
      ...this.#ended(`case when ${isOver} then ${now} end`, `not ${isOver}`),
    };
    const stale = `select ${this.#key} from ${this.#tableBy("lease")} where ${isStale} order by t.${quoted(since)} limit ${this.#dialect.param(2, "integer")}${this.#dialect.skipLocked}`;
    const where = `${this.#dialect.isAmong(this.#key, stale)} and ${this.#dialect.check(isStale)}`;
    return `${this.#update(set, where)} returning ${this.#returned()}`;
  }

  #isSilent(): string {
    const { columns, lease } = this.#queue;
    const { now } = this.#dialect;
    const silentSince = lease.holds === "expiry" ? now : this.#dialect.shift(now, `-${lease.ms}`);
    return `${this.#where.running} and t.${quoted(columns.lease)} < ${silentSince}`;
  }

  #rescueUnheld(statement: (verb: string, sql: string) => Statement): Statement | undefined {
    const { columns, lease } = this.#queue;
    if (lease.unheldMs === undefined) return undefined;
    const before = this.#dialect.shift(this.#dialect.now, `-${lease.unheldMs}`);
    const isUnheld = `${this.#where.running} and t.${quoted(columns.lease)} is null and t.${quoted(columns.updatedAt!)} < ${before}`;
    return statement("rescueUnheld", this.#rescue(isUnheld, columns.updatedAt!));
  }

  #lostError(spent: string, isOver: string): string {
    const { columns, lease } = this.#queue;
    const worker = columns.worker ? `t.${quoted(columns.worker)}` : "null";
    const lost = (who: string) =>
      `'worker ' || ${who} || ' stopped renewing its lease (attempt ' || ${spent} || ' of ' || ${attemptsMax(this.#queue)} || ')'`;
    const byWhom = lost(columns.worker ? `coalesce(${worker}, '?')` : "'?'");
    if (lease.lostMessage === undefined) return byWhom;
    const message = `${literal(lease.lostMessage)} || coalesce(': ' || ${lost(worker)}, '')`;
    return `case when ${isOver} then ${byWhom} else ${message} end`;
  }

  /** $1 now, $2 how many. */
  #promote(): string {
    const runAfter = quoted(this.#queue.columns.runAfter);
    const isDue = `${this.#where.delayed} and t.${runAfter} <= ${this.#dialect.now}`;
    const due = `select ${this.#key} from ${this.#tableBy("delayed")} where ${isDue} order by t.${runAfter} limit ${this.#dialect.param(2, "integer")}${this.#dialect.skipLocked}`;
    const where = `${this.#dialect.isAmong(this.#key, due)} and ${this.#dialect.check(isDue)}`;
    return `${this.#update({ [this.#queue.columns.runAfter]: "null" }, where)} returning ${this.#returned()}`;
  }

  /** $1 now. */
  #nextDue(): string {
    const runAfter = `t.${quoted(this.#queue.columns.runAfter)}`;
    const wait =
      this.#dialect.name === "postgres"
        ? `extract(epoch from ${runAfter} - ${this.#dialect.now}) * 1000`
        : `(julianday(${runAfter}) - julianday(${this.#dialect.now})) * 86400000`;
    return `select ${wait} as wait_ms from ${this.#tableBy("delayed")} where ${this.#where.delayed} order by ${runAfter} limit 1`;
  }

  /** $1 keys. */
  #lookUp(): string {
    const { columns } = this.#queue;
    const selected = [
      `t.${quoted(columns.status)} as ${STATUS}`,
      `t.${quoted(columns.token)} as ${TOKEN}`,
      `t.${quoted(columns.attempts)} as ${ATTEMPT}`,
      `${attemptsMax(this.#queue)} as ${ATTEMPTS_MAX}`,
    ];
    return `select ${this.#key} as ${KEY}, ${selected.join(", ")} from ${this.#table} as t where ${this.#named(1)}`;
  }

  /** $1 now, $2 keys. */
  #cancel(): string {
    const { columns, statuses } = this.#queue;
    const isOpen = this.#dialect.check(
      `((${this.#where.waiting}) or (${this.#where.running}) or (${this.#where.stuck}))`,
    );
    const where = `${this.#named(2)} and ${isOpen}`;
    if (statuses.cancelled === undefined) {
      return `delete from ${this.#table} as t where ${where} and ${this.#dialect.now} is not null returning ${this.#returned()}`;
    }
    const set = {
      [columns.status]: literal(statuses.cancelled),
      [columns.token]: `t.${quoted(columns.token)} + 1`,
      [columns.runAfter]: "null",
      ...this.#ended(this.#dialect.now),
    };
    return `${this.#update(set, where)} returning ${this.#returned()}`;
  }

  /** $1 now, $2 keys, $3 also completed ones. Where counters start anew, the last error stays to be read. */
  #retry(): string {
    const { columns, statuses, attempts } = this.#queue;
    const cancelled = statuses.cancelled
      ? ` or t.${quoted(columns.status)} = ${literal(statuses.cancelled)}`
      : "";
    const isDone = `(${this.#where.done} and ${this.#dialect.param(3, "boolean")})`;
    const isStopped = `((${this.#where.failedForGood}) or (${this.#where.delayed}) or (${this.#where.stuck})${cancelled} or ${isDone})`;
    const set = {
      [columns.status]: literal(statuses.pending),
      [columns.token]: `t.${quoted(columns.token)} + 1`,
      ...(attempts.again === "anew" ? { [columns.attempts]: "0" } : { [columns.error]: "null" }),
      [columns.runAfter]: "null",
      [columns.lease]: "null",
      ...(columns.worker && { [columns.worker]: "null" }),
      ...(columns.startedAt && { [columns.startedAt]: "null" }),
      ...(columns.finishedAt && { [columns.finishedAt]: "null" }),
    };
    return `${this.#update(set, `${this.#named(2)} and ${this.#dialect.check(isStopped)}`)} returning ${this.#returned()}`;
  }

  /** $1 now, $2 how old in ms, $3 how many. */
  #prune(isFinished: string): string {
    const finishedAt = this.#queue.columns.finishedAt;
    if (!finishedAt) return `select 1 as ${KEY} where false`;
    const before = this.#dialect.shift(this.#dialect.now, `-${this.#dialect.param(2, "real")}`);
    const isOld = `${isFinished} and t.${quoted(finishedAt)} <= ${before}`;
    const old = `select ${this.#key} from ${this.#table} as t where ${isOld} order by t.${quoted(this.#queue.columns.status)}, t.${quoted(finishedAt)} limit ${this.#dialect.param(3, "integer")}${this.#dialect.skipLocked}`;
    const where = `${this.#dialect.isAmong(this.#key, old)} and ${isOld}`;
    return `delete from ${this.#table} as t where ${where} returning ${this.#returned()}`;
  }

  #tableBy(index: "ready" | "delayed" | "lease"): string {
    return `${this.#table} as t${indexedBy(this.#queue, this.#dialect, index)}`;
  }

  #update(set: Record<string, string>, where: string, from = "", merged = ""): string {
    const { updatedAt } = this.#queue.columns;
    const all = { ...set, ...(updatedAt && { [updatedAt]: this.#dialect.now }) };
    const assignments = Object.entries(all).map(([name, value]) => `${quoted(name)} = ${value}`);
    const sql = `update ${this.#table} as t set ${[...assignments, ...(merged ? [merged] : [])].join(", ")}${from} where ${where}`;
    // PostgreSQL refuses a parameter that no part of the statement names.
    return sql.includes(this.#dialect.now) ? sql : `${sql} and ${this.#dialect.now} is not null`;
  }

  /** What leaving `running` for good writes; `keepsGoing` is the condition under which the row is not over yet. */
  #ended(finishedAt: string, keepsGoing?: string): Record<string, string> {
    const { columns, group } = this.#queue;
    const onlyIfGoing = (name: string) =>
      keepsGoing ? `case when ${keepsGoing} then null else t.${quoted(name)} end` : `t.${quoted(name)}`;
    return {
      [columns.lease]: "null",
      ...(columns.finishedAt && { [columns.finishedAt]: finishedAt }),
      ...(columns.worker && keepsGoing && { [columns.worker]: onlyIfGoing(columns.worker) }),
      ...(group && { [group.turn]: keepsGoing ? `(${keepsGoing})` : "false" }),
    };
  }

  /** Attempts used, this one included. */
  #spent(): string {
    const attempts = `t.${quoted(this.#queue.columns.attempts)}`;
    return this.#queue.attempts.count === "claims" ? attempts : `(${attempts} + 1)`;
  }

  /** Whoever was put back with a full count and failed once more has no more than a full count. */
  #capped(spent: string): string {
    return this.#queue.attempts.again === "once"
      ? this.#dialect.least(spent, attemptsMax(this.#queue))
      : spent;
  }

  /** Where `failed` also means "will be retried", a row that is over must have no attempts left. */
  #attemptsAfterFailure(spent: string, isOver: string): string {
    const { statuses } = this.#queue;
    if (statuses.retrying !== statuses.failed) return this.#capped(spent);
    return `case when ${isOver} then ${this.#dialect.greatest(spent, attemptsMax(this.#queue))} else ${spent} end`;
  }

  /** The last branch never runs; it gives the expression the column's own type, which may be an enum. */
  #choose(condition: string, yes: string, no: string): string {
    if (yes === no) return literal(yes);
    return `case when ${condition} then ${literal(yes)} when true then ${literal(no)} else t.${quoted(this.#queue.columns.status)} end`;
  }

  #leaseUntil(param: number): string {
    const ms = this.#dialect.param(param, "real");
    const { now } = this.#dialect;
    const { column, holds } = this.#queue.lease;
    const own = column ? this.#dialect.greatest(ms, `coalesce(t.${quoted(column)}, 0)`) : ms;
    if (holds === "expiry") return this.#dialect.shift(now, own);
    // A heartbeat column holds when the worker was heard; its parameter still has to be named.
    return `case when ${ms} > 0 then ${now} end`;
  }

  #batch(index: number) {
    return this.#dialect.batch(this.#key, index, this.#queue.key.type);
  }

  #tokens(index: number) {
    return this.#dialect.tokens(this.#key, index, this.#queue.key.type);
  }

  /** The fence: key, token and running, for every write of a worker. */
  #held(batch: Batch | TokenBatch): string {
    const token = `t.${quoted(this.#queue.columns.token)}`;
    const given = "token" in batch ? batch.token : batch.field(0, "integer");
    return `${batch.match} and ${token} = ${given} and ${this.#dialect.check(this.#where.running)}`;
  }

  #named(index: number): string {
    return `${this.#dialect.isOneOf(this.#key, index, this.#queue.key.type)} and ${this.#dialect.check(this.#where.member)}`;
  }

  /** What the engine needs to know of a row it has written: who it is, what became of it, whom it concerns. */
  #returned(): string {
    const { group } = this.#queue;
    // SQLite's `returning` does not know the alias.
    const alias = (sql: string) => (this.#dialect.name === "sqlite" ? sql.replaceAll('t."', '"') : sql);
    const columns = [
      `${this.#key} as ${KEY}`,
      `t.${quoted(this.#queue.columns.status)} as ${STATUS}`,
      ...this.#parent(),
      ...(group ? group.columns.map((name, index) => `t.${quoted(name)} as ${GROUP}${index}`) : []),
    ];
    return columns.map(alias).join(", ");
  }

  #parent(): string[] {
    const [level] = this.#queue.rollUp;
    return level ? [`t.${quoted(level.via)} as ${PARENT}`] : [];
  }
}
