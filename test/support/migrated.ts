import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { documentQueues } from "../../src/documents/queues.ts";
import { type Database, migrate, openDatabase, prepareQueue, readMigrations } from "../../src/index.ts";
import { freshPostgres, type TestPostgres } from "./postgres.ts";

type Dialect = "sqlite" | "postgres";

export interface Migrated {
  /** Tells test files what to copy; those run by hand, without it, migrate an empty database. */
  readonly env: NodeJS.ProcessEnv;
  remove(): Promise<void>;
}

/** A database of each kind, migrated once in a run for all its test files. */
export async function prepareMigrated(server: string): Promise<Migrated> {
  const folder = await mkdtemp(join(tmpdir(), "quarry-test-"));
  const file = join(folder, "migrated.db");
  const { url, drop } = await freshPostgres({ server });
  for (const [dialect, place] of [["sqlite", file] as const, ["postgres", url] as const]) {
    const database = openDatabase(place);
    await migrateTest(database, dialect);
    // Most tests of documents and RAGs begin with these.
    for (const queue of Object.values(documentQueues({ staleMs: 1_000 })))
      await prepareQueue(database, queue);
    await database.close();
  }
  return {
    env: { TEST_MIGRATED_SQLITE: file, TEST_MIGRATED_POSTGRES: new URL(url).pathname.slice(1) },
    remove: async () => {
      await drop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export function migratedPostgres(): Promise<TestPostgres> {
  return freshPostgres({ template: process.env.TEST_MIGRATED_POSTGRES });
}

export async function copyMigrated(path: string): Promise<void> {
  if (process.env.TEST_MIGRATED_SQLITE) await copyFile(process.env.TEST_MIGRATED_SQLITE, path);
}

/** Does nothing to a copy but see that it is what the migrations say. */
export function migrateTest(database: Database, dialect: Dialect): Promise<unknown> {
  return migrate(database, readMigrations(join(import.meta.dirname, "../../migrations", dialect)));
}
