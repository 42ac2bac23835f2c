import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { clusteredVectors, scatteredVectors } from "../../support/vectors.ts";
import { freshIndex } from "../index-file.ts";
import { SUITE_DIMENSIONS, testVectorStore } from "./conformance.ts";
import { DOCUMENTS, fill, recallOf, TENANT } from "./recall.ts";

testVectorStore("a file", async () => {
  const { index, close } = await freshIndex({ dimensions: SUITE_DIMENSIONS });
  return { store: index.vectors, close };
});

describe("how well a file of vectors finds the nearest", () => {
  const size = { count: 20_000, queries: 25, dimensions: 384 };
  const sets = { scattered: scatteredVectors, clustered: clusteredVectors };
  for (const [name, make] of Object.entries(sets)) {
    it(`finds at least 98 of 100 among ${name} vectors`, async (t) => {
      const { index, close } = await freshIndex({ dimensions: size.dimensions });
      t.after(close);
      const set = make(size);
      await fill(index.vectors, set.vectors);
      for (const limit of [10, 100]) {
        const recall = await recallOf(index.vectors, set, { limit });
        t.diagnostic(`recall@${limit}: ${recall.toFixed(4)}`);
        assert.ok(recall >= 0.98, `recall@${limit} is ${recall}`);
      }
    });
  }

  it("is exact when there are few", async (t) => {
    const { index, close } = await freshIndex({ dimensions: 100 });
    t.after(close);
    const set = scatteredVectors({ count: 300, queries: 30, dimensions: 100 });
    await fill(index.vectors, set.vectors);
    assert.equal(await recallOf(index.vectors, set, { limit: 20 }), 1);
  });
});

describe("vectors that come and go", () => {
  const operations = fc.array(
    fc.record({
      chunks: fc.array(fc.nat(700), { minLength: 1, maxLength: 400 }),
      document: fc.nat(2),
      collection: fc.constantFrom("a", "b"),
      kind: fc.constantFrom("upsert", "upsert", "remove", "remove all"),
    }),
    { maxLength: 12 },
  );

  it("leave an index that holds exactly what is left", async () => {
    const vectors = scatteredVectors({ count: 701, queries: 0, dimensions: SUITE_DIMENSIONS }).vectors;
    await fc.assert(
      fc.asyncProperty(operations, async (steps) => {
        const { index, close } = await freshIndex({ dimensions: SUITE_DIMENSIONS });
        try {
          const left = new Map<string, { chunkId: string; documentId: string; collection: string }>();
          for (const { chunks, document, collection, kind } of steps) {
            const documentId = DOCUMENTS[document]!;
            const chunkIds = chunks.map(String);
            if (kind === "upsert") {
              const place = { documentId, tenant: TENANT, collection };
              await index.vectors.upsert(
                chunks.map((chunk) => ({ ...place, chunkId: String(chunk), vector: vectors[chunk]! })),
              );
              for (const chunkId of chunkIds)
                left.set(`${documentId} ${chunkId}`, { chunkId, documentId, collection });
            } else {
              const isAll = kind === "remove all";
              await index.vectors.remove({ documentId, ...(!isAll && { chunkIds }) });
              for (const [key, one] of left)
                if (one.documentId === documentId && (isAll || chunkIds.includes(one.chunkId)))
                  left.delete(key);
            }
          }
          for (const collection of ["a", "b"]) {
            const filter = { tenant: TENANT, collection };
            const wanted = [...left].filter(([, one]) => one.collection === collection);
            assert.equal(await index.vectors.count(filter), wanted.length);
            const found = await index.vectors.search(vectors[0]!, { limit: 1_000, filter });
            assert.deepEqual(
              new Set(found.map((hit) => `${hit.documentId} ${hit.chunkId}`)),
              new Set(wanted.map(([key]) => key)),
            );
          }
        } finally {
          await close();
        }
      }),
      { numRuns: 25 },
    );
  });
});
