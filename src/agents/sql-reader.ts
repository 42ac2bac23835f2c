import pg from "pg";
import { besides, Isolates } from "../adapters/isolate.ts";
import type { Database } from "../database/database.ts";
import { isQuarryError, messageOf, QuarryError } from "../errors.ts";
import { type Scope, viewsSql } from "./catalogue.ts";
import { checkedSelect } from "./sql-guard.ts";
import { type Cell, cellOf, type Table } from "./sql-table.ts";

/** Runs queries that somebody else wrote over the catalogue, on a connection that can do nothing else. */
export interface CatalogueReader {
  /**
   * The first rows. A query that is not allowed or that the database refuses is `invalid_input`, with the reason;
   * one that takes too long is ended and is `timeout`, one that takes too much room `resource_exhausted`.
   */
  read(sql: string, scope: Scope, signal: AbortSignal): Promise<Table>;
  close(): Promise<void>;
}

export interface ReaderLimits {
  readonly rowsMax: number;
  readonly deadlineMs: number;
}

export interface ReaderSettings extends Partial<ReaderLimits> {
  readonly url: string;
  readonly database: Database;
}

const LIMITS: ReaderLimits = { rowsMax: 200, deadlineMs: 10_000 };
const MEMORY_MB = 512;

export function openCatalogueReader(settings: ReaderSettings): CatalogueReader {
  const reader = openUnguardedReader(settings);
  return {
    read: async (sql, scope, signal) => reader.read(checkedSelect(sql), scope, signal),
    close: reader.close,
  };
}

/** What the connection by itself lets through. */
export function openUnguardedReader({ url, database, ...given }: ReaderSettings): CatalogueReader {
  const limits = { ...LIMITS, ...given };
  return database.dialect.name === "postgres" ? postgresReader(url, limits) : sqliteReader(url, limits);
}

/** SQLite runs a query in the thread that asks: only the end of a process ends one that does not end by itself. */
function sqliteReader(url: string, { rowsMax, deadlineMs }: ReaderLimits): CatalogueReader {
  const path = url.replace(/^(sqlite|file):(\/\/)?/, "");
  const isolates = new Isolates({
    name: "the query",
    module: besides(import.meta.url, "sql-process"),
    size: 2,
    deadlineMs,
    memoryMb: MEMORY_MB,
    setup: { path, rowsMax },
  });
  return {
    read: (sql, scope, signal) => isolates.call<Table>("read", { sql, scope }, { signal }),
    close: async () => isolates.close(),
  };
}

const CONNECT_WITHIN_MS = 10_000;
/** After the server should have ended it. */
const ANSWER_WITHIN_MS = 5_000;
const ANSWER_MB_MAX = 16;

/** A connection for each query: nothing of one is left for the next. */
function postgresReader(url: string, limits: ReaderLimits): CatalogueReader {
  return {
    read: async (sql, scope, signal) => {
      signal.throwIfAborted();
      const client = new pg.Client({
        connectionString: url,
        application_name: "quarry ask",
        connectionTimeoutMillis: CONNECT_WITHIN_MS,
        query_timeout: limits.deadlineMs + ANSWER_WITHIN_MS,
        types: { getTypeParser: () => (value: string) => value },
      } as pg.ClientConfig);
      client.on("error", () => undefined);
      const onAbort = () => void client.end();
      signal.addEventListener("abort", onAbort, { once: true });
      try {
        await connect(client, scope, limits);
        limitAnswer(client);
        return await select(client, sql, limits);
      } catch (error) {
        signal.throwIfAborted();
        throw translated(error, limits);
      } finally {
        signal.removeEventListener("abort", onAbort);
        void client.end().catch(() => undefined);
      }
    },
    close: async () => undefined,
  };
}

