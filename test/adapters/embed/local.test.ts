import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openLocalEmbedder } from "../../../src/adapters/embed/local.ts";
import { testEmbedder } from "./conformance.ts";

testEmbedder("the local model", () => openLocalEmbedder({ processes: 2 }));

describe("the local embedder", () => {
  const { signal } = new AbortController();

  it("gives a text the same vector whatever is embedded with it", async () => {
    const embedder = await openLocalEmbedder({ processes: 1 });
    try {
      const [alone] = (await embedder.embed(["Granite is quarried near the coast."], signal)).vectors;
      const { vectors: inCompany } = await embedder.embed(
        ["!!! 1234 ???", "Granite is quarried near the coast.", "long ".repeat(200)],
        signal,
      );
      assert.deepEqual(inCompany[1], alone);
    } finally {
      await embedder.close();
    }
  });

  it("can be closed in the middle of its work", async () => {
    for (const waitMs of [0, 200, 400, 600]) {
      const embedder = await openLocalEmbedder({ processes: 2 });
      const call = embedder.embed(Array(200).fill("Granite and slate. ".repeat(40)), signal);
      const refused = assert.rejects(call, { code: "shutting_down" });
      await new Promise((resolve) => setTimeout(resolve, waitMs));
      await embedder.close();
      await refused;
    }
  });

  it("refuses a text that one vector cannot stand for", async () => {
    const embedder = await openLocalEmbedder({ processes: 1 });
    try {
      await assert.rejects(embedder.embed(["word ".repeat(20_000)], signal), {
        code: "invalid_input",
        message: /cut it to/,
      });
    } finally {
      await embedder.close();
    }
  });
});
