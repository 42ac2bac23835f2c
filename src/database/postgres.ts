import { createHash } from "node:crypto";
import pg from "pg";
import { atMost, type Clock, isoTime, pause, systemClock } from "../clock.ts";
import { isQuarryError, messageOf, QuarryError } from "../errors.ts";
import {
  type Database,
  type Row,
  runAfterCommit,
  type Statement,
  type Transaction,
  TransactionScope,
} from "./database.ts";
import { postgresDialect } from "./dialect.ts";
import { PostgresNotifications } from "./notifications.ts";

export interface PostgresSettings {
  readonly url: string;
  readonly poolMax?: number;
  readonly clock?: Clock;
  /** Tests move the time by hand; otherwise the server's clock is the only one used. */
  readonly now?: () => string | null;
  readonly onError?: (error: unknown) => void;
}

/**
 * The engine's statements each have one right plan, and it is the one that walks an index. A queue table's
 * statistics are always stale (empty when planned, full a second later), so the planner is not left the choice.
 * See docs/adr/0002.
 */
const CONNECTION_SETUP = [
  "set default_transaction_isolation = 'read committed'",
  "set plan_cache_mode = force_generic_plan",
  "set enable_seqscan = off",
  "set enable_bitmapscan = off",
  "set enable_sort = off",
  "set jit = off",
  // A machine that vanishes in the middle of a transaction must not keep its rows locked from the others.
  "set idle_in_transaction_session_timeout = '30s'",
  "set tcp_keepalives_idle = 60",
].join("; ");

const QUERY_TIMEOUT_MS = 60_000;
const CLOSE_TIMEOUT_MS = 5_000;
const REPLAYS_MAX = 8;
const REPLAYABLE = new Set(["40001", "40P01"]);

const TIMESTAMPTZ = 1184;
const INT8 = 20;

export function openPostgres(settings: PostgresSettings): Database {
  return new PostgresDatabase(settings);
}

class PostgresDatabase implements Database {
  readonly dialect = postgresDialect;
  readonly clock: Clock;
  readonly now: () => string | null;
  readonly #pool: pg.Pool;
  /** One connection of its own, opened when it is first needed. */
  readonly #urgentPool: pg.Pool;
  readonly #scope = new TransactionScope();
  readonly #notifications: PostgresNotifications;
  readonly #onError: (error: unknown) => void;
  #isClosed = false;

  constructor(settings: PostgresSettings) {
    this.clock = settings.clock ?? systemClock;
    this.now = settings.now ?? (() => null);
    this.#onError = (error) => settings.onError?.(translated(error));
    const onError = this.#onError;
    const poolSettings = {
      connectionString: settings.url,
      max: settings.poolMax ?? 10,
      application_name: "quarry",
      connectionTimeoutMillis: 10_000,
      // A connection that fell silent must not hold a lane for ever.
      query_timeout: QUERY_TIMEOUT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      types: { getTypeParser },
      onConnect: (client: pg.ClientBase) => client.query(CONNECTION_SETUP).then(() => undefined),
    } as pg.PoolConfig;
    this.#pool = new pg.Pool(poolSettings);
    this.#urgentPool = new pg.Pool({ ...poolSettings, max: 1 });
    // An idle connection that breaks is replaced by the pool; without a listener it would end the process.
    for (const pool of [this.#pool, this.#urgentPool]) pool.on("error", onError);
    this.#notifications = new PostgresNotifications({
      connect: () =>
        new pg.Client({
          connectionString: settings.url,
          application_name: "quarry listen",
          keepAlive: true,
          connectionTimeoutMillis: 5_000,
        }),
      send: (topic) => this.#pool.query("select pg_notify($1, $2)", [PostgresNotifications.channel, topic]),
      onError,
    });
  }

  async query<T extends Row>(statement: Statement | string, params: readonly unknown[] = []): Promise<T[]> {
    this.#scope.refuseInside();
    const isUrgent = typeof statement !== "string" && statement.isUrgent === true;
    return this.#replaying(() => run<T>(isUrgent ? this.#urgentPool : this.#pool, statement, params));
  }

  async transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    this.#scope.refuseInside();
    let after: (() => unknown)[] = [];
    const result = await this.#replaying(() => {
      after = [];
      return this.#transact(work, after);
    });
    await runAfterCommit(after, this.#onError);
    return result;
  }

  notify(topic: string, options = { isSent: false }): void {
    if (!this.#isClosed) this.#notifications.notify(topic, options);
  }

  notice(topic: string): string | undefined {
    return this.#notifications.notice(topic);
  }

  subscribe(topic: string, listener: () => void): () => void {
    return this.#notifications.subscribe(topic, listener);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#notifications.close();
    await atMost(CLOSE_TIMEOUT_MS, Promise.all([this.#pool.end(), this.#urgentPool.end()]));
  }

  async #transact<T>(work: (transaction: Transaction) => Promise<T>, after: (() => unknown)[]): Promise<T> {
    const client = await this.#pool.connect().catch((error) => {
      throw translated(error);
    });
    // Without a listener, a connection that breaks between two statements would end the process.
    let broken: Error | undefined;
    const onBroken = (error: Error) => {
      broken = error;
    };
    client.on("error", onBroken);
    try {
      await run(client, "begin", []);
      const transaction: Transaction = {
        query: (statement, params) => run(client, statement, params ?? []),
        afterCommit: (next) => after.push(next),
      };
      const result = await this.#scope.run(() => work(transaction));
      await commit(client);
      return result;
    } catch (error) {
      if (isConnectionLost(error)) broken ??= error as Error;
      else await client.query("rollback").catch((rollbackError: Error) => onBroken(rollbackError));
      throw error;
    } finally {
      client.off("error", onBroken);
      client.release(broken);
    }
  }

  /** A deadlock or serialization failure has rolled back for certain: the work may be done again. */
  async #replaying<T>(work: () => Promise<T>): Promise<T> {
    for (let round = 1; ; round++) {
      try {
        return await work();
      } catch (error) {
        if (round >= REPLAYS_MAX || !isReplayable(error)) throw error;
        await pause(Math.random() * 10 * round);
      }
    }
  }
}

