import type { Database, Row, Session, Statement, Transaction } from "../database/database.ts";
import type { BatchEntry } from "../database/dialect.ts";
import { QuarryError } from "../errors.ts";
import type { Queue } from "./declaration.ts";
import { type Enqueued, type EnqueueOptions, encodeValue, planInserts, runInserts } from "./enqueue.ts";
import {
  countRows,
  type ListOptions,
  listRows,
  type QueueFilter,
  type QueuePage,
  readValue,
} from "./list.ts";
import type { Claim, Outcome, Settlement, Verdict } from "./outcome.ts";
import { compileRollUp, type Key, type RollUp } from "./roll-up.ts";
import {
  ATTEMPT,
  ATTEMPTS_MAX,
  compileQueue,
  KEY,
  PARENT,
  type QueueStatements,
  STATUS,
  TOKEN,
} from "./statements.ts";
import { cleanValue, errorText, isStorable } from "./text.ts";
import { compileTurns, type Turns } from "./turns.ts";

/** Every operation on a queue. Each is one transaction, parents included. */
export interface QueueStore<Payload extends object = Record<string, unknown>> {
  readonly queue: Queue<Payload>;
  readonly database: Database;

  enqueue(rows: readonly object[], options?: EnqueueOptions): Promise<Enqueued[]>;
  /** Takes the next rows, in the queue's order. */
  claim(options: ClaimOptions): Promise<Claim<Payload>[]>;
  /** Renews leases. Claims whose key is not in the answer are lost. */
  extend(claims: readonly Claim<object>[]): Promise<Set<Key>>;
  /** Writes down what became of claims, in the order given. */
  settle(settlements: readonly Settlement[], options?: SettleOptions): Promise<Verdict[]>;
  /** Gives claims back untouched: no attempt is spent. */
  release(claims: readonly Claim<object>[], options?: { delayMs?: number }): Promise<number>;

  /** Takes rows from workers that fell silent. Each costs an attempt. */
  rescueStale(options?: { limit?: number }): Promise<Rescued[]>;
  /** Makes delayed rows claimable whose time has come. */
  promoteDelayed(options?: { limit?: number }): Promise<number>;
  /** How long until the next delayed row is due; undefined when none is. */
  nextDueMs(): Promise<number | undefined>;

  /** Waiting rows go away, running ones are taken from their worker, finished ones are too late. */
  cancel(keys: readonly Key[]): Promise<Map<Key, CancelVerdict>>;
  /** Makes stopped rows claimable with fresh counters. Returns the keys that were. */
  retry(keys: readonly Key[], options?: RetryOptions): Promise<Key[]>;
  retryWhere(filter: QueueFilter, options?: RetryOptions): Promise<number>;
  /** Deletes finished rows that are older than the given ages. */
  prune(options: PruneOptions): Promise<number>;

  countByStatus(filter?: QueueFilter): Promise<Map<string, number>>;
  list(options?: ListOptions): Promise<QueuePage>;

  /** Re-derives parents and passes stranded turns, a bounded number at a time. Returns how many were mended. */
  repair(options?: { limit?: number }): Promise<number>;
  /** The same queue inside a transaction of the caller's: rows are enqueued with it or not at all. */
  within(transaction: Transaction): Pick<QueueStore<Payload>, "enqueue">;
}

export interface ClaimOptions {
  readonly worker: string;
  readonly limit: number;
}

export interface SettleOptions {
  /** An earlier try may have succeeded unseen: a row that this very claim has settled counts as settled. */
  readonly isRepeat?: boolean;
}

export interface Rescued {
  readonly key: Key;
  /** True when it had no attempts left. */
  readonly isFailed: boolean;
}

export type CancelVerdict = "cancelled" | "aborted" | "too_late" | "not_found";

export interface RetryOptions {
  /** Also run completed rows once more. */
  readonly includeDone?: boolean;
}

export interface PruneOptions {
  readonly doneOlderThanMs?: number;
  readonly failedOlderThanMs?: number;
  readonly limit?: number;
}

