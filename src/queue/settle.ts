import type { Database, Row, Statement, Transaction } from "../database/database.ts";
import type { BatchEntry } from "../database/dialect.ts";
import type { Queue } from "./declaration.ts";
import type { Followers } from "./followers.ts";
import type { SettleOptions } from "./lane-store.ts";
import type { Claim, Outcome, Settlement, Verdict } from "./outcome.ts";
import { type ResultBatch, Results } from "./results.ts";
import type { Key } from "./roll-up.ts";
import { KEY, type QueueStatements, STATUS, TOKEN } from "./statements.ts";
import { errorText } from "./text.ts";

interface SettleBatch {
  readonly statement: Statement;
  /** The same without saying which rows, where they can be counted afterwards. */
  readonly unnamed?: Statement | undefined;
  readonly entries: readonly BatchEntry[];
  /** What comes after "now". */
  params(): unknown[];
}

const NOTHING: Row = Object.freeze({});

interface SettlerParts {
  readonly database: Database;
  readonly queue: Queue;
  readonly statements: QueueStatements;
  readonly followers: Followers;
}

/** Writes down what became of claims: one statement per kind of outcome, all in one transaction. */
export class Settler {
  readonly #database: Database;
  readonly #queue: Queue;
  readonly #sql: QueueStatements;
  readonly #followers: Followers;
  readonly #results: Results;

  constructor(parts: SettlerParts) {
    this.#database = parts.database;
    this.#queue = parts.queue;
    this.#sql = parts.statements;
    this.#followers = parts.followers;
    this.#results = new Results(parts.database, parts.queue);
  }

