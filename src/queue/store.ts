import type { Clock } from "../clock.ts";
import type { Database, Row, Session, Transaction } from "../database/database.ts";
import type { BatchEntry } from "../database/dialect.ts";
import { isQuarryError, messageOf, QuarryError } from "../errors.ts";
import type { Queue } from "./declaration.ts";
import { type Enqueued, type EnqueueOptions, Inserter, type Inserts } from "./enqueue.ts";
import { Followers } from "./followers.ts";
import {
  CLAIM_MAX,
  type ClaimOptions,
  type LaneListeners,
  type LaneStore,
  type PruneOptions,
  type Rescued,
  type SettleOptions,
} from "./lane-store.ts";
import {
  countRows,
  type ListOptions,
  listRows,
  type QueueFilter,
  type QueuePage,
  readValue,
} from "./list.ts";
import type { Claim, Outcome, Settlement, Ticket, Verdict } from "./outcome.ts";
import type { Key } from "./roll-up.ts";
import { Settler } from "./settle.ts";
import {
  ATTEMPT,
  ATTEMPTS_MAX,
  compileQueue,
  KEY,
  type QueueStatements,
  STATUS,
  TOKEN,
} from "./statements.ts";

/** Every operation on a queue over a table. Each is one transaction, parents included. */
export interface QueueStore<Payload extends object = Record<string, unknown>> extends LaneStore<Payload> {
  readonly database: Database;

  enqueue(rows: readonly object[], options?: EnqueueOptions): Promise<Enqueued[]>;
  /** The claims that keys and tokens stand for, without their rows; those that were lost are not there. Only reads. */
  findHeld(tickets: readonly Ticket[]): Promise<Map<Key, Claim<object>>>;
  /** Waiting rows go away, running ones are taken from their worker, finished ones are too late. */
  cancel(keys: readonly Key[]): Promise<Map<Key, CancelVerdict>>;
  /** Makes stopped rows claimable with fresh counters. Returns the keys that were. */
  retry(keys: readonly Key[], options?: RetryOptions): Promise<Key[]>;
  retryWhere(filter: QueueFilter, options?: RetryOptions): Promise<number>;

  countByStatus(filter?: QueueFilter): Promise<Map<string, number>>;
  list(options?: ListOptions): Promise<QueuePage>;

  /** The same queue inside a transaction of the caller's: rows are enqueued with it or not at all. */
  within(transaction: Transaction): Pick<QueueStore<Payload>, "enqueue">;
}

export type CancelVerdict = "cancelled" | "aborted" | "too_late" | "not_found";

