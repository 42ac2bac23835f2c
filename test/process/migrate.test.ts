import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
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
import { CRASH_DATABASES } from "../support/crash/suite.ts";

const it = (name: string, work: () => Promise<void>) => test(name, { timeout: 60_000 }, work);

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

/** Migrates each database it is told, and says how many migrations that took. */
const PROGRAM = `
  import { createInterface } from "node:readline";
  import { migrate, openDatabase } from ${JSON.stringify(import.meta.resolve("../../src/index.ts"))};
  console.log("ready");
  for await (const url of createInterface({ input: process.stdin })) {
    const database = openDatabase(url);
    const applied = await migrate(database, JSON.parse(process.argv[1]));
    await database.close();
    console.log(applied.length);
  }
`;
const PROCESSES = 10;
/** SQLite files are cheap, and the moment in which two processes meet in one is short. */
const ROUNDS: Record<string, number> = { SQLite: 25, PostgreSQL: 5 };

for (const [name, open] of Object.entries(CRASH_DATABASES)) {
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
      const programs = Array.from({ length: PROCESSES }, () => new Program());
      try {
        await Promise.all(programs.map((program) => program.answer()));
        for (let round = 0; round < ROUNDS[name]!; round++) {
          const own = await open();
          try {
            for (const program of programs) program.tell(own.url);
            const counts = await Promise.all(programs.map((program) => program.answer()));
            const expected = [...Array.from({ length: PROCESSES - 1 }, () => "0"), `${ALL.length}`];
            assert.deepEqual(counts.sort(), expected);
            database = openDatabase(own.url);
            assert.deepEqual(await applied(), [1, 2, 3]);
            assert.deepEqual(await titles(), ["first", "second", "third"]);
            await database.close();
          } finally {
            await own.drop();
          }
        }
        for (const program of programs) assert.equal(await program.exit(), 0);
      } finally {
        for (const program of programs) program.kill();
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

class Program {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #errors: Promise<string>;

  constructor() {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const args = ["--input-type=module", "-e", PROGRAM, JSON.stringify(ALL)];
    this.#child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "pipe"], env });
    // One that has failed is noticed by its missing answer.
    this.#child.stdin!.on("error", () => undefined);
    this.#lines = createInterface({ input: this.#child.stdout! })[Symbol.asyncIterator]();
    this.#errors = text(this.#child.stderr!);
  }

  tell(line: string): void {
    this.#child.stdin!.write(`${line}\n`);
  }

  async answer(): Promise<string> {
    const { value, done } = await this.#lines.next();
    return done ? assert.fail(`it ended: ${await this.#errors}`) : value;
  }

  async exit(): Promise<number | null> {
    const exited = once(this.#child, "exit");
    this.#child.stdin!.end();
    return (await exited)[0];
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }
}
