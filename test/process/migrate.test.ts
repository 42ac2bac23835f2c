import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, test } from "node:test";
import {
  type Database,
  type ErrorCode,
  isQuarryError,
  type Migration,
  migrate,
  openDatabase,
} from "../../src/index.ts";
import { freshPostgres } from "../support/postgres.ts";

const it = (name: string, work: () => Promise<void>) => test(name, { timeout: 60_000 }, work);

const OPENERS: Record<string, () => Promise<{ url: string; drop: () => Promise<void> }>> = {
  SQLite: async () => {
    const folder = await mkdtemp(join(tmpdir(), "quarry-migrate-"));
    return { url: join(folder, "quarry.db"), drop: () => rm(folder, { recursive: true }) };
  },
  PostgreSQL: freshPostgres,
};

const books: Migration = {
  version: 1,
  name: "books",
  sql: "create table books (title text not null);\ninsert into books values ('first');\n",
};
const shelves: Migration = {
  version: 2,
  name: "shelves",
  sql: "create table shelves (place text not null);\ninsert into books values ('second');\n",
};
const pages: Migration = {
  version: 3,
  name: "pages",
  sql: "alter table books add column pages integer;\ninsert into books values ('third', 3);\n",
};
const ALL = [books, shelves, pages];

/** Says when it is ready, and migrates when it is told to. */
const PROGRAM = `
  import { migrate, openDatabase } from ${JSON.stringify(import.meta.resolve("../../src/index.ts"))};
  const [url, migrations] = JSON.parse(process.env.MIGRATE);
  const told = new Promise((resolve) => process.stdin.once("end", resolve).resume());
  process.stdout.write("ready\\n");
  await told;
  const database = openDatabase(url);
  const applied = await migrate(database, migrations);
  await database.close();
  process.stdout.write(String(applied.length));
`;

for (const [name, open] of Object.entries(OPENERS)) {
  describe(`migrations on ${name}`, () => {
    let url: string;
    let drop: () => Promise<void>;
    let database: Database;

    beforeEach(async () => {
      ({ url, drop } = await open());
    });
    afterEach(async () => {
      await database?.close();
      await drop();
    });

    const titles = async () =>
      (await database.query("select title from books order by title")).map((row) => row.title);
    const applied = async () =>
      (await database.query("select version from quarry_migrations order by version")).map(
        (row) => row.version,
      );
    const hasTable = async (table: string) => {
      try {
        await database.query(`select 1 from ${table} limit 1`);
        return true;
      } catch (error) {
        assert.ok(isQuarryError(error, "schema_mismatch"), String(error));
        return false;
      }
    };

    it("ten processes that start at the same moment on an empty database migrate it once", async () => {
      for (let round = 0; round < 3; round++) {
        const own = round === 0 ? { url, drop: async () => undefined } : await open();
        try {
          await migrateInProcesses(own.url, 10);
          database = openDatabase(own.url);
          assert.deepEqual(await applied(), [1, 2, 3]);
          assert.deepEqual(await titles(), ["first", "second", "third"]);
          await database.close();
        } finally {
          await own.drop();
        }
      }
    });

    it("a database that is up to date is left alone, and one that is behind gets the rest", async () => {
      database = openDatabase(url);
      assert.deepEqual(await migrate(database, [books]), [books]);
      assert.deepEqual(await migrate(database, [books]), []);
      assert.deepEqual(await migrate(database, ALL), [shelves, pages]);
      assert.deepEqual(await migrate(database, ALL), []);
      assert.deepEqual(await titles(), ["first", "second", "third"]);
    });

    it("a migration that was edited after it was applied is refused by name", async () => {
      database = openDatabase(url);
      await migrate(database, [books]);
      const edited = { ...books, sql: `${books.sql}insert into books values ('smuggled');\n` };
      await refused(migrate(database, [edited, shelves]), /migration 1 \(books\) was changed/);
      assert.deepEqual(await applied(), [1]);
      assert.deepEqual(await titles(), ["first"]);
      assert.equal(await hasTable("shelves"), false);
    });

    it("a gap in the numbers is refused, before anything is written", async () => {
      database = openDatabase(url);
      await refused(migrate(database, [books, pages]), /\b2\b/);
      assert.equal(await hasTable("books"), false);
    });

    it("two migrations of one number are refused, before anything is written", async () => {
      database = openDatabase(url);
      const twin = { ...shelves, version: 1, name: "twin" };
      await refused(migrate(database, [books, twin]), /\b1\b/);
      assert.equal(await hasTable("books"), false);
    });

    it("a migration that comes too late to run before one that was applied is refused", async () => {
      database = openDatabase(url);
      await migrate(database, [books]);
      await database.query("update quarry_migrations set version = 2, name = 'other', checksum = 'x'");
      await refused(migrate(database, [books, shelves, pages]), /./);
      assert.deepEqual(await titles(), ["first"]);
    });

    it("a database that a newer program has migrated is refused", async () => {
      database = openDatabase(url);
      await migrate(database, ALL);
      await refused(migrate(database, [books, shelves]), /version 3.* knows 2.*newer program/);
      assert.deepEqual(await applied(), [1, 2, 3]);
    });

    it("a statement that fails undoes its migration and those before it, and the next start can try again", async () => {
      database = openDatabase(url);
      const broken = {
        ...pages,
        sql: "alter table books add column pages integer;\ninsert into nowhere values (1);\n",
      };
      await refused(migrate(database, [books, shelves, broken]), /migration 3 \(pages\): .*nowhere/);
      for (const table of ["books", "shelves", "quarry_migrations"])
        assert.equal(await hasTable(table), false);
      assert.deepEqual(await migrate(database, ALL), ALL);
      assert.deepEqual(await titles(), ["first", "second", "third"]);
    });
  });
}

async function refused(
  migrating: Promise<unknown>,
  message: RegExp,
  code: ErrorCode = "migration_failed",
): Promise<void> {
  await assert.rejects(migrating, (error) => {
    assert.ok(isQuarryError(error, code), `${(error as { code?: unknown }).code}: ${error}`);
    assert.match(error.message, message);
    return true;
  });
}

async function migrateInProcesses(url: string, count: number): Promise<void> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const children: ChildProcess[] = Array.from({ length: count }, () =>
    spawn(process.execPath, ["--input-type=module", "-e", PROGRAM], {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...env, MIGRATE: JSON.stringify([url, ALL]) },
    }),
  );
  const ends = children.map(async (child) => {
    const [stderr, [code]] = await Promise.all([text(child.stderr!), once(child, "exit")]);
    return { code, stderr };
  });
  const said = children.map(() => "");
  const ready = children.map(async (child, index) => {
    child.stdout!.on("data", (chunk) => {
      said[index] += chunk;
    });
    await once(child.stdout!, "data");
  });
  try {
    await Promise.race([Promise.all(ready), Promise.all(ends)]);
    for (const child of children) child.stdin!.end();
    assert.deepEqual(
      await Promise.all(ends),
      children.map(() => ({ code: 0, stderr: "" })),
    );
    assert.deepEqual(said.map((words) => words.replace("ready\n", "")).sort(), [
      ...Array.from({ length: count - 1 }, () => "0"),
      `${ALL.length}`,
    ]);
  } finally {
    for (const child of children) child.kill("SIGKILL");
  }
}
