import { mkdirSync, statfsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { type Clock, isoTime, pause, systemClock } from "../clock.ts";
import { isQuarryError, messageOf, QuarryError } from "../errors.ts";
import {
  type Database,
  type Row,
  runAfterCommit,
  type Statement,
  type Transaction,
  TransactionScope,
} from "./database.ts";
import { sqliteDialect } from "./dialect.ts";
import { GroupCommit, type Manner } from "./group-commit.ts";
import { Topics } from "./topics.ts";

export interface SqliteSettings {
  /** A file, or ":memory:". */
  readonly path: string;
  /** FULL survives power loss; NORMAL may lose the last commits then, never the database. */
  readonly synchronous?: "full" | "normal";
  /** How long a writer waits for another process's write lock. */
  readonly busyTimeoutMs?: number;
  readonly clock?: Clock;
  /** How often another process's commits are looked for, as a wake-up. */
  readonly watchEveryMs?: number;
  readonly onError?: (error: unknown) => void;
}

/** Older ones can lose a WAL reset (fixed in 3.51.3). */
export const SQLITE_VERSION_MIN = "3.51.3";
const STATEMENTS_CACHED_MAX = 256;
/** Pages that are in use at once. Indexes by hash are all over the place: with the default of 2 MB they are read again and again. */
const CACHE_KB = 16_000;
/** The log is moved into the database when it has so many pages of 4 kB. With the default of 1,000 the same pages are written again and again. */
const LOG_PAGES = 4_000;
/** The driver waits in the thread itself, so it waits in slices and lets the process breathe in between. */
const BUSY_SLICE_MS = 20;
const SWITCHES_MAX = 500;
const SQLITE_BUSY = 5;

export function openSqlite(settings: SqliteSettings): Database {
  checkSqliteVersion(process.versions.sqlite ?? "unknown");
  const isMemory = settings.path === ":memory:";
  if (!isMemory) prepareFolder(settings.path);
  return new SqliteDatabase(settings, isMemory);
}

export function checkSqliteVersion(version: string): void {
  const parts = (text: string) => text.split(".").map(Number);
  const [have, need] = [parts(version), parts(SQLITE_VERSION_MIN)];
  for (let i = 0; i < need.length; i++) {
    if ((have[i] ?? 0) > need[i]!) return;
    if ((have[i] ?? 0) < need[i]! || Number.isNaN(have[i])) {
      throw new QuarryError(
        "unsupported_runtime",
        `SQLite ${version} can lose committed data when its WAL is reset; ${SQLITE_VERSION_MIN} or newer is needed. Update Node.js (24.21 carries a good one).`,
      );
    }
  }
}

/** statfs magic numbers of file systems whose locks cannot be trusted: NFS, SMB, CIFS, SMB2, AFS, Ceph. */
const NETWORK_FILE_SYSTEMS = new Set([0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x5346414f, 0x00c36400]);

function prepareFolder(path: string): void {
  const folder = dirname(resolve(path));
  // What is kept is its owner's, unless a folder that is there says otherwise.
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (NETWORK_FILE_SYSTEMS.has(Number(statfsSync(folder).type))) {
    throw new QuarryError(
      "unsupported_runtime",
      `${folder} is on a network file system, where SQLite's locks do not hold. Use a local folder, or PostgreSQL for several machines.`,
    );
  }
}

class SqliteDatabase implements Database {
  readonly dialect = sqliteDialect;
  readonly clock: Clock;
  readonly now: () => string;
  readonly #connection: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly #topics = new Topics();
  readonly #scope = new TransactionScope();
  readonly #busyTimeoutMs: number;
  readonly #watchEveryMs: number;
  readonly #isShared: boolean;
  readonly #onError: (error: unknown) => void;
  #watcher: NodeJS.Timeout | undefined;
  readonly #turns: GroupCommit;
  #isClosed = false;

  constructor(settings: SqliteSettings, isMemory: boolean) {
    this.clock = settings.clock ?? systemClock;
    this.now = () => isoTime(this.clock.now());
    this.#busyTimeoutMs = settings.busyTimeoutMs ?? 10_000;
    this.#watchEveryMs = settings.watchEveryMs ?? 10;
    this.#isShared = !isMemory;
    this.#onError = settings.onError ?? (() => undefined);
    this.#connection = connect(settings);
    this.#turns = new GroupCommit(
      {
        run: (sql) => this.#run(sql, []),
        begin: async () => void (await this.#whenFree(() => this.#run("begin immediate", []))),
        isTransaction: () => this.#connection.isTransaction,
      },
      this.clock,
    );
  }

  async query<T extends Row>(statement: Statement | string, params: readonly unknown[] = []): Promise<T[]> {
    this.#scope.refuseInside();
    this.#refuseClosed();
    const sql = typeof statement === "string" ? statement : statement.sql;
    return this.#turns.inTurn(mannerOf(sql), () => this.#whenFree(() => this.#run<T>(sql, params)));
  }

  async transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    this.#scope.refuseInside();
    this.#refuseClosed();
    const after: (() => unknown)[] = [];
    const transaction: Transaction = {
      query: async (statement, params) => this.#run(statement, params ?? []),
      afterCommit: (next) => after.push(next),
    };
    const result = await this.#turns.inTurn("writer", () => this.#scope.run(() => work(transaction)));
    await runAfterCommit(after, this.#onError);
    return result;
  }

  notify(topic: string): void {
    this.#topics.fire(topic);
  }

  notice(): undefined {
    return undefined;
  }

  subscribe(topic: string, listener: () => void): () => void {
    const unsubscribe = this.#topics.add(topic, listener);
    if (this.#isShared) this.#watcher ??= this.#watch();
    return () => {
      unsubscribe();
      if (this.#topics.isEmpty) {
        clearInterval(this.#watcher);
        this.#watcher = undefined;
      }
    };
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#watcher);
    await this.#turns.settled();
    this.#connection.close();
  }

  /** Otherwise new work would keep it open for ever. */
  #refuseClosed(): void {
    if (this.#isClosed) throw new QuarryError("shutting_down", "the database is closed");
  }

  async #whenFree<T>(work: () => T): Promise<T> {
    const giveUpAt = this.clock.monotonic() + this.#busyTimeoutMs;
    for (let round = 1; ; round++) {
      try {
        return work();
      } catch (error) {
        const isBusy = isQuarryError(error, "database_unavailable") && isBusyError(error.cause);
        if (!isBusy || this.clock.monotonic() >= giveUpAt || this.#isClosed) throw error;
        await pause(Math.random() * Math.min(round, 10));
      }
    }
  }

  #run<T extends Row>(statement: Statement | string, params: readonly unknown[]): T[] {
    const sql = typeof statement === "string" ? statement : statement.sql;
    try {
      return this.#prepared(sql).all(...(params as SQLInputValue[])) as T[];
    } catch (error) {
      throw translated(error, sql);
    }
  }

  #prepared(sql: string): StatementSync {
    const known = this.#statements.get(sql);
    if (known) return known;
    if (this.#statements.size >= STATEMENTS_CACHED_MAX) {
      this.#statements.delete(this.#statements.keys().next().value!);
    }
    const statement = this.#connection.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  /** `data_version` changes when another connection has committed; reading it costs a microsecond. */
  #watch(): NodeJS.Timeout {
    const read = this.#connection.prepare("pragma data_version");
    let seen = read.get()?.data_version;
    const timer = setInterval(() => {
      const version = read.get()?.data_version;
      if (version === seen) return;
      seen = version;
      this.#topics.fireAll();
    }, this.#watchEveryMs);
    timer.unref();
    return timer;
  }
}

function connect(settings: SqliteSettings): DatabaseSync {
  try {
    const connection = new DatabaseSync(settings.path, {
      timeout: BUSY_SLICE_MS,
      enableForeignKeyConstraints: true,
      allowExtension: true,
    });
    // Switching to WAL needs the file for itself for a moment; several processes may start at once.
    connection.exec("pragma busy_timeout = 5000");
    switchToWal(connection);
    connection.exec(`pragma busy_timeout = ${BUSY_SLICE_MS}`);
    connection.exec(`pragma synchronous = ${settings.synchronous ?? "full"}`);
    connection.exec(`pragma cache_size = -${CACHE_KB}`);
    connection.exec(`pragma wal_autocheckpoint = ${LOG_PAGES}`);
    connection.exec("pragma journal_size_limit = 67108864");
    // A statement that fires triggers keeps what it may have to undo: in a file that is 13 µs for every row it writes.
    connection.exec("pragma temp_store = memory");
    connection.enableLoadExtension(false);
    return connection;
  } catch (error) {
    throw new QuarryError(
      "database_unavailable",
      `cannot open ${settings.path}: ${messageOf(error)}. Check that the folder can be written and the file is a SQLite database.`,
      { cause: error },
    );
  }
}

/** Two processes that switch one new file at once: SQLite refuses one of them without waiting its busy timeout. */
function switchToWal(connection: DatabaseSync): void {
  for (let tries = 1; ; tries++) {
    try {
      connection.exec("pragma journal_mode = wal");
      return;
    } catch (error) {
      if (!isBusyError(error) || tries >= SWITCHES_MAX) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1 + Math.random() * 10);
    }
  }
}

function mannerOf(sql: string): Manner {
  if (/^\s*(insert|update|delete)\b/i.test(sql)) return "statement";
  return /^\s*(select|with)\b/i.test(sql) ? "reader" : "alone";
}

function primaryCode(error: unknown): number {
  const code = (error as { errcode?: unknown }).errcode;
  return typeof code === "number" ? code & 0xff : 0;
}

function isBusyError(error: unknown): boolean {
  return primaryCode(error) === SQLITE_BUSY;
}

function translated(error: unknown, sql: string): unknown {
  const message = messageOf(error);
  const as = (code: ConstructorParameters<typeof QuarryError>[0], text: string) =>
    new QuarryError(code, text, { cause: error });
  switch (primaryCode(error)) {
    case SQLITE_BUSY:
      return as("database_unavailable", "the database is locked by another process");
    case 8: // READONLY
      return as("database_unavailable", `the database cannot be written: ${message}`);
    case 10: // IOERR
    case 11: // CORRUPT
    case 14: // CANTOPEN
    case 26: // NOTADB
      return as("database_unavailable", `the database file cannot be used: ${message}`);
    case 13: // FULL
      return as("disk_full", "the disk is full; free some space and the work goes on by itself");
    case 19: // CONSTRAINT
      return as("constraint_violated", message);
    case 1: // ERROR: bad SQL or a missing table
      return as(
        /no such (table|column|index)|has no column/.test(message) ? "schema_mismatch" : "database_failed",
        `${message}${/no such index/.test(message) ? " (prepareQueue creates a queue's indexes; after an upgrade, restart what ran before)" : ""} in: ${sql}`,
      );
    default:
      if (/not open|finalized/.test(message)) return as("shutting_down", "the database is closed");
      return as("database_failed", `${message} in: ${sql}`);
  }
}
