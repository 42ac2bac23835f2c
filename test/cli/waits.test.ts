import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { cuttableLine } from "../support/cuttable-line.ts";
import { startModelServer } from "../support/model-server.ts";
import { findQdrant } from "../support/qdrant.ts";
import { Running } from "./running.ts";

test("whoever waits for a document is told what the work waits for, and goes on when that is back", {
  timeout: 90_000,
}, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "quarry-cli-"));
  const [model, qdrant] = await Promise.all([startModelServer(), findQdrant()]);
  const line = await cuttableLine(qdrant.url);
  const env = {
    ...{ QUARRY_EMBEDDER: "ollama:nomic-embed-text", OLLAMA_HOST: model.url },
    ...{ QDRANT_URL: line.url, ...(qdrant.apiKey && { QDRANT_API_KEY: qdrant.apiKey }) },
  };
  const said = async (...args: string[]) => (await new Running(folder, args, env).ended()).out;
  t.after(async () => {
    await Promise.all([line.close(), model.close()]);
    await rm(folder, { recursive: true, force: true });
  });
  await writeFile(join(folder, "note.md"), "# Lamps\n\nThe lamp is lit at dusk.\n");
  line.cut("reset");
  const ingest = new Running(folder, ["ingest", "note.md", "--wait"], env);
  await ingest.until(({ err }) => / · waits chunks\.vector: \S/.test(err));
  const waits = /\n +waits +chunks\.vector: \S/;
  const { documents } = JSON.parse(await said("documents", "list", "--json"));
  assert.match(await said("documents", "show", documents[0].id), waits);
  assert.match(await said("status"), waits);
  assert.match(await said("queue", "status"), waits);
  line.mend();
  assert.equal((await ingest.ended()).code, 0);
  assert.doesNotMatch(await said("status"), /waits/);
  assert.equal(ingest.err.split("\n").filter((text) => text.includes("waits for what is away")).length, 1);
});
