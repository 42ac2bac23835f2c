import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import {
  createJanitor,
  done,
  failed,
  type Key,
  openQueue,
  type QueueStore,
  released,
  retry,
} from "../../../src/index.ts";
import { chunks, type Fixture, pageOcr, pageVector, rowOf } from "../fixture.ts";

export function testParents(fixture: () => Fixture): void {
  describe("parents follow their children", () => {
    let store: QueueStore<{ position: number }>;

    beforeEach(async () => {
      await fixture().reset();
      const { database } = fixture();
      store = openQueue(database, chunks);
      await database.query("insert into books (id) values (1), (2)");
      await database.query("insert into sections (id, book_id) values (1, 1), (2, 1), (3, 2)");
    });

    const enqueue = async (...sections: number[]): Promise<Key[]> =>
      (await store.enqueue(sections.map((section_id, position) => ({ section_id, position })))).map(
        ({ key }) => key,
      );
    const claim = (limit: number) => store.claim({ worker: "w", limit });
    const section = async (id: number) => (await rowOf(fixture().database, "sections", id)).status;
    const book = async (id: number) => (await rowOf(fixture().database, "books", id)).status;
    const family = async () => [await section(1), await section(2), await book(1)];

    it("rule 1: any child running makes them running, through every level", async () => {
      await enqueue(1, 1, 2);
      await claim(1);
      assert.deepEqual(await family(), ["processing", "pending", "processing"]);
      assert.equal(await book(2), "pending");
    });

    it("rule 2: none running and any pending makes them pending", async () => {
      await enqueue(1, 1, 2);
      const [first] = await claim(1);
      await store.settle([{ claim: first!, outcome: done() }]);
      assert.deepEqual(await family(), ["pending", "pending", "pending"]);
    });

    it("rule 3: all completed makes them completed", async () => {
      await enqueue(1, 1, 2);
      const claims = await claim(3);
      await store.settle(claims.map((c) => ({ claim: c, outcome: done() })));
      assert.deepEqual(await family(), ["completed", "completed", "completed"]);
      assert.notEqual((await rowOf(fixture().database, "books", 1)).finished_at, null);
    });

    it("rule 4: any failed and none open makes them failed", async () => {
      await enqueue(1, 1, 2);
      const [a, b, c] = await claim(3);
      await store.settle([
        { claim: a!, outcome: failed("bad page") },
        { claim: b!, outcome: done() },
        { claim: c!, outcome: done() },
      ]);
      assert.deepEqual(await family(), ["failed", "completed", "failed"]);
    });

    it("a failed child does not hide that others are still open", async () => {
      await enqueue(1, 1, 2);
      const [a] = await claim(1);
      await store.settle([{ claim: a!, outcome: failed("bad page") }]);
      assert.deepEqual(await family(), ["pending", "pending", "pending"]);
    });

    it("a retry, a release and a rescue make them pending again", async () => {
      for (const outcome of [retry("x", 0), released()]) {
        await fixture().reset();
        await fixture().database.query("insert into books (id) values (1)");
        await fixture().database.query("insert into sections (id, book_id) values (1, 1)");
        await enqueue(1);
        const [c] = await claim(1);
        assert.equal(await book(1), "processing");
        await store.settle([{ claim: c!, outcome }]);
        assert.equal(await book(1), "pending");
      }
      await claim(1);
      fixture().clock.advance(60_001);
      await store.rescueStale();
      assert.deepEqual([await section(1), await book(1)], ["pending", "pending"]);
    });

    it("a manual retry reopens finished parents", async () => {
      const [key] = await enqueue(1, 2);
      const claims = await claim(2);
      await store.settle([
        { claim: claims[0]!, outcome: failed("x") },
        { claim: claims[1]!, outcome: done() },
      ]);
      assert.deepEqual(await family(), ["failed", "completed", "failed"]);
      await store.retry([key!]);
      assert.deepEqual(await family(), ["pending", "completed", "pending"]);
      assert.equal((await rowOf(fixture().database, "books", 1)).finished_at, null);
    });

    it("cancelling the last open child completes them", async () => {
      const keys = await enqueue(1, 1);
      const [c] = await claim(1);
      await store.settle([{ claim: c!, outcome: done() }]);
      await store.cancel([keys[1]!]);
      assert.deepEqual([await section(1), await book(1)], ["completed", "pending"]);
    });

    it("cancelling all children completes what was open", async () => {
      const keys = await enqueue(1, 1);
      await claim(1);
      await store.cancel(keys);
      assert.equal(await section(1), "completed");
      assert.equal(await store.repair(), 0);
      assert.equal(await section(2), "pending", "a parent that has no children yet is left alone");
    });

    it("pruning children leaves parents that have none as they were", async () => {
      await enqueue(1);
      const [c] = await claim(1);
      await store.settle([{ claim: c!, outcome: failed("x") }]);
      fixture().clock.advance(10_000);
      assert.equal(await store.prune({ failedOlderThanMs: 5_000 }), 1);
      assert.equal(await section(1), "failed");
    });

    it("a settlement that is refused moves no parent", async () => {
      await enqueue(1);
      const [zombie] = await claim(1);
      fixture().clock.advance(60_001);
      await store.rescueStale();
      await store.settle([{ claim: zombie!, outcome: done() }]);
      assert.equal(await section(1), "pending");
    });

    it("children without a parent are settled all the same", async () => {
      const [row] = await store.enqueue([{ position: 1 }]);
      const [c] = await claim(1);
      assert.equal(c!.key, row!.key);
      assert.deepEqual(await store.settle([{ claim: c!, outcome: done() }]), ["done"]);
    });

    it("a parent's start and end are noted, and two phases keep theirs apart", async () => {
      const { database, clock } = fixture();
      const [ocr, vector] = [openQueue(database, pageOcr), openQueue(database, pageVector)];
      await database.query("insert into documents (id) values (7)");
      await ocr.enqueue([{ document_id: 7 }, { document_id: 7 }]);
      const document = () => rowOf(database, "documents", 7);
      const claims = await ocr.claim({ worker: "w", limit: 2 });
      const startedAt = (await document()).ocr_started_at;
      assert.equal((await document()).ocr_status, "processing");
      assert.notEqual(startedAt, null);
      clock.advance(1_000);
      await ocr.settle([{ claim: claims[0]!, outcome: done() }]);
      await vector.claim({ worker: "w", limit: 1 });
      await ocr.settle([{ claim: claims[1]!, outcome: done() }]);
      const row = await document();
      assert.deepEqual(
        [row.ocr_status, row.vector_status, row.ocr_started_at],
        ["completed", "processing", startedAt],
      );
      assert.notEqual(row.ocr_completed_at, null);
    });

    it("the janitor mends parents that were changed by hand, at every level", async () => {
      const { database } = fixture();
      await enqueue(1, 2, 3);
      const claims = await claim(3);
      await store.settle(claims.map((c) => ({ claim: c, outcome: done() })));
      await database.query("update sections set status = 'failed' where id = 2");
      await database.query("update books set status = 'processing' where id = 2");
      const sweep = await createJanitor({ database, queues: [chunks] }).sweep();
      assert.equal(sweep.mended, 2);
      assert.deepEqual(
        [await section(2), await book(1), await book(2)],
        ["completed", "completed", "completed"],
      );
    });

    it("repair walks over more parents than fit one step", async () => {
      const { database } = fixture();
      await database.query(
        `insert into sections (id, book_id) values ${Array.from({ length: 30 }, (_u, n) => `(${100 + n}, 2)`).join(", ")}`,
      );
      await enqueue(...Array.from({ length: 30 }, (_u, n) => 100 + n));
      await database.query("update sections set status = 'failed' where id >= 100");
      let mended = 0;
      for (let step = 0; step < 10; step++) mended += await store.repair({ limit: 7 });
      assert.equal(mended, 30);
      assert.equal(
        (await database.query("select 1 from sections where id >= 100 and status <> 'pending'")).length,
        0,
      );
    });
  });
}
