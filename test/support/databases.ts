import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Database, migrate, openDatabase, readMigrations } from "../../src/index.ts";
import { freshPostgres } from "./postgres.ts";

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
      return prepared(join(folder, "quarry.db"), "sqlite", folder, async () => undefined);
    },
  },
  {
    name: "PostgreSQL",
    open: async () => {
      const folder = await mkdtemp(join(tmpdir(), "quarry-test-"));
      const { url, drop } = await freshPostgres();
      return prepared(url, "postgres", folder, drop);
    },
  },
];

async function prepared(
  url: string,
  dialect: string,
  folder: string,
  drop: () => Promise<void>,
): Promise<TestDatabase> {
  const database = openDatabase(url);
  await migrate(database, readMigrations(join(import.meta.dirname, "../../migrations", dialect)));
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
