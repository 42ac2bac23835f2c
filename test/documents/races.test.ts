import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { after, before, describe, test } from "node:test";
import { redoPhase } from "../../src/documents/changes.ts";
import { documentQueues, type Phase } from "../../src/documents/queues.ts";
import { removeDocuments } from "../../src/documents/remove.ts";
import { done, type Outcome, openDatabase, prepareQueue } from "../../src/index.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import { chunkOutcome, growTree, openStores, plantDocument, splitOutcome } from "./tree.ts";

const queues = documentQueues({ staleMs: 120_000 });

describe("changes that meet a settlement half-way, on PostgreSQL", () => {
  let opened: TestDatabase;
  before(async () => {
    opened = await DATABASES.find(({ name }) => name === "PostgreSQL")!.open();
    for (const queue of Object.values(queues)) await prepareQueue(opened.database, queue);
  });
  after(() => opened.close());

  for (const phase of ["ocr", "vector"] as const satisfies Phase[]) {
    test(`redo from ${phase} on, while a page's chunks are written but not yet committed`, async () => {
      const { database } = opened;
      await database.query("delete from documents");
      const stores = openStores(database, queues);
      const id = await plantDocument(stores);
      const all = { worker: "w", limit: 10 };
      const [document] = await stores.split.claim(all);
      await stores.split.settle([
        { claim: document!, outcome: splitOutcome(stores, document!, { pages: [2] }) },
      ]);
      const [page] = await stores.pageOcr.claim(all);
      await stores.pageOcr.settle([{ claim: page!, outcome: done({ page_file_path: "x" }) }]);
      const [chunking] = await stores.pageChunk.claim(all);

      // The redo runs outside the transaction that it is started from, as another process would.
      const outside = AsyncLocalStorage.snapshot();
      let redo: Promise<void> | undefined;
      const outcome = chunkOutcome(stores, chunking!, 2) as Outcome & { kind: "done" };
      const meeting: Outcome = {
        ...outcome,
        also: async (transaction) => {
          await outcome.also!(transaction);
          redo = outside(() => redoPhase({ database, queues }, id, phase));
          await otherWaits();
        },
      };
      await stores.pageChunk.settle([{ claim: chunking!, outcome: meeting }]);
      await redo;

      assert.deepEqual(
        await database.query("select id from task_queue_chunk"),
        [],
        "no chunk is left behind",
      );
      await growTree(database, queues, { pages: [1] });
      assert.deepEqual(await stores.chunkVector.claim(all), [], "and other documents' chunks go on");
    });
  }

  test("a document that is deleted while a chunk of it is settled", async () => {
    const { database } = opened;
    await database.query("delete from documents");
    const { documentId } = await growTree(database, queues, { pages: [1] });
    await database.query("update task_queue_chunk set graphrag_status = 'pending'");
    const stores = openStores(database, queues);
    const [claim] = await stores.chunkGraphrag.claim({ worker: "w", limit: 1 });
    const outside = AsyncLocalStorage.snapshot();
    let deleted: Promise<unknown> | undefined;
    const outcome: Outcome = {
      kind: "done",
      also: async () => {
        deleted = outside(() => removeDocuments({ database, queues }, [documentId]));
        await otherWaits();
      },
    };
    assert.deepEqual(await stores.chunkGraphrag.settle([{ claim: claim!, outcome }]), ["done"]);
    await deleted;
    assert.deepEqual(await database.query("select id from documents"), []);
    assert.deepEqual(await database.query("select id from task_queue_chunk"), []);
  });

  /** Until a session waits for what this transaction holds; asked over a connection of its own. */
  async function otherWaits(): Promise<void> {
    const watcher = openDatabase(opened.url);
    const sql =
      "select 1 as found from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
    while ((await watcher.query(sql)).length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    await watcher.close();
  }
});
