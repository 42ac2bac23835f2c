import type { Database, Row, Statement, Transaction } from "../database/database.ts";
import { type BatchEntry, Json } from "../database/dialect.ts";
import { QuarryError } from "../errors.ts";
import type { Queue } from "./declaration.ts";
import { stringify } from "./enqueue.ts";
import type { Followers } from "./followers.ts";
import type { SettleOptions } from "./lane-store.ts";
import type { Claim, Outcome, Settlement, Verdict } from "./outcome.ts";
import type { Key } from "./roll-up.ts";
import { KEY, type QueueStatements, STATUS, TOKEN } from "./statements.ts";
import { cleanValue, errorText, isStorable } from "./text.ts";

interface SettleBatch {
  readonly statement: Statement;
  readonly entries: readonly BatchEntry[];
}

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

  constructor(parts: SettlerParts) {
    this.#database = parts.database;
    this.#queue = parts.queue;
    this.#sql = parts.statements;
    this.#followers = parts.followers;
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
    for (const settlement of alone) note(await this.#settleWithEffects(settlement));
    if (options.isRepeat) await this.#findSettled(settlements, statuses);
    this.#wake(settlements);
    return settlements.map((settlement) => this.#verdict(settlement, statuses));
  }

  /**
   * Naming every completed row takes SQLite a third of the settlement; counting them is free. Only when the count
   * is short, because a lease was lost, is it undone and done again by name.
   */
  async #completedAll({ statement, entries }: SettleBatch): Promise<boolean> {
    const { complete, completeUnnamed } = this.#sql;
    if (statement !== complete || !completeUnnamed) return false;
    const isShort = new Error("some leases were lost");
    try {
      await this.#database.transaction(async (transaction) => {
        await transaction.query(completeUnnamed, this.#paramsOf({ statement, entries }));
        const [row] = await transaction.query("select changes() as count");
        if (row!.count !== entries.length) throw isShort;
      });
      return true;
    } catch (error) {
      if (error === isShort) return false;
      throw error;
    }
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
    const { dialect } = this.#database;
    const encode = batch.statement === this.#sql.complete ? dialect.tokenParams : dialect.batchParams;
    return [this.#database.now(), ...encode(batch.entries)];
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
    return delayMs ?? this.#queue.retry.delayMs(claim.attempt, Math.random);
  }

  #encodeResult(result: Row): Json {
    for (const name of Object.keys(result)) {
      if (!this.#queue.results.includes(name)) {
        throw new QuarryError("invalid_input", `queue ${this.#queue.name} declares no result column ${name}`);
      }
    }
    const json = stringify(this.#database, result);
    return new Json(isStorable(json) ? json : stringify(this.#database, cleanValue(result)));
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