type Runner = Pick<pg.Pool, "query"> | Pick<pg.PoolClient, "query">;

async function run<T extends Row>(
  runner: Runner,
  statement: Statement | string,
  params: readonly unknown[],
): Promise<T[]> {
  try {
    const query =
      typeof statement === "string"
        ? { text: statement, values: params as unknown[] }
        : { name: preparedName(statement), text: statement.sql, values: params as unknown[] };
    const result = await (runner as pg.Pool).query<T>(query);
    return result.rows ?? [];
  } catch (error) {
    throw translated(error);
  }
}

/** COMMIT is never repeated: when its answer is lost, nobody here knows whether it happened. */
async function commit(client: pg.PoolClient): Promise<void> {
  let command: string;
  try {
    ({ command } = await client.query("commit"));
  } catch (cause) {
    const error = translated(cause);
    if (!isQuarryError(error, "database_unavailable")) throw error;
    throw new QuarryError(
      "commit_unknown",
      "the connection broke while committing: the change may or may not have been made",
      { cause: error.cause },
    );
  }
  if (command !== "COMMIT") {
    throw new QuarryError(
      "database_failed",
      "a statement of this transaction had failed and its error was not passed on: everything was rolled back",
    );
  }
}

const preparedNames = new WeakMap<Statement, string>();

/** The text is part of the name, so that two declarations of one name never share a prepared statement. */
function preparedName(statement: Statement): string {
  let name = preparedNames.get(statement);
  if (!name) {
    const digest = createHash("sha256").update(statement.sql).digest("hex").slice(0, 16);
    name = `${statement.name.slice(0, 40)}:${digest}`;
    preparedNames.set(statement, name);
  }
  return name;
}

function getTypeParser(oid: number, format?: "text" | "binary"): unknown {
  if (format !== "binary") {
    if (oid === TIMESTAMPTZ) return parseTime;
    if (oid === INT8) return parseInteger;
  }
  return pg.types.getTypeParser(oid, format as "text");
}

/** Times read the same from both databases: ISO 8601 in UTC. */
function parseTime(text: string): string {
  const ms = Date.parse(text.replace(" ", "T").replace(/([+-]\d\d)$/, "$1:00"));
  return Number.isNaN(ms) ? text : isoTime(ms);
}

function parseInteger(text: string): number | string {
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : text;
}

function sqlState(error: unknown): string {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "string" ? code : "";
}

function isReplayable(error: unknown): boolean {
  return isQuarryError(error) && REPLAYABLE.has(sqlState(error.cause));
}

function isConnectionLost(error: unknown): boolean {
  return isQuarryError(error, "database_unavailable", "commit_unknown");
}

const SOCKET_ERRORS = /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EHOST|ENETUNREACH|EAI_AGAIN)/;
const UNREACHED = /^(ECONNREFUSED|ENOTFOUND|EHOST|ENETUNREACH|EAI_AGAIN)/;
const DRIVER_ERRORS =
  /connection terminated|query read timeout|timeout exceeded when trying to connect|client has encountered a connection error|cannot use a pool after|not queryable|connection (was )?closed/i;

function translated(error: unknown): unknown {
  if (error instanceof QuarryError) return error;
  const state = sqlState(error);
  const message = messageOf(error);
  const as = (code: ConstructorParameters<typeof QuarryError>[0], text: string) =>
    new QuarryError(code, text, { cause: error });
  // Nobody listens there, or the name is unknown.
  if (UNREACHED.test(state))
    return as(
      "database_unavailable",
      `PostgreSQL cannot be reached: ${message || state}; start it, or set DATABASE_URL to where it listens`,
    );
  if (
    state.startsWith("08") ||
    state.startsWith("57P") ||
    // It hung up on a transaction that had been silent for too long.
    state === "25P03" ||
    state === "53300" ||
    SOCKET_ERRORS.test(state) ||
    DRIVER_ERRORS.test(message)
  ) {
    return as("database_unavailable", `PostgreSQL cannot be reached: ${message || state}`);
  }
  // No such database or role, or a wrong password.
  if (state === "3D000" || state.startsWith("28")) {
    return as(
      "database_unavailable",
      `PostgreSQL refuses: ${message}. Check DATABASE_URL; \`createdb\` makes a database, \`createuser\` a role`,
    );
  }
  if (state === "53100") return as("disk_full", `PostgreSQL's disk is full: ${message}`);
  if (state.startsWith("23")) return as("constraint_violated", message);
  if (state === "42P01" || state === "42703" || state === "3F000") return as("schema_mismatch", message);
  if (state.startsWith("22")) return as("invalid_input", message);
  return as("database_failed", message);
}
