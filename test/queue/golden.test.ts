import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { describe, it } from "node:test";
import type { Database, Statement } from "../../src/database/database.ts";
import { type Dialect, postgresDialect, sqliteDialect } from "../../src/database/dialect.ts";
import { indexesOf, openDatabase } from "../../src/index.ts";
import { compileLevels } from "../../src/queue/roll-up.ts";
import { compileCompletion, compileQueue } from "../../src/queue/statements.ts";
import { compileTurnStatements } from "../../src/queue/turns.ts";
import { freshPostgres } from "../support/postgres.ts";
import { QUEUES, schema } from "./fixture.ts";

/** Everything the fixture's declarations compile to. `UPDATE_GOLDEN=1` writes the files anew. */
function statementsOf(dialect: Dialect): Statement[] {
  return QUEUES.flatMap((queue) => [
    ...Object.values(compileQueue(queue, dialect)).filter((statement) => statement !== undefined),
    ...(queue.results.length > 0
      ? Object.values(compileCompletion(queue, dialect, queue.results)).filter(
          (statement) => statement !== undefined,
        )
      : []),
    ...compileLevels(queue, dialect).flatMap((level) => [
      level.lock,
      level.derive,
      ...level.write.values(),
      level.page,
    ]),
    ...Object.values(compileTurnStatements(queue, dialect) ?? {}).filter(
      (statement) => statement !== undefined,
    ),
  ]);
}

function golden(dialect: Dialect): string {
  const indexes = QUEUES.flatMap((queue) => indexesOf(queue, dialect).map((index) => `${index.sql};\n`));
  const statements = statementsOf(dialect).map(({ name, sql }) => `-- ${name}\n${sql};\n`);
  return [...indexes, ...statements].join("\n");
}

describe("golden SQL", () => {
  for (const dialect of [sqliteDialect, postgresDialect]) {
    it(`${dialect.name}: declarations compile to the statements on file`, () => {
      const file = new URL(`golden/${dialect.name}.sql`, import.meta.url);
      if (process.env.UPDATE_GOLDEN) writeFileSync(file, golden(dialect));
      assert.equal(golden(dialect), readFileSync(file, "utf8"));
    });
  }

  it("SQLite accepts every statement", async () => {
    const database = openDatabase(":memory:");
    for (const sql of schema("sqlite")) await database.query(sql);
    for (const { sql } of statementsOf(sqliteDialect)) await database.query(`explain ${sql}`);
    await database.close();
  });

  it("PostgreSQL accepts every statement", async () => {
    const { url, drop } = await freshPostgres();
    const database: Database = openDatabase(url);
    for (const sql of schema("postgres")) await database.query(sql);
    for (const [index, { sql }] of statementsOf(postgresDialect).entries()) {
      await database.query(`prepare golden_${index} as ${sql}`);
    }
    await database.close();
    await drop();
  });
});
