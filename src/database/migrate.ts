import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf, QuarryError } from "../errors.ts";
import type { Database, Session } from "./database.ts";
import { literal } from "./dialect.ts";

export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

/** Any process may hold this lock; which number it is does not matter as long as all agree. */
const POSTGRES_LOCK = 7310_0001;
const FILE_NAME = /^(\d{4})_([a-z0-9_]+)\.sql$/;

/** Reads `NNNN_name.sql` files of one dialect's folder, in order. */
export function readMigrations(folder: string): Migration[] {
  const names = readdirSync(folder).filter((name) => name.endsWith(".sql"));
  const migrations = names.sort().map((file) => {
    const match = FILE_NAME.exec(file);
    if (!match) {
      throw new QuarryError("migration_failed", `${join(folder, file)}: migrations are named NNNN_name.sql`);
    }
    return { version: Number(match[1]), name: match[2]!, sql: readFileSync(join(folder, file), "utf8") };
  });
  for (const [index, migration] of migrations.entries()) {
    if (index > 0 && migrations[index - 1]!.version === migration.version) {
      throw new QuarryError("migration_failed", `${folder} has two migrations numbered ${migration.version}`);
    }
  }
  return migrations;
}

/**
 * Applies what is missing, in one transaction under a lock: of ten processes that start together one migrates
 * and nine find it done. Migrations only go forward; one that was applied must not change afterwards.
 */
export async function migrate(database: Database, migrations: readonly Migration[]): Promise<Migration[]> {
  for (const [index, { version, name }] of migrations.entries()) {
    if (version === index + 1) continue;
    throw new QuarryError(
      "migration_failed",
      `migration ${version} (${name}) stands where number ${index + 1} belongs: none may be missing or there twice`,
    );
  }
  return database.transaction(async (session) => {
    // SQLite's `begin immediate` is the lock already.
    if (database.dialect.name === "postgres")
      await session.query(`select pg_advisory_xact_lock(${POSTGRES_LOCK})`);
    await session.query(
      "create table if not exists quarry_migrations (version integer primary key, name text not null, checksum text not null, applied_at text not null)",
    );
    const applied = new Map<number, string>();
    for (const row of await session.query("select version, checksum from quarry_migrations")) {
      applied.set(Number(row.version), String(row.checksum));
    }
    refuseNewerDatabase(applied, migrations);
    const missing = migrations.filter((migration) => isMissing(migration, applied));
    for (const migration of missing) await apply(session, migration, database.clock.now());
    return missing;
  });
}

/** Those of the product, beside src in a checkout and beside dist in a package. */
export function knownMigrations(dialect: string): Migration[] {
  const folder = join(import.meta.dirname, "..", "..", "migrations", dialect);
  if (existsSync(folder)) return readMigrations(folder);
  throw new QuarryError("internal", `${folder} is missing from the installation`);
}

export function newestOf(migrations: readonly Migration[]): number {
  return Math.max(0, ...migrations.map(({ version }) => version));
}

function refuseNewerDatabase(applied: ReadonlyMap<number, string>, migrations: readonly Migration[]): void {
  refuseNewer(Math.max(0, ...applied.keys()), newestOf(migrations));
}

export function refuseNewer(applied: number, known: number): void {
  if (applied <= known) return;
  throw new QuarryError(
    "migration_failed",
    `the database is at version ${applied}, this program knows ${known}: use a newer program`,
  );
}

function isMissing(migration: Migration, applied: ReadonlyMap<number, string>): boolean {
  const checksum = applied.get(migration.version);
  if (checksum !== undefined && checksum !== checksumOf(migration)) {
    throw new QuarryError(
      "migration_failed",
      `migration ${migration.version} (${migration.name}) was changed after it was applied; write a new one instead`,
    );
  }
  return checksum === undefined;
}

async function apply(session: Session, migration: Migration, nowMs: number): Promise<void> {
  try {
    for (const statement of statementsOf(migration.sql)) await session.query(statement);
  } catch (error) {
    throw new QuarryError(
      "migration_failed",
      `migration ${migration.version} (${migration.name}): ${messageOf(error)}`,
      { cause: error },
    );
  }
  const values = [migration.version, migration.name, checksumOf(migration), new Date(nowMs).toISOString()];
  await session.query(`insert into quarry_migrations values (${values.map(literal).join(", ")})`);
}

/** A statement ends with a semicolon at the end of a line; triggers and functions keep theirs by `-- keep` … `-- end`. */
export function statementsOf(sql: string): string[] {
  const statements: string[] = [];
  let lines: string[] = [];
  let isKept = false;
  const flush = () => {
    const statement = lines.join("\n").trim();
    if (statement) statements.push(statement);
    lines = [];
  };
  for (const line of sql.split("\n")) {
    const text = line.trim();
    if (text === "-- keep") isKept = true;
    else if (text === "-- end") {
      isKept = false;
      flush();
    } else if (!text.startsWith("--")) {
      if (!isKept && /;\s*\S/.test(text)) {
        throw new QuarryError(
          "migration_failed",
          `end each statement with its line, or put it between "-- keep" and "-- end": ${text}`,
        );
      }
      lines.push(line);
      if (!isKept && text.endsWith(";")) flush();
    }
  }
  flush();
  return statements;
}

function checksumOf(migration: Migration): string {
  return createHash("sha256").update(migration.sql).digest("hex");
}
