import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { QdrantClient } from "@qdrant/js-client-rest";
import { openQdrantVectors, type QdrantSettings } from "../../../src/adapters/vectors/qdrant.ts";
import { qdrantNames } from "../../../src/adapters/vectors/qdrant-names.ts";
import { findQdrant, type QdrantServer, startQdrant } from "../../support/qdrant.ts";
import { clusteredVectors, scatteredVectors } from "../../support/vectors.ts";
import { SUITE_DIMENSIONS, testVectorStore } from "./conformance.ts";
import { fill, recallOf } from "./recall.ts";

async function openStore(more: Partial<QdrantSettings> = {}) {
  const server = await findQdrant();
  return openQdrantVectors({
    ...{ ...server, namespace: randomUUID(), model: "test", dimensions: SUITE_DIMENSIONS },
    ...more,
  });
}

testVectorStore("Qdrant", async () => {
  const store = await openStore();
  return { store, close: () => store.clear() };
});

const TENANT = "tenant";
const direction = (angle: number) =>
  Float32Array.from({ length: SUITE_DIMENSIONS }, (_none, at) => Math.cos(angle + at));
const point = (chunkId: string, more: { documentId?: string; collection?: string } = {}) => ({
  chunkId,
  documentId: randomUUID(),
  tenant: TENANT,
  collection: "c",
  vector: direction(chunkId.length),
  ...more,
});

describe("a Qdrant that others use too", () => {
  it("keeps Quarries, models and collections apart, whatever they are called", async (t) => {
    const namespace = randomUUID();
    const mine = await openStore({ namespace });
    const others = { namespace: await openStore(), model: await openStore({ namespace, model: "other" }) };
    t.after(() => Promise.all([mine.clear(), others.namespace.clear()]));
    const names = ["a/b", "a:b", "a b", "a-b", "A-B", "石", "灰", "x".repeat(100), `${"x".repeat(99)}y`];
    for (const collection of names) await mine.upsert([point("one", { collection })]);
    assert.equal(await mine.count({ tenant: TENANT }), names.length);
    for (const collection of names)
      assert.equal(await mine.count({ tenant: TENANT, collection }), 1, collection);
    for (const [what, other] of Object.entries(others))
      assert.equal(await other.count({ tenant: TENANT }), 0, what);
    await others.namespace.upsert([point("theirs")]);
    await mine.clear();
    assert.equal(await others.namespace.count({ tenant: TENANT }), 1);
  });

  it("is written again by whoever had it open while another process cleared it", async (t) => {
    const namespace = randomUUID();
    const [one, other] = [await openStore({ namespace }), await openStore({ namespace })];
    t.after(() => one.clear());
    await one.upsert([point("a")]);
    await other.clear();
    await one.upsert([point("b")]);
    assert.equal(await other.count({ tenant: TENANT }), 1);
  });

  it("is made once by many who come at the same time", async (t) => {
    const namespace = randomUUID();
    const stores = await Promise.all(Array.from({ length: 5 }, () => openStore({ namespace })));
    t.after(() => stores[0]!.clear());
    await Promise.all(stores.map((store, at) => store.upsert([point("p".repeat(at + 1))])));
    assert.equal(await stores[0]!.count({ tenant: TENANT }), stores.length);
  });
});

describe("a Qdrant that is away", () => {
  let server: QdrantServer;
  before(async () => {
    server = await startQdrant();
  });
  after(() => server.stop());
  const open = (apiKey = server.apiKey) =>
    openQdrantVectors({
      ...{ url: server.url, apiKey, namespace: "n", model: "test", dimensions: SUITE_DIMENSIONS },
      timeoutMs: 2_000,
    });

  it("says so, and keeps what it had when it comes back", async () => {
    const store = open();
    await store.upsert([point("a")]);
    await server.quit();
    const away = { code: "store_unavailable", message: /Qdrant at 127\.0\.0\.1:\d+ cannot be reached/ };
    await assert.rejects(store.upsert([point("b")]), away);
    await assert.rejects(store.search(direction(1), { limit: 1, filter: { tenant: TENANT } }), away);
    await assert.rejects(store.remove({ documentId: randomUUID() }), away);
    await assert.rejects(store.count({ tenant: TENANT }), away);
    await server.launch();
    assert.equal(await store.count({ tenant: TENANT }), 1);
    await store.upsert([point("b")]);
    assert.equal(await store.count({ tenant: TENANT }), 2);
  });

  it("wants its key, which no message repeats", async () => {
    for (const key of ["wrong-and-secret", undefined])
      await assert.rejects(open(key ?? "").count({ tenant: TENANT }), (error: Error & { code: string }) => {
        assert.equal(error.code, "store_unavailable");
        assert.match(error.message, /QDRANT_API_KEY/);
        assert.doesNotMatch(error.message, /secret/);
        return true;
      });
  });
});

describe("how well Qdrant finds the nearest", () => {
  const size = { count: 6_000, queries: 25, dimensions: 128 };
  for (const [name, make, floor] of [
    ["scattered", scatteredVectors, 0.9],
    ["clustered", clusteredVectors, 0.97],
  ] as const) {
    it(`finds at least ${100 * floor} of 100 among ${name} vectors by its index, and all of few`, async (t) => {
      const identity = { namespace: randomUUID(), model: "test", dimensions: size.dimensions };
      const store = await openStore(identity);
      t.after(() => store.clear());
      const set = make(size);
      await fill(store, set.vectors);
      await indexed(qdrantNames(identity).nameOf("c"));
      const recall = await recallOf(store, set, { limit: 10, collection: "c" });
      t.diagnostic(`recall@10: ${recall.toFixed(4)}`);
      assert.ok(recall >= floor, `recall@10 is ${recall}`);
      assert.equal(await recallOf(store, set, { limit: 10, collection: "rare" }), 1);
    });
  }

  /** So few vectors are compared one by one, unless it is told otherwise. */
  async function indexed(name: string): Promise<void> {
    const { url, apiKey } = await findQdrant();
    const client = new QdrantClient({
      url,
      checkCompatibility: false,
      ...(apiKey !== undefined && { headers: { "api-key": apiKey } }),
    });
    await client.updateCollection(name, { optimizers_config: { indexing_threshold: 500 } });
    for (;;) {
      const { status, indexed_vectors_count: count } = await client.getCollection(name);
      if (status === "green" && (count ?? 0) > size.count / 2) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
});
