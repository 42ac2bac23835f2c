import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { after, before, beforeEach, describe, it } from "node:test";
import type { IndexFilter, Point, VectorStore } from "../../../src/adapters/vectors.ts";

export const SUITE_DIMENSIONS = 16;

/** What every vector store must do, whatever it is made of. `open` gives an empty one. */
export function testVectorStore(
  name: string,
  open: () => Promise<{ store: VectorStore; close: () => Promise<void> }>,
): void {
  describe(`vectors in ${name}`, () => {
    let store: VectorStore;
    let close: () => Promise<void>;
    /** Each test has tenants of its own. */
    let tenant: string;
    before(async () => {
      ({ store, close } = await open());
    });
    after(() => close());
    beforeEach(() => {
      tenant = `tenant ${randomUUID()}`;
    });

    const point = (angle: number, more: Partial<Point> = {}): Point => ({
      chunkId: chunkId(angle),
      documentId: randomUUID(),
      tenant,
      collection: "papers",
      vector: at(angle),
      ...more,
    });
    const near = async (angle: number, filter: Partial<IndexFilter> = {}, limit = 10) =>
      (await store.search(at(angle), { limit, filter: { tenant, ...filter } })).map((hit) => hit.chunkId);

    it("finds the nearest first, with the cosine's order as score", async () => {
      const documentId = randomUUID();
      await store.upsert([50, 0, 30, 10, 80].map((angle) => point(angle, { documentId })));
      const hits = await store.search(at(12), { limit: 3, filter: { tenant } });
      assert.deepEqual(
        hits.map((hit) => hit.chunkId),
        [10, 0, 30].map(chunkId),
      );
      assert.ok(hits.every((hit) => hit.documentId === documentId));
      assert.ok(hits[0]!.score > hits[1]!.score && hits[1]!.score > hits[2]!.score);
    });

    it("keeps one point a chunk however often it is written", async () => {
      const written = point(10);
      await store.upsert([written, point(50)]);
      await store.upsert([written]);
      await store.upsert([point(60), { ...written, vector: at(80) }, { ...written, vector: at(81) }]);
      assert.equal(await store.count({ tenant }), 3);
      assert.deepEqual(await near(85, {}, 2), [chunkId(10), chunkId(60)]);
    });

    it("takes a batch of hundreds", async () => {
      const batch = Array.from({ length: 500 }, (_none, index) => point(index, { vector: scattered(index) }));
      await store.upsert(batch);
      assert.equal(await store.count({ tenant }), 500);
      for (const index of [0, 77, 499]) {
        const [nearest] = await store.search(scattered(index), { limit: 1, filter: { tenant } });
        assert.equal(nearest!.chunkId, chunkId(index));
      }
      assert.equal((await near(20, {}, 100)).length, 100);
    });

    it("removes a document's points and no others, and does not mind doing it again", async () => {
      const [mine, other] = [randomUUID(), randomUUID()];
      await store.upsert([point(10, { documentId: mine }), point(20, { documentId: mine })]);
      await store.upsert([point(30, { documentId: other })]);
      for (let round = 0; round < 2; round++) {
        await store.remove({ documentId: mine });
        assert.deepEqual(await near(0), [chunkId(30)]);
        assert.equal(await store.count({ tenant }), 1);
      }
    });

    it("removes only the chunks that are named", async () => {
      const documentId = randomUUID();
      await store.upsert([10, 20, 30].map((angle) => point(angle, { documentId })));
      await store.remove({ documentId, chunkIds: [chunkId(20), "one that never was"] });
      await store.remove({ documentId, chunkIds: [] });
      assert.deepEqual(await near(0), [10, 30].map(chunkId));
    });

    it("keeps the same chunk of two documents apart, whichever is written last", async () => {
      const [old, successor] = [randomUUID(), randomUUID()];
      await store.upsert([point(10, { documentId: successor })]);
      await store.upsert([10, 20].map((angle) => point(angle, { documentId: old })));
      assert.equal(await store.count({ tenant, documentIds: [old] }), 2);
      await store.remove({ documentId: old });
      const hits = await store.search(at(0), { limit: 10, filter: { tenant } });
      assert.deepEqual(
        hits.map((hit) => [hit.chunkId, hit.documentId]),
        [[chunkId(10), successor]],
      );
    });

    it("moves a chunk that is written into another collection", async () => {
      const written = point(10);
      await store.upsert([written]);
      await store.upsert([{ ...written, collection: "letters" }]);
      assert.deepEqual(await near(0, { collection: "papers" }), []);
      assert.deepEqual(await near(0, { collection: "letters" }), [chunkId(10)]);
      assert.equal(await store.count({ tenant }), 1);
    });

    it("shows a tenant nothing of the others, even where ids are the same", async () => {
      const [mine, theirs] = [point(40), point(10, { tenant: `${tenant} of others` })];
      await store.upsert([mine, theirs, { ...mine, tenant: theirs.tenant, documentId: theirs.documentId }]);
      assert.deepEqual(await near(10), [chunkId(40)]);
      assert.equal(await store.count({ tenant }), 1);
      assert.deepEqual(await near(10, { documentIds: [theirs.documentId] }), []);
      assert.deepEqual(await near(10, { tenant: "nobody" }), []);
      await store.remove({ documentId: theirs.documentId });
      assert.deepEqual(await near(10), [chunkId(40)]);
    });

    it("filters inside the search: few points among many that are nearer are all found", async () => {
      const crowd = Array.from({ length: 2_000 }, (_none, index) =>
        point(index / 1_000, { documentId: CROWD, chunkId: `crowd ${index}` }),
      );
      for (let start = 0; start < crowd.length; start += 500)
        await store.upsert(crowd.slice(start, start + 500));
      const few = [70, 72, 74].map((angle) => point(angle, { collection: "rare" }));
      await store.upsert(few);
      assert.deepEqual(await near(1, { collection: "rare" }), [70, 72, 74].map(chunkId));
      const documentIds = few.slice(1).map(({ documentId }) => documentId);
      assert.deepEqual(await near(1, { documentIds }), [72, 74].map(chunkId));
      assert.deepEqual(await near(1, { documentIds, collection: "papers" }), []);
      assert.deepEqual(await near(1, { documentIds: [] }), []);
      assert.equal((await near(1, { documentIds: [CROWD] })).length, 10);
      assert.equal(await store.count({ tenant, collection: "rare" }), 3);
      assert.equal(await store.count({ tenant, documentIds }), 2);
    });

    it("holds nothing after it was cleared, and takes what comes then", async () => {
      const written = point(10);
      await store.upsert([written, point(20, { collection: "letters" })]);
      await store.clear();
      assert.equal(await store.count({ tenant }), 0);
      assert.deepEqual(await near(0), []);
      await store.upsert([written]);
      assert.deepEqual(await near(0), [chunkId(10)]);
    });

    it("refuses vectors that cannot be compared", async () => {
      const wrong = [new Float32Array(3).fill(1), new Float32Array(SUITE_DIMENSIONS), at(Number.NaN)];
      for (const vector of wrong) {
        await assert.rejects(store.upsert([point(10, { vector })]), { code: "invalid_input" });
        await assert.rejects(store.search(vector, { limit: 1, filter: { tenant } }), {
          code: "invalid_input",
        });
      }
      assert.equal(await store.count({ tenant }), 0);
    });
  });
}

const CROWD = randomUUID();

/** Points on a quarter circle, so that the difference of angles is the order of nearness. */
function at(degrees: number): Float32Array {
  const vector = new Float32Array(SUITE_DIMENSIONS);
  vector[3] = Math.cos((degrees * Math.PI) / 180);
  vector[11] = Math.sin((degrees * Math.PI) / 180);
  return vector;
}

/** A direction of its own for each number. */
function scattered(seed: number): Float32Array {
  const bytes = createHash("sha256").update(`direction ${seed}`).digest();
  return Float32Array.from({ length: SUITE_DIMENSIONS }, (_none, index) => bytes[index]! - 127.5);
}

function chunkId(angle: number): string {
  return createHash("sha256").update(String(angle)).digest("hex");
}
