import { randomBytes } from "node:crypto";
import pg from "pg";

export interface BenchDatabase {
  readonly url: string;
  drop(): Promise<void>;
}

/** A database that nobody else uses, on the server that `url` names. */
export async function createBenchDatabase(url: string): Promise<BenchDatabase> {
  const name = `quarry_bench_${randomBytes(4).toString("hex")}`;
  await runSql(url, `create database ${name}`);
  const own = new URL(url);
  own.pathname = `/${name}`;
  return { url: own.href, drop: () => runSql(url, `drop database if exists ${name} with (force)`) };
}

/** The database is dropped while a connection may still be on its way out: what that hears is nobody's concern. */
export function openPool(url: string, max: number): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max });
  pool.on("error", () => undefined);
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}

/** Each statement on its own: `vacuum` and `create database` refuse a transaction. */
export async function runSql(url: string, ...statements: readonly string[]): Promise<void> {
  await withClient(url, async (client) => {
    for (const statement of statements) await client.query(statement);
  });
}

export async function countRows(url: string, table: string, condition = "true"): Promise<number> {
  return withClient(url, async (client) => {
    const { rows } = await client.query(`select count(*)::int as count from ${table} where ${condition}`);
    return rows[0].count;
  });
}

/** What was written before is out of the way, so that every round starts the same. */
export async function settleDown(url: string): Promise<void> {
  await runSql(url, "vacuum analyze", "checkpoint");
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
