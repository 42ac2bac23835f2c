import { randomBytes } from "node:crypto";
import pg from "pg";
import { type Services, startServices } from "./services.ts";

export interface TestPostgres {
  readonly url: string;
  drop(): Promise<void>;
}

let ownServices: Promise<Services> | undefined;

/**
 * An empty database of its own for a test. Under `npm test` on the server that serves all test files; in a test
 * file run by hand on one started at the first call, which goes away with the process.
 */
export async function freshPostgres(
  options: { server?: string | undefined; template?: string | undefined } = {},
): Promise<TestPostgres> {
  const serverUrl = options.server ?? (await findServer());
  const name = `quarry_test_${randomBytes(8).toString("hex")}`;
  // Its default, to write the copy to the log as well, takes ten times as long.
  const strategy = "strategy file_copy";
  await execute(serverUrl, `create database ${name} template ${options.template ?? "template1"} ${strategy}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    drop: () => execute(serverUrl, `drop database if exists ${name} with (force)`),
  };
}

async function findServer(): Promise<string> {
  if (process.env.TEST_DATABASE_URL) return process.env.TEST_DATABASE_URL;
  ownServices ??= startServices({ redis: false, isSynced: false });
  return (await ownServices).postgresUrl;
}

async function execute(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
