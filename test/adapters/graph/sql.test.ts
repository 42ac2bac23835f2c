import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, it } from "node:test";
import { openSqlGraph } from "../../../src/adapters/graph/sql.ts";
import type { Database } from "../../../src/index.ts";
import { DATABASES } from "../../support/databases.ts";
import { seededRandom } from "../../support/random.ts";
import { testGraphStore } from "./conformance.ts";

for (const { name, open } of DATABASES) {
  testGraphStore(name, async () => {
    const { database, close } = await open();
    return { graph: openSqlGraph(database), close };
  });

  describe(`writers of one graph in ${name}`, () => {
    it("wait for each other, but never in a ring", async (t) => {
      const { database, close } = await open();
      t.after(close);
      const runs = { asked: 0, made: 0 };
      const graph = openSqlGraph(counting(database, runs));
      const random = seededRandom(5);
      const names = Array.from({ length: 30 }, (_none, number) => `Name ${number}`);
      const puts = Array.from({ length: 60 }, () => {
        const entities = names
          .filter(() => random() < 0.5)
          .sort(() => random() - 0.5)
          .map((entity, index) => ({
            name: entity,
            type: "person",
            confidence: 1,
            start: index,
            end: index + 1,
          }));
        const relations = entities.slice(1).map((_entity, index) => ({
          source: index,
          target: index + 1,
          type: "knew",
          confidence: 1,
          start: index,
          end: index + 1,
        }));
        return graph.put([
          {
            chunkKey: randomUUID(),
            chunkId: randomUUID(),
            documentId: randomUUID(),
            tenant: "tenant",
            collection: "c",
            extraction: { entities, relations },
          },
        ]);
      });
      await Promise.all(puts);
      assert.deepEqual(runs, { asked: 60, made: 60 }, "a deadlock would have run a transaction again");
    });
  });
}

function counting(database: Database, runs: { asked: number; made: number }): Database {
  return {
    ...database,
    dialect: database.dialect,
    clock: database.clock,
    query: (statement, params) => database.query(statement, params),
    transaction: (work) => {
      runs.asked++;
      return database.transaction((transaction) => {
        runs.made++;
        return work(transaction);
      });
    },
  };
}
