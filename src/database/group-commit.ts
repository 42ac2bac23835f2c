import type { Clock } from "../clock.ts";

/** The one connection that all of a process's work goes through. */
export interface Connection {
  run(sql: string): unknown;
  /** Waits for another process that is writing. */
  begin(): Promise<void>;
  /** False too when SQLite itself has rolled back everything, as it may on a full disk. */
  isTransaction(): boolean;
}

/**
 * - `alone`: outside of any transaction.
 * - `reader`, `statement`: as it comes, inside or outside.
 * - `writer`: inside a transaction, undone when it fails.
 */
export type Manner = "alone" | "reader" | "statement" | "writer";

interface Turn {
  readonly manner: Manner;
  work(): Promise<unknown>;
  succeed(): void;
  fail(error: unknown): void;
}

/** How long others may join: other processes wait for the lock. */
const TURNS_MAX = 64;
const OPEN_MAX_MS = 10;
/** Where nobody came to share the last commit, only one in so many waits for company. */
const HOPE_EVERY = 8;

/**
 * Callers take turns, and none sees another's open transaction. Writers that come in one turn of the event loop share
 * a transaction, because what a commit costs is the wait for the disk. Nobody hears what became of it, or reads it,
 * before the commit.
 */
export class GroupCommit {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #waiting: Turn[] = [];
  #end: Promise<void> = Promise.resolve();
  #isRunning = false;
  #lonely = 0;

  constructor(connection: Connection, clock: Clock) {
    this.#connection = connection;
    this.#clock = clock;
  }

  inTurn<T>(manner: Manner, work: () => Promise<T>): Promise<T> {
    const start = Promise.withResolvers<void>();
    const end = Promise.withResolvers<void>();
    // Chained here, so that it runs in the caller's asynchronous context.
    const worked = start.promise.then(work);
    this.#waiting.push({
      manner,
      work: () => {
        start.resolve();
        return worked;
      },
      succeed: end.resolve,
      fail: end.reject,
    });
    if (!this.#isRunning) this.#end = this.#run();
    return end.promise.then(() => worked);
  }

  /** When all who wait have had their turn. */
  settled(): Promise<void> {
    return this.#end;
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    for (let turn = this.#waiting.shift(); turn; turn = this.#waiting.shift()) {
      // Whoever comes after a rollback that failed is told so by the next begin.
      if (this.#opensGroup(turn)) await this.#group(turn).catch(() => undefined);
      else await turn.work().then(turn.succeed, turn.fail);
    }
    this.#isRunning = false;
  }

  /** A statement that nobody would join commits by itself, which is cheaper. */
  #opensGroup({ manner }: Turn): boolean {
    if (manner !== "statement") return manner === "writer";
    if (this.#waiting.length > 0 || this.#isHopeful) return true;
    this.#lonely++;
    return false;
  }

  get #isHopeful(): boolean {
    return this.#lonely % HOPE_EVERY === 0;
  }

  async #group(first: Turn): Promise<void> {
    const members = [first];
    const failures = new Map<Turn, unknown>();
    try {
      // Not with the lock in hand: other processes wait for it.
      if (this.#isHopeful) await nextTurnOfTheLoop();
      await this.#connection.begin();
      const begunAt = this.#clock.monotonic();
      await first.work();
      const isShort = () => members.length < TURNS_MAX && this.#clock.monotonic() - begunAt < OPEN_MAX_MS;
      while (isShort() && this.#isJoined()) {
        const next = this.#waiting.shift()!;
        members.push(next);
        await this.#join(next, failures);
      }
      this.#lonely = members.length > 1 ? 0 : this.#lonely + 1;
      this.#connection.run("commit");
    } catch (error) {
      for (const member of members) member.fail(error);
      if (this.#connection.isTransaction()) this.#connection.run("rollback");
      return;
    }
    for (const member of members)
      if (failures.has(member)) member.fail(failures.get(member));
      else member.succeed();
  }

  #isJoined(): boolean {
    const next = this.#waiting[0];
    return next !== undefined && next.manner !== "alone";
  }

  /** One that fails leaves the others unharmed. */
  async #join(turn: Turn, failures: Map<Turn, unknown>): Promise<void> {
    const { run, isTransaction } = this.#connection;
    try {
      run("savepoint turn");
      await turn.work();
      run("release turn");
    } catch (error) {
      // Everybody's work is lost.
      if (!isTransaction()) throw error;
      failures.set(turn, error);
      run("rollback to turn");
      run("release turn");
    }
  }
}

function nextTurnOfTheLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
