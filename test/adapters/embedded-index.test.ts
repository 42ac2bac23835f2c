import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { openEmbeddedIndex } from "../../src/adapters/embedded-index.ts";
import { freshIndex } from "./index-file.ts";

const TENANT = "tenant";
const CHUNK = { chunkId: "a", documentId: "d", tenant: TENANT, collection: "c" };

describe("an index file", () => {
  it("keeps what was written when it is opened again", async (t) => {
    const { index, path, close } = await freshIndex({ dimensions: 2 });
    t.after(close);
    await index.vectors.upsert([{ ...CHUNK, vector: Float32Array.of(1, 0) }]);
    await index.fulltext.upsert([{ ...CHUNK, context: "", content: "limestone" }]);
    const again = await openEmbeddedIndex({ path, model: "test", dimensions: 2 });
    t.after(() => again.close());
    const options = { limit: 1, filter: { tenant: TENANT } };
    assert.equal((await again.vectors.search(Float32Array.of(1, 1), options)).length, 1);
    assert.equal((await again.fulltext.search("limestone", options)).length, 1);
  });

  it("refuses another model's vectors and says what to do", async (t) => {
    const { path, close } = await freshIndex({ dimensions: 2 });
    t.after(close);
    for (const other of [
      { model: "other", dimensions: 2 },
      { model: "test", dimensions: 3 },
    ]) {
      await assert.rejects(openEmbeddedIndex({ path, ...other }), {
        code: "schema_mismatch",
        message: /made with test \(2 dimensions\).*quarry reindex.*old embedder/,
      });
    }
  });

  it("can be started over for another model, and whoever had it open is told", async (t) => {
    const { index, path, close } = await freshIndex({ dimensions: 2 });
    t.after(close);
    await index.vectors.upsert([{ ...CHUNK, vector: Float32Array.of(1, 0) }]);
    await index.fulltext.upsert([{ ...CHUNK, context: "", content: "limestone" }]);
    const anew = await openEmbeddedIndex({ path, model: "other", dimensions: 3, isStartedOver: true });
    t.after(() => anew.close());
    const filter = { tenant: TENANT };
    assert.equal(await anew.vectors.count(filter), 0);
    assert.deepEqual(await anew.fulltext.search("limestone", { limit: 1, filter }), []);
    await anew.vectors.upsert([{ ...CHUNK, vector: Float32Array.of(1, 0, 0) }]);
    const mismatch = { code: "schema_mismatch" };
    await assert.rejects(index.vectors.upsert([{ ...CHUNK, vector: Float32Array.of(1, 0) }]), mismatch);
    await assert.rejects(index.vectors.search(Float32Array.of(1, 0), { limit: 1, filter }), mismatch);
    assert.equal(await anew.vectors.count(filter), 1);
  });

  it("is written by several processes at once while it is searched", async (t) => {
    const { index, path, close } = await freshIndex({ dimensions: 8 });
    t.after(close);
    const names = ["north", "east", "south"];
    const program = join(import.meta.dirname, "index-writer.ts");
    const writers = names.map((name) =>
      spawn(process.execPath, [program, path, name, "12"], { stdio: ["ignore", "inherit", "inherit"] }),
    );
    const ended = Promise.all(writers.map(async (writer) => (await once(writer, "exit"))[0]));
    const options = { limit: 10, filter: { tenant: TENANT } };
    const query = Float32Array.from({ length: 8 }, (_none, index) => index + 1);
    while (writers.some((writer) => writer.exitCode === null)) {
      for (const hit of await index.vectors.search(query, options)) assert.ok(names.includes(hit.documentId));
      await index.fulltext.search("limestone", options);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    assert.deepEqual(await ended, [0, 0, 0]);
    assert.equal(await index.vectors.count({ tenant: TENANT }), 3 * 12 * 39);
    const found = await index.vectors.search(query, { limit: 2_000, filter: { tenant: TENANT } });
    assert.equal(new Set(found.map((hit) => hit.chunkId)).size, 3 * 12 * 39);
    const texts = await index.fulltext.search("north", { limit: 1_000, filter: { tenant: TENANT } });
    assert.equal(texts.length, 12 * 40);

    const file = new DatabaseSync(path, { readOnly: true });
    t.after(() => file.close());
    assert.deepEqual({ ...file.prepare("pragma integrity_check").get() }, { integrity_check: "ok" });
  });
});