const CLAIM_MAX = 10_000;
const SWEEP_LIMIT = 500;

export function openQueue<Payload extends object>(
  database: Database,
  queue: Queue<Payload>,
): QueueStore<Payload> {
  return new Store(database, queue) as QueueStore<object> as QueueStore<Payload>;
}

class Store implements QueueStore<object> {
  readonly queue: Queue;
  readonly database: Database;
  readonly #sql: QueueStatements;
  readonly #rollUp: RollUp | undefined;
  readonly #turns: Turns | undefined;

  constructor(database: Database, queue: Queue) {
    this.database = database;
    this.queue = queue;
    this.#sql = compileQueue(queue, database.dialect);
    this.#rollUp = compileRollUp(queue, database.dialect, database.now);
    this.#turns = compileTurns(queue, database.dialect);
  }

  async enqueue(rows: readonly object[], options: EnqueueOptions = {}): Promise<Enqueued[]> {
    const inserts = planInserts(this.database, this.queue, rows as readonly Row[]);
    if (inserts.length === 0) return [];
    if (inserts.length > 1 || this.#rollUp) {
      return this.database.transaction((transaction) => this.#insert(transaction, inserts, options));
    }
    const { enqueued, written } = await runInserts(
      this.database,
      this.database,
      this.queue,
      inserts,
      options,
    );
    await this.#afterwards(written);
    this.database.notify(this.queue.name);
    return enqueued;
  }

  async #insert(
    transaction: Transaction,
    inserts: ReturnType<typeof planInserts>,
    options: EnqueueOptions,
  ): Promise<Enqueued[]> {
    const { enqueued, written } = await runInserts(this.database, transaction, this.queue, inserts, options);
    await this.#follow(transaction, written);
    transaction.afterCommit(() => this.database.notify(this.queue.name));
    return enqueued;
  }

  within(transaction: Transaction): Pick<QueueStore<object>, "enqueue"> {
    return {
      enqueue: (rows, options = {}) =>
        this.#insert(transaction, planInserts(this.database, this.queue, rows as readonly Row[]), options),
    };
  }

  async claim({ worker, limit }: ClaimOptions): Promise<Claim<object>[]> {
    if (!(Number.isInteger(limit) && limit >= 1 && limit <= CLAIM_MAX)) {
      throw new QuarryError("invalid_input", `a claim takes 1 to ${CLAIM_MAX} rows, not ${limit}`);
    }
    const { mark } = this.#sql;
    if (!mark && !this.#rollUp) return (await this.#pick(this.database, worker, limit)).map(this.#toClaim);
    return this.database.transaction(async (transaction) => {
      const rows = await this.#pick(transaction, worker, limit);
      await this.#rollUp?.follow(
        transaction,
        rows.map((row) => row[PARENT]),
      );
      return rows.map(this.#toClaim);
    });
  }

  async #pick(session: Session, worker: string, limit: number): Promise<Row[]> {
    const { pick, mark } = this.#sql;
    const marking = [this.database.now(), worker, this.queue.lease.ms];
    if (!mark) return session.query(pick, [...marking, limit]);
    const rows = await session.query(pick, [limit]);
    if (rows.length > 0) {
      await session.query(mark, [...marking, this.database.dialect.keys(rows.map((row) => row[KEY] as Key))]);
    }
    return rows;
  }

