import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { functionQueue } from "../../src/agents/queue.ts";
import { documentQueues } from "../../src/documents/queues.ts";
import { embeddingQueue } from "../../src/embeddings/queue.ts";
import {
  type Database,
  migrate,
  openDatabase,
  prepareQueue,
  type Queue,
  readMigrations,
} from "../../src/index.ts";
import { itemQueues } from "../../src/ingest/queue.ts";
import { indexPrefix } from "../../src/queue/declaration.ts";
import { compileQueue } from "../../src/queue/statements.ts";
import { ragQueue } from "../../src/rag/queue.ts";

const QUEUES: readonly Queue[] = [
  ...Object.values(documentQueues({ staleMs: 60_000 })),
  ...Object.values(itemQueues({ machine: "here" })),
  embeddingQueue({ model: "model", staleMs: 60_000 }),
  functionQueue({ staleMs: 60_000, taskStaleMs: 60_000, taskRetentionDays: 7 }),
  ragQueue({ staleMs: 60_000 }),
] as readonly Queue[];

/** The designs have indexes of their own, on the status alone among others: each holds every row that waits or is done. */
describe("SQLite takes the engine's index on the tables of the product", () => {
  let database: Database;
  before(async () => {
    database = openDatabase(":memory:");
    await migrate(database, readMigrations(join(import.meta.dirname, "../../migrations/sqlite")));
    for (const queue of QUEUES) await prepareQueue(database, queue);
  });
  after(() => database.close());

  for (const queue of QUEUES) {
    it(queue.name, async () => {
      const { pick, rescue, promote, nextDue, retry, lookUp, cancel, fail, release, extend, complete } =
        compileQueue(queue, database.dialect);
      const made = (purpose: string) => `${indexPrefix(queue)}_${purpose}_[0-9a-f]{6}`;
      const found = {
        pick: made("ready"),
        rescue: queue.lease.index ?? made("lease"),
        promote: made("delayed"),
        nextDue: made("delayed"),
      };
      const named = { retry, lookUp, cancel, fail, release, extend, complete };
      for (const [verb, { sql }] of Object.entries({ pick, rescue, promote, nextDue, ...named })) {
        const plan = (await database.query(`explain query plan ${sql}`)).map(({ detail }) => String(detail));
        const lines = plan.filter((line) => / t( |$)/.test(line));
        const byKey = /^SEARCH t USING (INTEGER PRIMARY KEY|(COVERING )?INDEX sqlite_autoindex_\w+_1) /;
        const index = found[verb as keyof typeof found];
        const isMeant = (line: string) => new RegExp(`USING (COVERING )?INDEX ${index}( |$)`).test(line);
        const what = `${verb}: ${plan.join("; ")}`;
        assert.ok(lines.length > 0 && lines.every((line) => byKey.test(line) || isMeant(line)), what);
        if (index) assert.ok(lines.some(isMeant), what);
      }
    });
  }
});