export interface RetryOptions {
  /** Also run completed rows once more. */
  readonly includeDone?: boolean;
}

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
  readonly #inserter: Inserter;
  readonly #followers: Followers;
  readonly #settler: Settler;

  constructor(database: Database, queue: Queue) {
    this.database = database;
    this.queue = queue;
    this.#sql = compileQueue(queue, database.dialect);
    this.#inserter = new Inserter(database, queue);
    this.#followers = new Followers(database, queue);
    this.#settler = new Settler({ database, queue, statements: this.#sql, followers: this.#followers });
  }

  get clock(): Clock {
    return this.database.clock;
  }

  subscribe({ onWork, onCancel }: LaneListeners): () => void {
    const subscriptions = [
      this.database.subscribe(this.queue.name, onWork),
      this.database.subscribe(cancelTopic(this.queue), onCancel),
    ];
    return () => {
      for (const unsubscribe of subscriptions) unsubscribe();
    };
  }

  async enqueue(rows: readonly object[], options: EnqueueOptions = {}): Promise<Enqueued[]> {
    const inserts = this.#inserter.plan(rows);
    if (inserts.length === 0) return [];
    if (inserts.length > 1 || this.#followers.needTransaction) {
      return this.database.transaction((transaction) => this.#insert(transaction, inserts, options));
    }
    const notice = this.database.notice(this.queue.name);
    const { enqueued, written } = await this.#insertAlone(inserts, options, notice);
    await this.#followers.passTurns(written);
    this.database.notify(this.queue.name, { isSent: notice !== undefined });
    return enqueued;
  }

  /** Another process may begin a group at the same moment. The index refuses the second, who then gets in line. */
  async #insertAlone(inserts: Inserts, options: EnqueueOptions, notice: string | undefined) {
    const insert = (takesTurns: boolean) =>
      this.#inserter.run(this.database, inserts, options, { notice, takesTurns });
    if (!this.queue.group) return insert(false);
    return insert(true).catch((error) => {
      if (isQuarryError(error, "constraint_violated")) return insert(false);
      throw error;
    });
  }

  async #insert(transaction: Transaction, inserts: Inserts, options: EnqueueOptions): Promise<Enqueued[]> {
    const { enqueued, written } = await this.#inserter.run(transaction, inserts, options);
    await this.#followers.follow(transaction, written);
    transaction.afterCommit(() => this.database.notify(this.queue.name));
    return enqueued;
  }

  within(transaction: Transaction): Pick<QueueStore<object>, "enqueue"> {
    return {
      enqueue: (rows, options = {}) => this.#insert(transaction, this.#inserter.plan(rows), options),
    };
  }

  async claim({ worker, limit, isExpected = false }: ClaimOptions): Promise<Claim<object>[]> {
    if (!(Number.isInteger(limit) && limit >= 1 && limit <= CLAIM_MAX)) {
      throw new QuarryError("invalid_input", `a claim takes 1 to ${CLAIM_MAX} rows, not ${limit}`);
    }
    const rows = await this.#take({ worker, limit, isExpected });
    const claims: Claim<object>[] = [];
    const unreadable: Settlement[] = [];
    for (const row of rows) {
      const claim = this.#toClaim(row);
      try {
        for (const name of this.queue.reads)
          claim.row[name] = readValue(this.queue, name, row[name], this.#isText);
        claims.push(claim);
      } catch (error) {
        unreadable.push({
          claim,
          outcome: { kind: "failed", reason: `the row cannot be read: ${messageOf(error)}` },
        });
      }
    }
    // One row that nobody can read must not keep the others from being worked.
    if (unreadable.length > 0) await this.settle(unreadable);
    return claims;
  }

  async #take({ worker, limit, isExpected }: Required<ClaimOptions>): Promise<Row[]> {
    if (!this.#sql.mark && !this.#followers.needTransaction) return this.#pick(this.database, worker, limit);
    // A look costs no lock: workers with nothing to do leave SQLite's one writer alone.
    if (this.#sql.mark && !isExpected && (await this.database.query(this.#sql.pick, [1])).length === 0)
      return [];
    return this.database.transaction(async (transaction) => {
      const rows = await this.#pick(transaction, worker, limit);
      await this.#followers.moveParents(transaction, rows);
      return rows;
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

  #toClaim(row: Row): Claim<Row> {
    return {
      key: row[KEY] as Key,
      token: Number(row[TOKEN]),
      attempt: Number(row[ATTEMPT]),
      attemptsMax: Number(row[ATTEMPTS_MAX]),
      row: {},
    };
  }

  get #isText(): boolean {
    return this.database.dialect.name === "sqlite";
  }

  async extend(claims: readonly Claim<object>[]): Promise<Set<Key>> {
    if (claims.length === 0) return new Set();
    const batch = claims.map((claim): BatchEntry => [claim.key, claim.token]);
    const params = [this.database.now(), this.queue.lease.ms, ...this.database.dialect.tokenParams(batch)];
    const rows = await this.database.query(this.#sql.extend, params);
    return new Set(rows.map((row) => row[KEY] as Key));
  }

  async stillHeld(claims: readonly Ticket[]): Promise<Set<Key>> {
    return new Set((await this.findHeld(claims)).keys());
  }

  async findHeld(tickets: readonly Ticket[]): Promise<Map<Key, Claim<object>>> {
    const tokens = new Map(tickets.map(({ key, token }) => [key, token]));
    const rows = await this.database.query(this.#sql.lookUp, [
      this.database.dialect.keys([...tokens.keys()]),
    ]);
    const isHeld = (row: Row) =>
      row[STATUS] === this.queue.statuses.running && Number(row[TOKEN]) === tokens.get(row[KEY] as Key);
    const { count } = this.queue.attempts;
    const claims = rows.filter(isHeld).map((row) => {
      const claim = this.#toClaim(row);
      return { ...claim, attempt: count === "claims" ? claim.attempt : claim.attempt + 1 };
    });
    return new Map(claims.map((claim) => [claim.key, claim]));
  }

  settle(settlements: readonly Settlement[], options: SettleOptions = {}): Promise<Verdict[]> {
    return this.#settler.settle(settlements, options);
  }

  async release(claims: readonly Claim<object>[], options: { delayMs?: number } = {}): Promise<number> {
    const outcome: Outcome = { kind: "released", ...options };
    const verdicts = await this.settle(claims.map((claim) => ({ claim, outcome })));
    return verdicts.filter((verdict) => verdict === "released").length;
  }

  async rescueStale({ limit = SWEEP_LIMIT } = {}): Promise<Rescued[]> {
    const { rescue, rescueUnheld } = this.#sql;
    const rows = await this.#followers.write(rescue, [this.database.now(), limit]);
    if (rescueUnheld && rows.length < limit)
      rows.push(...(await this.#followers.write(rescueUnheld, [this.database.now(), limit - rows.length])));
    if (rows.length > 0) this.database.notify(this.queue.name);
    return rows.map((row) => ({
      key: row[KEY] as Key,
      isFailed: row[STATUS] === this.queue.statuses.failed,
    }));
  }

  async expireLeases(workers: readonly string[]): Promise<number> {
    if (!this.#sql.expire || workers.length === 0) return 0;
    const params = [this.database.now(), this.database.dialect.keys(workers)];
    return (await this.database.query(this.#sql.expire, params)).length;
  }

  async promoteDelayed({ limit = SWEEP_LIMIT } = {}): Promise<number> {
    const rows = await this.database.query(this.#sql.promote, [this.database.now(), limit]);
    await this.#followers.passTurns(rows);
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
    const rows = await this.#followers.write(this.#sql.cancel, [this.database.now(), dialect.keys(keys)]);
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
    const rows = await this.#followers.write(this.#sql.retry, [
      this.database.now(),
      dialect.keys(keys),
      includeDone,
    ]);
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
      pruned += (await this.#followers.write(statement, [this.database.now(), ageMs, limit])).length;
    }
    return pruned;
  }

  countByStatus(filter: QueueFilter = {}): Promise<Map<string, number>> {
    return countRows(this.database, this.queue, filter);
  }

  list(options: ListOptions = {}): Promise<QueuePage> {
    return listRows(this.database, this.queue, options);
  }

  /** Re-derives parents and passes stranded turns. */
  async repair({ limit = SWEEP_LIMIT } = {}): Promise<number> {
    return this.#followers.repair(limit);
  }
}

/** Workers look at their claims when something was cancelled, instead of at their next heartbeat. */
export function cancelTopic(queue: { readonly name: string }): string {
  return `${queue.name}!`;
}
