import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, describe, it } from "node:test";
import { LimitsByService } from "../../src/adapters/model-limits.ts";
import { agentLane } from "../../src/agents/lane.ts";
import { functionQueue } from "../../src/agents/queue.ts";
import { type Asking, openAsking } from "../../src/asking.ts";
import { loadSettings } from "../../src/config.ts";
import { Crew } from "../../src/index.ts";
import { silentLog } from "../../src/log.ts";
import { WorkerProcesses } from "../../src/queue/worker-processes.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import { type Office, openOffice, RULES } from "./office.ts";

interface Looked {
  readonly signal: AbortSignal;
  /** Lets it find nothing. */
  readonly end: () => void;
}

for (const { name, open } of DATABASES) {
  describe(`questions that are worked on where they are asked, on ${name}`, () => {
    let test: TestDatabase;
    let office: Office;
    let asking: Asking;
    let crews = 0;
    let looks: (Looked & { readonly query: string })[] = [];
    let isLooked = Promise.withResolvers<void>();

    before(async () => {
      test = await open();
      office = await openOffice(test);
      const { database, url } = test;
      const { registry, tasks } = office;
      const queue = functionQueue(RULES);
      const processes = new WorkerProcesses(database, { silentMs: RULES.staleMs });
      const { settings } = loadSettings({ given: { databaseUrl: url }, env: {} });
      asking = openAsking({
        ...{ settings, log: silentLog, limits: new LimitsByService({}), database, tasks, registry },
        search: {
          search: async ({ query }, signal) => {
            const { promise, resolve } = Promise.withResolvers<void>();
            looks.push({ query, signal: signal!, end: resolve });
            isLooked.resolve();
            signal!.addEventListener("abort", () => resolve());
            await promise;
            signal!.throwIfAborted();
            return { results: [], warnings: [] } as never;
          },
        },
        index: async () => ({ embedder: {} as never, fulltext: { search: async () => [] } as never }),
        workers: () => processes.list(),
        work: () => {
          crews++;
          const lanes = [agentLane({ queue, registry, tasks, tasksAtOnce: 8, pollMs: 50 })];
          const every = { heartbeatMs: 10_000, checkEveryMs: 60_000, pollMs: 50, staleMs: RULES.staleMs };
          return new Crew({ database, lanes, ...every, graceMs: 50 }).start();
        },
      });
    });
    after(async () => {
      await asking.close();
      await test.close();
    });

    const looked = async (query: string): Promise<Looked> => {
      for (;;) {
        const found = looks.find((look) => look.query.includes(query));
        if (found) return found;
        isLooked = Promise.withResolvers();
        await isLooked.promise;
      }
    };

    it("whoever has the answer first neither waits for the others nor stops what runs for them", async () => {
      const quick = asking.ask("Which stone is quick?");
      const first = await looked("quick");
      const slow = asking.ask("Which stone is slow?");
      const second = await looked("slow");
      first.end();
      assert.equal((await quick).status, "COMPLETED");
      assert.equal(second.signal.aborted, false);
      second.end();
      assert.equal((await slow).status, "COMPLETED");
      assert.deepEqual([looks.length, crews], [2, 1]);
    });

    it("whoever goes away stops nobody else's either; the last one leaves nothing running", async () => {
      looks = [];
      const gone = new AbortController();
      const away = asking.ask("Which stone is away?", { signal: gone.signal });
      const first = await looked("away");
      const slow = asking.ask("Which stone is slow?");
      const second = await looked("slow");
      gone.abort();
      await assert.rejects(away);
      if (!first.signal.aborted) await once(first.signal, "abort");
      assert.equal(second.signal.aborted, false);
      second.end();
      assert.equal((await slow).status, "COMPLETED");
      assert.deepEqual([looks.length, crews], [2, 2]);
      const processes = new WorkerProcesses(test.database, { silentMs: RULES.staleMs });
      assert.deepEqual(await processes.list(), []);
    });
  });
}
