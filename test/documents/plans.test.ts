import assert from "node:assert/strict";
import { test } from "node:test";
import { documentQueues } from "../../src/documents/queues.ts";
import { type Database, prepareQueue, type Queue } from "../../src/index.ts";
import { compileQueue } from "../../src/queue/statements.ts";
import { DATABASES } from "../support/databases.ts";

const queues = documentQueues({ staleMs: 120_000 });

for (const { name, open } of DATABASES) {
  test(`on ${name}, a claim of every lane walks its ready index, beside all the indexes of the design`, async () => {
    const { database, close } = await open();
    for (const queue of Object.values(queues) as Queue[]) {
      await prepareQueue(database, queue);
      const plan = await planOfClaim(database, queue);
      assert.match(plan, /_ready_[0-9a-f]{6}/, `${queue.name}: ${plan}`);
      assert.doesNotMatch(plan, /TEMP B-TREE|Sort|Seq Scan on (documents|task)/, `${queue.name}: ${plan}`);
    }
    await close();
  });
}

async function planOfClaim(database: Database, queue: Queue): Promise<string> {
  const { sql } = compileQueue(queue, database.dialect).pick;
  const rows =
    database.dialect.name === "sqlite"
      ? await database.query(`explain query plan ${sql}`, [10])
      : await database.transaction(async (transaction) => {
          await transaction.query(`prepare claim as ${sql}`);
          const plan = await transaction.query("explain execute claim(null, 'w', 1000, 10)");
          await transaction.query("deallocate claim");
          return plan;
        });
  return rows.map((row) => Object.values(row).join(" ")).join("\n");
}
