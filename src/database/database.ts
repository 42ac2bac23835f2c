import { AsyncLocalStorage } from "node:async_hooks";
import type { Clock } from "../clock.ts";
import { QuarryError } from "../errors.ts";
import type { Dialect } from "./dialect.ts";

export type Row = Record<string, unknown>;

/** SQL that never changes. It is prepared once per connection under its name. */
export interface Statement {
  readonly name: string;
  readonly sql: string;
  /** Must not wait behind the transactions of handlers: heartbeats depend on nothing else. */
  readonly isUrgent?: boolean;
}

/** Where SQL can be run: a database, or one transaction of it. */
export interface Session {
  query<T extends Row = Row>(statement: Statement | string, params?: readonly unknown[]): Promise<T[]>;
}

export interface Transaction extends Session {
  /** Work that needs the commit to be visible to others. Its failure does not undo anything. */
  afterCommit(work: () => Promise<unknown> | unknown): void;
}

export interface Database extends Session {
  readonly dialect: Dialect;
  /** What statements take as "now" (their first parameter): null lets PostgreSQL use its own clock. */
  readonly now: () => string | null;
  readonly clock: Clock;

  /**
   * Runs `work` in one transaction. A deadlock or a serialization failure runs it again, a bounded number of
   * times; a COMMIT whose answer is lost is never repeated and throws `commit_unknown`.
   */
  transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T>;

  /** Tells other processes that something happened on a topic. Throttled, best effort, never awaited. */
  notify(topic: string, options?: { isSent: boolean }): void;
  /**
   * For a statement that makes something happen on a topic: a scalar sub-select that notifies with its commit and
   * saves a round trip, or undefined when no notification is due. `notify` with `isSent` follows.
   */
  notice(topic: string): string | undefined;
  /** Calls `listener` when a topic was notified, here or elsewhere. A hint: polling is the truth. */
  subscribe(topic: string, listener: () => void): () => void;

  close(): Promise<void>;
}

/** Runs what was left for after the commit; each piece may fail on its own. */
export async function runAfterCommit(
  works: readonly (() => Promise<unknown> | unknown)[],
  onError: (error: unknown) => void,
): Promise<void> {
  for (const work of works) {
    try {
      await work();
    } catch (error) {
      onError(error);
    }
  }
}

/**
 * Knows whether code runs inside a transaction. Asking the database itself from in there would wait for ever on
 * SQLite and escape the transaction on PostgreSQL, so both refuse it.
 */
export class TransactionScope {
  readonly #storage = new AsyncLocalStorage<boolean>();

  run<T>(work: () => Promise<T>): Promise<T> {
    return this.#storage.run(true, work);
  }

  refuseInside(): void {
    if (!this.#storage.getStore()) return;
    throw new QuarryError(
      "invalid_input",
      "the database was asked inside one of its own transactions: use the transaction that was handed over (or queue.within(transaction))",
    );
  }
}
