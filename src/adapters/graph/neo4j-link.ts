import neo4j, { type Driver, type ManagedTransaction, Neo4jError, type RecordShape } from "neo4j-driver";
import { isQuarryError, messageOf, QuarryError } from "../../errors.ts";
import { hideSecrets, type Log } from "../../log.ts";
import { SCHEMA } from "./cypher.ts";

export interface Neo4jSettings {
  /** bolt://, neo4j:// for a cluster, and both with +s for TLS (+ssc: with a certificate that nobody vouches for). */
  readonly url: string;
  readonly user: string;
  /** Servers without access control need none. */
  readonly password?: string | undefined;
  /** The server's own default when left out. */
  readonly database?: string | undefined;
  /** How long a write is tried again while the server says that trying again may help. */
  readonly retryMsMax?: number | undefined;
  readonly log?: Log | undefined;
}

/** Runs statements; each awaits the one before. */
export type Run = (statement: string, params?: Record<string, unknown>) => Promise<RecordShape[]>;

const RETRY_MS_MAX = 5_000;
const CONNECT_WITHIN_MS = 5_000;
const ACQUIRE_WITHIN_MS = 15_000;
/** A connection that was idle for as long is asked whether it still is one. */
const LIVENESS_AFTER_MS = 30_000;
const TRANSACTION_MS_MAX = 120_000;
const OUT_OF_MEMORY = /OutOfMemory/;
/** Another deleted what this had found, while it waited to write it. Looked for again it is not there. */
const GONE = "Neo.ClientError.Statement.EntityNotFound";
const AGAIN_MAX = 3;

/** The driver, with constraints and indexes made before anything is written, and its errors in our words. */
export class Neo4jLink {
  readonly #settings: Neo4jSettings;
  readonly #driver: Driver;
  #schema: Promise<void> | undefined;
  #isAway = false;
  #isClosed = false;

  constructor(settings: Neo4jSettings) {
    this.#settings = settings;
    const { url, user, password, retryMsMax = RETRY_MS_MAX } = settings;
    const token = password === undefined ? undefined : neo4j.auth.basic(user, password);
    try {
      this.#driver = neo4j.driver(url, token, {
        // Counts here never come near what a number cannot hold.
        disableLosslessIntegers: true,
        maxTransactionRetryTime: retryMsMax,
        connectionTimeout: CONNECT_WITHIN_MS,
        connectionAcquisitionTimeout: ACQUIRE_WITHIN_MS,
        connectionLivenessCheckTimeout: LIVENESS_AFTER_MS,
        telemetryDisabled: true,
      });
    } catch (cause) {
      throw new QuarryError("invalid_input", `NEO4J_URL cannot be used: ${hideSecrets(messageOf(cause))}`);
    }
  }

  /** In one transaction, which is run again while the server asks for it: two writers in each other's way, a new leader. */
  write<T>(work: (run: Run) => Promise<T>): Promise<T> {
    return this.#told(async () => {
      await this.#ready();
      for (let again = 0; ; again++) {
        try {
          return await this.#transaction(work);
        } catch (error) {
          const isGone = error instanceof Neo4jError && error.code === GONE;
          if (!isGone || again === AGAIN_MAX) throw error;
        }
      }
    });
  }

  /** Somebody waits for the answer, and can do without it: it is asked for twice and no more. */
  read(statement: string, params: Record<string, unknown>): Promise<RecordShape[]> {
    return this.#told(() =>
      this.#ask(statement, params).catch((error) => {
        if (!neo4j.isRetryableError(error)) throw error;
        return this.#ask(statement, params);
      }),
    );
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#driver.close();
  }

  async #transaction<T>(work: (run: Run) => Promise<T>): Promise<T> {
    const session = this.#driver.session({ ...this.#database });
    const run = (transaction: ManagedTransaction): Run => {
      return async (statement, params) =>
        (await transaction.run(statement, params)).records.map((row) => row.toObject());
    };
    try {
      return await session.executeWrite((transaction) => work(run(transaction)), {
        timeout: TRANSACTION_MS_MAX,
      });
    } finally {
      await session.close();
    }
  }

  async #ask(statement: string, params: Record<string, unknown>): Promise<RecordShape[]> {
    const session = this.#driver.session({ ...this.#database, defaultAccessMode: neo4j.session.READ });
    try {
      const { records } = await session.run(statement, params);
      return records.map((row) => row.toObject());
    } finally {
      await session.close();
    }
  }

  /** Before the first write. A server that was away when this began may come later. */
  #ready(): Promise<void> {
    this.#schema ??= this.#makeSchema().catch((error) => {
      this.#schema = undefined;
      throw error;
    });
    return this.#schema;
  }

  async #makeSchema(): Promise<void> {
    for (const statement of SCHEMA) await this.#transaction((run) => run(statement));
  }

  async #told<T>(work: () => Promise<T>): Promise<T> {
    if (this.#isClosed) throw this.#closed();
    try {
      const answer = await work();
      this.#isAway = false;
      return answer;
    } catch (error) {
      const told = this.#isClosed ? this.#closed() : this.#inOurWords(error);
      if (isQuarryError(told, "store_unavailable") && !this.#isAway) {
        this.#isAway = true;
        this.#settings.log?.warn({ error: told.message }, "the graph's store is away: what needs it waits");
      }
      throw told;
    }
  }

  #inOurWords(cause: unknown): unknown {
    if (!(cause instanceof Neo4jError)) return cause;
    const said = `Neo4j at ${hideSecrets(this.#settings.url)}: ${hideSecrets(cause.message)}`;
    const told = (code: "store_unavailable" | "resource_exhausted" | "database_failed", advice = "") =>
      new QuarryError(code, `${said}${advice}`, { cause });
    if (cause.code.startsWith("Neo.ClientError.Security."))
      return told("store_unavailable", ": check NEO4J_USER and NEO4J_PASSWORD");
    if (cause.code.startsWith("Neo.ClientError.Database."))
      return told("store_unavailable", ": check NEO4J_DATABASE");
    if (cause.code.startsWith("Neo.ClientError.Cluster."))
      return told("store_unavailable", ": with neo4j:// in NEO4J_URL the leader of a cluster is found");
    // The server calls it passing; what is too large for it stays too large.
    if (OUT_OF_MEMORY.test(cause.code))
      return told("resource_exhausted", ": give its transactions more memory");
    if (neo4j.isRetryableError(cause))
      return told("store_unavailable", ": check that it runs and that NEO4J_URL is right");
    return told("database_failed");
  }

  #closed(): QuarryError {
    return new QuarryError("shutting_down", "the graph is closed");
  }

  get #database(): { database?: string } {
    const { database } = this.#settings;
    return database === undefined ? {} : { database };
  }
}