  async settle(settlements: readonly Settlement[], options: SettleOptions = {}): Promise<Verdict[]> {
    if (settlements.length === 0) return [];
    if (new Set(settlements.map(({ claim }) => claim.key)).size < settlements.length) {
      return this.#settleOneByOne(settlements, options);
    }
    const alone = settlements.filter(({ outcome }) => outcome.kind === "done" && outcome.also);
    const together =
      alone.length === 0 ? settlements : settlements.filter((settlement) => !alone.includes(settlement));
    const statuses = new Map<Key, string>();
    const note = (rows: readonly Row[]) => {
      for (const row of rows) statuses.set(row[KEY] as Key, String(row[STATUS]));
    };
    const batches = this.#batchesOf(together);
    const [only] = batches;
    if (only && batches.length === 1) {
      if (await this.#completedAll(only)) {
        for (const [key] of only.entries) statuses.set(key, this.#queue.statuses.done);
      } else note(await this.#followers.write(only.statement, this.#paramsOf(only)));
    } else if (batches.length > 1) {
      note(await this.#database.transaction((transaction) => this.#settleBatches(transaction, batches)));
    }
    for (const rows of await allEnded(alone.map((settlement) => this.#settleWithEffects(settlement))))
      note(rows);
    if (options.isRepeat) await this.#findSettled(settlements, statuses);
    this.#wake(settlements);
    return settlements.map((settlement) => this.#verdict(settlement, statuses));
  }

  /**
   * Naming every completed row takes SQLite a third of the settlement; counting them is free. Only when the count
   * is short, because a lease was lost, is it undone and done again by name.
   */
  async #completedAll(batch: SettleBatch): Promise<boolean> {
    const { unnamed, entries } = batch;
    if (!unnamed) return false;
    const isShort = new Error("some leases were lost");
    try {
      await this.#database.transaction(async (transaction) => {
        await transaction.query(unnamed, this.#paramsOf(batch));
        const [row] = await transaction.query("select changes() as count");
        if (row!.count !== entries.length) throw isShort;
      });
    } catch (error) {
      if (error === isShort) return false;
      throw error;
    }
    await this.#followers.passTurnsOf(entries.map(([key]) => key));
    return true;
  }

  /** A stale and a fresh claim of one row must not share a batch, which is keyed by row. */
  async #settleOneByOne(settlements: readonly Settlement[], options: SettleOptions): Promise<Verdict[]> {
    const verdicts: Verdict[] = [];
    for (const settlement of settlements) verdicts.push(...(await this.settle([settlement], options)));
    return verdicts;
  }

  async #settleBatches(
    transaction: Transaction,
    batches: readonly SettleBatch[],
    also?: (transaction: Transaction) => Promise<void>,
  ): Promise<Row[]> {
    const rows: Row[] = [];
    for (const batch of batches)
      rows.push(...(await transaction.query(batch.statement, this.#paramsOf(batch))));
    if (rows.length > 0) await also?.(transaction);
    await this.#followers.follow(transaction, rows);
    return rows;
  }

  /** The row is settled first: when its lease is lost, the effects are not written. */
  #settleWithEffects(settlement: Settlement): Promise<Row[]> {
    const { outcome } = settlement;
    const also = outcome.kind === "done" ? outcome.also : undefined;
    return this.#database.transaction((transaction) =>
      this.#settleBatches(transaction, this.#batchesOf([settlement]), also),
    );
  }

  #paramsOf(batch: SettleBatch): unknown[] {
    return [this.#database.now(), ...batch.params()];
  }

  #batchesOf(settlements: readonly Settlement[]): SettleBatch[] {
    const { complete, completeUnnamed, fail, release } = this.#sql;
    const { tokenParams, batchParams } = this.#database.dialect;
    const batches = new Map<Statement, BatchEntry[]>();
    const add = (statement: Statement, entry: BatchEntry) => {
      const entries = batches.get(statement);
      if (entries) entries.push(entry);
      else batches.set(statement, [entry]);
    };
    const completed = new Map<string, ResultBatch>();
    const addResult = (claim: Claim<object>, result: Row) => {
      const columns = this.#results.columnsOf(result);
      if (columns.length === 0) return add(complete, [claim.key, claim.token]);
      const shape = columns.join(",");
      const batch = completed.get(shape) ?? this.#results.batchOf(columns);
      completed.set(shape, batch);
      batch.add(claim, result);
    };
    for (const { claim, outcome } of settlements) {
      const { key, token } = claim;
      switch (outcome.kind) {
        case "done":
          addResult(claim, outcome.result ?? NOTHING);
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
    const encoded = [...batches].map(([statement, entries]) => ({
      statement,
      unnamed: statement === complete ? completeUnnamed : undefined,
      entries,
      params: () => (statement === complete ? tokenParams(entries) : batchParams(entries)),
    }));
    return [...encoded, ...completed.values()];
  }

  #delayMs(claim: Claim<object>, delayMs: number | undefined): number {
    return delayMs ?? this.#queue.retry.delayMs(claim.attempt, Math.random);
  }

  /** Rows that this very token settled before: every other transition raises the token. */
  async #findSettled(settlements: readonly Settlement[], statuses: Map<Key, string>): Promise<void> {
    const missing = settlements.filter(({ claim }) => !statuses.has(claim.key));
    if (missing.length === 0) return;
    const keys = missing.map(({ claim }) => claim.key);
    const rows = await this.#database.query(this.#sql.lookUp, [this.#database.dialect.keys(keys)]);
    const found = new Map(rows.map((row) => [row[KEY] as Key, row]));
    for (const { claim, outcome } of missing) {
      const row = found.get(claim.key);
      const isOurs =
        row &&
        Number(row[TOKEN]) === claim.token &&
        // Another outcome than this one may have been written with the same token.
        (outcome.kind === "done"
          ? row[STATUS] === this.#queue.statuses.done
          : row[STATUS] !== this.#queue.statuses.running);
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
        const { failed, retrying } = this.#queue.statuses;
        if (failed !== retrying) return status === failed ? "failed" : "retrying";
        return claim.attempt >= claim.attemptsMax ? "failed" : "retrying";
      }
      default:
        return outcome satisfies never;
    }
  }

  #wake(settlements: readonly Settlement[]): void {
    const kinds = new Set<Outcome["kind"]>(settlements.map(({ outcome }) => outcome.kind));
    if (kinds.has("done") || kinds.has("released"))
      for (const name of this.#queue.wakes) this.#database.notify(name);
    if (kinds.has("released") || kinds.has("retry")) this.#database.notify(this.#queue.name);
  }
}

/** Throws like `Promise.all`, but not before the last has ended: whoever tries again then is alone. */
async function allEnded<T>(works: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(works);
  return Promise.all(works);
}
