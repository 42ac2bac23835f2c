import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Database, type DatabaseSettings, openDatabase } from "../../src/index.ts";
import { copyMigrated, migratedPostgres, migrateTest } from "./migrated.ts";
import { startPgvector } from "./pgvector.ts";

export interface TestDatabase {
  readonly database: Database;
  readonly url: string;
  /** A folder of its own, gone afterwards. */
  readonly folder: string;
  close(): Promise<void>;
}

/** Both databases, migrated and empty, for suites that must hold on each. */
export const DATABASES: readonly { name: string; open(): Promise<TestDatabase> }[] = [
  {
    name: "SQLite",
    open: async () => {
      const folder = await mkdtemp(join(tmpdir(), "quarry-test-"));
      const path = join(folder, "quarry.db");
      await copyMigrated(path);
      return prepared(path, "sqlite", folder, async () => undefined);
    },
  },
  {
    name: "PostgreSQL",
    open: async () => {
      const folder = await mkdtemp(join(tmpdir(), "quarry-test-"));
      const { url, drop } = await migratedPostgres();
      return prepared(url, "postgres", folder, drop);
    },
  },
];

/** For what looks different where PostgreSQL has pgvector. */
export const PGVECTOR: (typeof DATABASES)[number] = {
  name: "PostgreSQL with pgvector",
  open: async () => {
    const folder = await mkdtemp(join(tmpdir(), "quarry-test-"));
    const { url, stop } = await startPgvector();
    return prepared(url, "postgres", folder, stop, { poolMax: 1 });
  },
};

async function prepared(
  url: string,
  dialect: "sqlite" | "postgres",
  folder: string,
  drop: () => Promise<void>,
  settings: DatabaseSettings = {},
): Promise<TestDatabase> {
  const database = openDatabase(url, settings);
  await migrateTest(database, dialect);
  return {
    database,
    url,
    folder,
    close: async () => {
      await database.close();
      await drop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