  readonly #toClaim = (row: Row): Claim<object> => {
    const payload: Row = {};
    for (const name of this.queue.reads) payload[name] = readValue(this.queue, name, row[name]);
    return {
      key: row[KEY] as Key,
      token: Number(row[TOKEN]),
      attempt: Number(row[ATTEMPT]),
      attemptsMax: Number(row[ATTEMPTS_MAX]),
      row: payload,
    };
  };

  async extend(claims: readonly Claim<object>[]): Promise<Set<Key>> {
    if (claims.length === 0) return new Set();
    const batch = claims.map((claim): BatchEntry => [claim.key, claim.token]);
    const params = [this.database.now(), this.queue.lease.ms, ...this.database.dialect.batchParams(batch)];
    const rows = await this.database.query(this.#sql.extend, params);
    return new Set(rows.map((row) => row[KEY] as Key));
  }

  async settle(settlements: readonly Settlement[], options: SettleOptions = {}): Promise<Verdict[]> {
    if (settlements.length === 0) return [];
    const alone = settlements.filter(({ outcome }) => outcome.kind === "done" && outcome.also);
    const together =
      alone.length === 0 ? settlements : settlements.filter((settlement) => !alone.includes(settlement));
    const statuses = new Map<Key, string>();
    const note = (rows: readonly Row[]) => {
      for (const row of rows) statuses.set(row[KEY] as Key, String(row[STATUS]));
    };
    const batches = this.#batchesOf(together);
    if (batches.length === 1 && !this.#rollUp) {
      const rows = await this.#settleBatch(this.database, batches[0]!);
      await this.#afterwards(rows);
      note(rows);
    } else if (batches.length > 0) {
      note(await this.database.transaction((transaction) => this.#settleBatches(transaction, batches)));
    }
    for (const settlement of alone) note(await this.#settleWithEffects(settlement));
    if (options.isRepeat) await this.#findSettled(settlements, statuses);
    this.#wake(settlements);
    return settlements.map((settlement) => this.#verdict(settlement, statuses));
  }

  async #settleBatches(transaction: Transaction, batches: readonly SettleBatch[]): Promise<Row[]> {
    const rows: Row[] = [];
    for (const batch of batches) rows.push(...(await this.#settleBatch(transaction, batch)));
    await this.#follow(transaction, rows);
    return rows;
  }

  /** The row is settled first: when its lease is lost, the effects are not written. */
  #settleWithEffects(settlement: Settlement): Promise<Row[]> {
    const { outcome } = settlement;
    return this.database.transaction(async (transaction) => {
      const rows: Row[] = [];
      for (const batch of this.#batchesOf([settlement]))
        rows.push(...(await this.#settleBatch(transaction, batch)));
      if (rows.length > 0 && outcome.kind === "done") await outcome.also?.(transaction);
      await this.#follow(transaction, rows);
      return rows;
    });
  }

  #settleBatch(session: Session, batch: SettleBatch): Promise<Row[]> {
    return session.query(batch.statement, [
      this.database.now(),
      ...this.database.dialect.batchParams(batch.entries),
    ]);
  }

  #batchesOf(settlements: readonly Settlement[]): SettleBatch[] {
    const { complete, completeWithResults, fail, release } = this.#sql;
    const batches = new Map<Statement, BatchEntry[]>();
    const add = (statement: Statement, entry: BatchEntry) => {
      const entries = batches.get(statement);
      if (entries) entries.push(entry);
      else batches.set(statement, [entry]);
    };
    for (const { claim, outcome } of settlements) {
      const { key, token } = claim;
      switch (outcome.kind) {
        case "done":
          if (outcome.result) add(completeWithResults, [key, token, this.#encodeResult(outcome.result)]);
          else add(complete, [key, token]);
          break;
        case "retry":
          add(fail, [key, token, this.#delayMs(claim, outcome.delayMs), errorText(outcome.reason), false]);
          break;
        case "failed":
          add(fail, [key, token, 0, errorText(outcome.reason), true]);
          break;
        case "released":
          add(release, [key, token, outcome.delayMs ?? 0]);
          break;
        default:
          outcome satisfies never;
      }
    }
    return [...batches].map(([statement, entries]) => ({ statement, entries }));
  }

  #delayMs(claim: Claim<object>, delayMs: number | undefined): number {
    return delayMs ?? this.queue.retry.delayMs(claim.attempt, Math.random);
  }

  #encodeResult(result: Row): string {
    for (const name of Object.keys(result)) {
      if (!this.queue.results.includes(name)) {
        throw new QuarryError("invalid_input", `queue ${this.queue.name} declares no result column ${name}`);
      }
    }
    const encode = (value: unknown) =>
      JSON.stringify(value, (_name, item) => encodeValue(this.database, item));
    const json = encode(result);
    return isStorable(json) ? json : encode(cleanValue(result));
  }

  /** Rows that this very token settled before: every other transition raises the token. */
  async #findSettled(settlements: readonly Settlement[], statuses: Map<Key, string>): Promise<void> {
    const missing = settlements.filter(({ claim }) => !statuses.has(claim.key));
    if (missing.length === 0) return;
    const keys = missing.map(({ claim }) => claim.key);
    const rows = await this.database.query(this.#sql.lookUp, [this.database.dialect.keys(keys)]);
    const found = new Map(rows.map((row) => [row[KEY] as Key, row]));
    for (const { claim } of missing) {
      const row = found.get(claim.key);
      const isOurs = row && Number(row[TOKEN]) === claim.token && row[STATUS] !== this.queue.statuses.running;
      if (isOurs) statuses.set(claim.key, String(row[STATUS]));
    }
  }

  #verdict({ claim, outcome }: Settlement, statuses: ReadonlyMap<Key, string>): Verdict {
    const status = statuses.get(claim.key);
    if (status === undefined) return "lost";
    switch (outcome.kind) {
      case "done":
      case "failed":
      case "released":
        return outcome.kind;
      case "retry": {
        const { failed, retrying } = this.queue.statuses;
        if (failed !== retrying) return status === failed ? "failed" : "retrying";
        return claim.attempt >= claim.attemptsMax ? "failed" : "retrying";
      }
      default:
        return outcome satisfies never;
    }
  }

  #wake(settlements: readonly Settlement[]): void {
    const kinds = new Set<Outcome["kind"]>(settlements.map(({ outcome }) => outcome.kind));
    if (kinds.has("done")) for (const name of this.queue.wakes) this.database.notify(name);
    if (kinds.has("released") || kinds.has("retry")) this.database.notify(this.queue.name);
  }

  async release(claims: readonly Claim<object>[], options: { delayMs?: number } = {}): Promise<number> {
    const outcome: Outcome = { kind: "released", ...options };
    const verdicts = await this.settle(claims.map((claim) => ({ claim, outcome })));
    return verdicts.filter((verdict) => verdict === "released").length;
  }

  async rescueStale({ limit = SWEEP_LIMIT } = {}): Promise<Rescued[]> {
    const rows = await this.#write(this.#sql.rescue, [this.database.now(), limit]);
    if (rows.length > 0) this.database.notify(this.queue.name);
    return rows.map((row) => ({
      key: row[KEY] as Key,
      isFailed: row[STATUS] === this.queue.statuses.failed,
    }));
  }

  async promoteDelayed({ limit = SWEEP_LIMIT } = {}): Promise<number> {
    const rows = await this.database.query(this.#sql.promote, [this.database.now(), limit]);
    if (rows.length > 0) this.database.notify(this.queue.name);
    return rows.length;
  }

  async nextDueMs(): Promise<number | undefined> {
    const [row] = await this.database.query(this.#sql.nextDue, [this.database.now()]);
    return row && Math.max(0, Math.round(Number(row.wait_ms)));
  }

  async cancel(keys: readonly Key[]): Promise<Map<Key, CancelVerdict>> {
    const { dialect } = this.database;
    const before = new Map<Key, string>();
    for (const row of await this.database.query(this.#sql.lookUp, [dialect.keys(keys)])) {
      before.set(row[KEY] as Key, String(row[STATUS]));
    }
    const rows = await this.#write(this.#sql.cancel, [this.database.now(), dialect.keys(keys)]);
    const gone = new Set(rows.map((row) => row[KEY] as Key));
    if (gone.size > 0) this.database.notify(cancelTopic(this.queue));
    return new Map(
      keys.map((key) => {
        const status = before.get(key);
        if (gone.has(key)) return [key, status === this.queue.statuses.running ? "aborted" : "cancelled"];
        return [key, status === undefined ? "not_found" : "too_late"];
      }),
    );
  }

  async retry(keys: readonly Key[], options: RetryOptions = {}): Promise<Key[]> {
    if (keys.length === 0) return [];
    const { dialect } = this.database;
    const includeDone =
      dialect.name === "postgres" ? (options.includeDone ?? false) : Number(options.includeDone ?? false);
    const rows = await this.#write(this.#sql.retry, [this.database.now(), dialect.keys(keys), includeDone]);
    if (rows.length > 0) this.database.notify(this.queue.name);
    return rows.map((row) => row[KEY] as Key);
  }

  async retryWhere(filter: QueueFilter, options: RetryOptions = {}): Promise<number> {
    let retried = 0;
    let after: string | undefined;
    do {
      const page = await this.list({ ...filter, limit: SWEEP_LIMIT, ...(after !== undefined && { after }) });
      retried += (
        await this.retry(
          page.rows.map((row) => row.key),
          options,
        )
      ).length;
      after = page.next;
    } while (after !== undefined);
    return retried;
  }

  async prune({ doneOlderThanMs, failedOlderThanMs, limit = SWEEP_LIMIT }: PruneOptions): Promise<number> {
    const ages = [
      [this.#sql.pruneDone, doneOlderThanMs],
      [this.#sql.pruneFailed, failedOlderThanMs],
    ] as const;
    let pruned = 0;
    for (const [statement, ageMs] of ages) {
      if (ageMs === undefined) continue;
      if (!this.queue.columns.finishedAt) {
        throw new QuarryError(
          "invalid_input",
          `queue ${this.queue.name} has no finishedAt column, so it cannot tell a row's age`,
        );
      }
      pruned += (await this.#write(statement, [this.database.now(), ageMs, limit])).length;
    }
    return pruned;
  }

  countByStatus(filter: QueueFilter = {}): Promise<Map<string, number>> {
    return countRows(this.database, this.queue, filter);
  }

  list(options: ListOptions = {}): Promise<QueuePage> {
    return listRows(this.database, this.queue, options);
  }

  async repair({ limit = SWEEP_LIMIT } = {}): Promise<number> {
    const parents = (await this.#rollUp?.repair(this.database, limit)) ?? 0;
    const turns = (await this.#turns?.sweep(this.database)) ?? 0;
    if (turns > 0) this.database.notify(this.queue.name);
    return parents + turns;
  }

  /** A write that parents and groups have to follow. */
  async #write(statement: Statement, params: readonly unknown[]): Promise<Row[]> {
    if (!this.#rollUp) {
      const rows = await this.database.query(statement, params);
      await this.#afterwards(rows);
      return rows;
    }
    return this.database.transaction(async (transaction) => {
      const rows = await transaction.query(statement, params);
      await this.#follow(transaction, rows);
      return rows;
    });
  }

  async #follow(transaction: Transaction, rows: readonly Row[]): Promise<void> {
    await this.#rollUp?.follow(
      transaction,
      rows.map((row) => row[PARENT]),
    );
    if (this.#turns && rows.length > 0) transaction.afterCommit(() => this.#afterwards(rows));
  }

  /** What was written stands, whatever happens here; the janitor passes a turn that was not passed. */
  async #afterwards(rows: readonly Row[]): Promise<void> {
    if (!this.#turns || rows.length === 0) return;
    const given = await this.#turns.pass(this.database, rows).catch(() => 0);
    if (given > 0) this.database.notify(this.queue.name);
  }
}

interface SettleBatch {
  readonly statement: Statement;
  readonly entries: readonly BatchEntry[];
}

/** Workers look at their claims when something was cancelled, instead of at their next heartbeat. */
export function cancelTopic(queue: { readonly name: string }): string {
  return `${queue.name}!`;
}
