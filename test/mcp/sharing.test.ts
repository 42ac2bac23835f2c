import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { openQuarry } from "../../src/index.ts";
import { call, connect, makeFolder, type TestFolder } from "./running.ts";

describe("several at one data folder", () => {
  let folder: TestFolder;
  before(async () => {
    folder = await makeFolder();
  });
  after(() => folder.remove());

  it("one of two servers works for both, and the other goes on when it ends", async () => {
    const first = await connect(folder.data);
    const second = await connect(folder.data);
    try {
      await call(first, "add_content", { content: "Gneiss is banded." });
      const notes = ["Schist shines.", "Chert is sharp.", "Pumice floats."];
      const added = await Promise.all(
        notes.map((content, n) => call(n % 2 === 0 ? second : first, "add_content", { content })),
      );
      assert.deepEqual(
        added.map(({ structured }) => structured.status),
        ["done", "done", "done"],
      );
      assert.equal((await call(second, "queue_status")).structured.working, "elsewhere");
      const found = await call(first, "search", { query: "what floats", limit: 1 });
      assert.match(found.structured.passages[0].content, /Pumice/);
      await first.close();
      const alone = await call(second, "add_content", { content: "Flint makes sparks." });
      assert.equal(alone.structured.status, "done", alone.text);
      assert.equal((await call(second, "queue_status")).structured.working, "here");
    } finally {
      await first.close();
      await second.close();
    }
  });

  it("leaves the work to workers that run", async () => {
    const quarry = await openQuarry({ dataFolder: folder.data, logLevel: "silent", pollMs: 500 });
    const crew = await quarry.work();
    const client = await connect(folder.data);
    try {
      const { structured } = await call(client, "add_content", { content: "Jasper is red." });
      assert.equal(structured.status, "done");
      const status = (await call(client, "queue_status")).structured;
      assert.equal(status.working, "elsewhere");
      assert.deepEqual(
        status.workers.map(({ id }: { id: string }) => id),
        [crew.worker.id],
      );
    } finally {
      await client.close();
      await quarry.close();
    }
  });

  it("works where somebody else does only a part", async () => {
    const quarry = await openQuarry({ dataFolder: folder.data, logLevel: "silent", pollMs: 500 });
    await quarry.work({ lanes: ["pages.ocr"] });
    const client = await connect(folder.data);
    try {
      const { structured } = await call(client, "add_content", { content: "Onyx has stripes." });
      assert.equal(structured.status, "done");
      assert.equal((await call(client, "queue_status")).structured.working, "here");
    } finally {
      await client.close();
      await quarry.close();
    }
  });
});
