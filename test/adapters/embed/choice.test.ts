import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { chosenEmbedder } from "../../../src/adapters/embed/choice.ts";
import { openOllamaEmbedder } from "../../../src/adapters/embed/ollama.ts";
import { openOpenAiEmbedder } from "../../../src/adapters/embed/openai.ts";

describe("the chosen embedder", () => {
  it("has the name under which its jobs wait", async () => {
    for (const setting of ["ollama", "ollama:nomic-embed-text:latest", "ollama:all-minilm:22m"]) {
      const { model } = chosenEmbedder(setting);
      const embedder = await openOllamaEmbedder({ host: "127.0.0.1:1", model, timeoutMs: 1_000 });
      assert.equal(embedder.model, model, setting);
      await embedder.close();
    }
    const { model } = chosenEmbedder("openai:bge-m3:latest");
    const embedder = await openOpenAiEmbedder({ baseUrl: "http://127.0.0.1:1/v1", model, timeoutMs: 1_000 });
    assert.equal(embedder.model, model);
    await embedder.close();
  });
});