/** What goes wrong here is no fault of the query. */
async function connect(client: pg.Client, scope: Scope, limits: ReaderLimits): Promise<void> {
  try {
    await client.connect();
    await prepare(client, scope, limits);
  } catch (error) {
    const advice = "check DATABASE_URL, and that its role may make temporary views";
    throw new QuarryError(
      isRefusal(error) ? "database_failed" : "database_unavailable",
      `the catalogue cannot be read: ${messageOf(error)}; ${advice}`,
      { cause: error },
    );
  }
}

/** The server has values of up to a gigabyte, and the client would keep a whole row of them. */
function limitAnswer({ connection: { stream } }: pg.Client): void {
  let bytes = 0;
  stream.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= ANSWER_MB_MAX * 1_048_576) return;
    stream.destroy(
      new QuarryError("resource_exhausted", `the query gives more than ${ANSWER_MB_MAX} MB of text`),
    );
  });
}

async function prepare(client: pg.Client, scope: Scope, { deadlineMs }: ReaderLimits): Promise<void> {
  const found = await client.query(
    "select quote_ident(n.nspname) as schema from pg_class as c join pg_namespace as n on n.oid = c.relnamespace where c.oid = to_regclass('task_queue_chunk')",
  );
  for (const sql of viewsSql("postgres", found.rows[0].schema, scope)) await client.query(sql);
  await client.query(
    [
      "set standard_conforming_strings = on",
      "set search_path = pg_temp",
      "set default_transaction_read_only = on",
      `set statement_timeout = ${deadlineMs}`,
      `set lock_timeout = ${deadlineMs}`,
    ].join("; "),
  );
}

/** A cursor is declared for a SELECT or not at all, and gives the first rows without reading the rest. */
async function select(client: pg.Client, sql: string, { rowsMax }: ReaderLimits): Promise<Table> {
  await client.query("begin read only");
  const extended = { queryMode: "extended" } as object;
  await client.query({ text: `declare answer no scroll cursor for ${sql}`, ...extended });
  const { fields, rows } = await client.query<unknown[]>({
    text: `fetch ${rowsMax + 1} from answer`,
    rowMode: "array",
  });
  await client.query("rollback");
  return {
    columns: fields.map(({ name }) => name),
    rows: rows
      .slice(0, rowsMax)
      .map((row) => row.map((value, column) => cellOf(parsed(value, fields[column]!.dataTypeID)))),
    isCut: rows.length > rowsMax,
  };
}

/** Whole and other numbers, by the oids of their types. */
const NUMBERS = new Set([20, 21, 23, 700, 701, 1700]);

function parsed(value: unknown, oid: number): Cell {
  if (value === null) return null;
  const number = Number(value);
  const isExact = NUMBERS.has(oid) && (Number.isSafeInteger(number) || !Number.isInteger(number));
  return isExact ? number : String(value);
}

const QUERY_CANCELED = "57014";
/** Connections that are lost, ended or too many; files that cannot be read. */
const AWAY = /^(08|57P|58|53300)/;
/** Memory, room for sorting, limits of the server. */
const TOO_MUCH = /^5[34]/;

/** An outage costs no try: what fails each time must not be taken for one. */
function isRefusal(error: unknown): boolean {
  return error instanceof pg.DatabaseError && !AWAY.test(error.code ?? "");
}

function translated(error: unknown, { deadlineMs }: ReaderLimits): unknown {
  if (isQuarryError(error)) return error;
  const code = String((error as { code?: unknown }).code ?? "");
  const message = messageOf(error);
  if (code === QUERY_CANCELED || /query read timeout/i.test(message))
    return new QuarryError("timeout", `the query took longer than ${deadlineMs / 1000} s`, { cause: error });
  if (isRefusal(error)) {
    const kind = TOO_MUCH.test(code) ? "resource_exhausted" : "invalid_input";
    return new QuarryError(kind, `the database refuses the query: ${message}`, { cause: error });
  }
  return new QuarryError("database_unavailable", `PostgreSQL cannot be asked: ${message}`, { cause: error });
}
