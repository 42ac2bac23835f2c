import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { openDatabase } from "../../src/index.ts";
import { migrateTest } from "../support/migrated.ts";

/** Reads every table, writes a rule, and says what its trigger made of it. */
const LOOK = `
import sqlite3, sys
database = sqlite3.connect(sys.argv[1])
for name, in database.execute("select name from sqlite_master where type in ('table', 'view')").fetchall():
    database.execute(f'select * from "{name}" limit 1').fetchall()
database.execute("insert into rules (rule_id, title, guidance, priority) values ('R1', 'a title', 'and guidance', 'critical')")
database.commit()
print(*database.execute("select status, priority, input_text from embedding_jobs").fetchone(), sep="|")
`;

describe("other programs with a SQLite of their own", () => {
  it("Python's reads the database, and a rule that it writes makes its job", async () => {
    const folder = await mkdtemp(join(tmpdir(), "quarry-older-"));
    const file = join(folder, "quarry.db");
    const database = openDatabase(file);
    await migrateTest(database, "sqlite");
    await database.close();
    const said = execFileSync("python3", ["-c", LOOK, file], { encoding: "utf8" });
    assert.equal(said.trim(), "pending|urgent|a title and guidance");
    await rm(folder, { recursive: true });
  });
});
