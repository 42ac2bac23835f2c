import assert from "node:assert/strict";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openQuarry, type Quarry } from "../src/index.ts";
import { startModelServer } from "./support/model-server.ts";

test("another embedder needs the index made anew, and reindex does it without reading anything again", async () => {
  const folder = await mkdtemp(join(tmpdir(), "quarry-reindex-"));
  const model = await startModelServer();
  const open = (name: string) =>
    openQuarry({
      dataFolder: join(folder, "data"),
      embedder: `ollama:${name}`,
      ollamaHost: model.url,
      logLevel: "silent",
    });
  const found = async (quarry: Quarry) =>
    (await quarry.search.search({ query: "granite quarry", tenant: "default", mode: "vector" })).results
      .length;
  try {
    await writeFile(join(folder, "a.md"), "Granite is cut in the quarry.");
    let quarry = await open("nomic-embed-text");
    let crew = await quarry.work();
    const { items } = await quarry.ingest([join(folder, "a.md")]);
    await quarry.queue.finished(items.map((item) => item.queue_id));
    assert.equal(await found(quarry), 1);
    await assert.rejects(quarry.reindex(), { code: "constraint_violated", message: /stop them first/ });
    await crew.stop();
    await quarry.close();
    // Copies of private files are nobody else's to read.
    assert.equal((await stat(join(folder, "data"))).mode & 0o077, 0);

    quarry = await open("all-minilm");
    await assert.rejects(found(quarry), { code: "schema_mismatch", message: /quarry reindex/ });
    await quarry.close();
    quarry = await open("all-minilm");
    assert.equal(await quarry.reindex(), 1);
    crew = await quarry.work();
    while ((await quarry.documents.progress()).open > 0)
      await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal(await found(quarry), 1);
    await crew.stop();
    await quarry.close();
  } finally {
    await model.close();
    await rm(folder, { recursive: true, force: true });
  }
});
