import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { chosenLlm } from "../../../src/adapters/llm/choice.ts";
import { openOllamaLlm } from "../../../src/adapters/llm/ollama.ts";
import { openOpenAiLlm } from "../../../src/adapters/llm/openai.ts";
import { isQuarryError } from "../../../src/errors.ts";
import { startModelServer } from "../../support/model-server.ts";
import { KEY, testLlm } from "./conformance.ts";

testLlm({
  name: "Ollama, spoken by the in-repo server",
  path: "/api/chat",
  open: (server, settings, model = "llama-test") => openOllamaLlm({ host: server.url, model, ...settings }),
});

testLlm({
  name: "OpenAI, spoken by the in-repo server",
  path: "/v1/chat/completions",
  open: (server, settings, model = "gpt-test") =>
    openOpenAiLlm({ baseUrl: server.openAiUrl, apiKey: KEY, model, ...settings }),
});

describe("language models", () => {
  const never = new AbortController().signal;
  const ask = (content: string, more = {}) => ({
    system: "You answer.",
    messages: [{ role: "user", content } as const],
    tokensMax: 100,
    ...more,
  });

  it("are chosen by a setting; their names may have colons", () => {
    assert.deepEqual(chosenLlm("none"), { provider: "none" });
    assert.deepEqual(chosenLlm("ollama:llama3.2:3b"), { provider: "ollama", model: "llama3.2:3b" });
    assert.deepEqual(chosenLlm("openai:gpt-5-mini"), { provider: "openai", model: "gpt-5-mini" });
  });

  it("Ollama is told to read the whole of a long prompt", async () => {
    const server = await startModelServer();
    const llm = openOllamaLlm({ host: server.url, model: "llama-test", timeoutMs: 60_000 });
    await llm.complete(ask("short"), never);
    await llm.complete(ask("word ".repeat(12_000)), never);
    await llm.close();
    await server.close();
    const windows = server.requests.map(({ body }) => (body.options as { num_ctx: number }).num_ctx);
    assert.deepEqual(windows, [8_192, 32_768]);
  });

  it("a service that cannot be held to a schema is asked without, and not told again", async () => {
    const server = await startModelServer({ knowsNoSchema: true, chat: () => "{}" });
    const llm = openOpenAiLlm({ baseUrl: server.openAiUrl, model: "gpt-test", timeoutMs: 60_000 });
    for (const _ of [1, 2]) await llm.complete(ask("x", { schema: { type: "object" } }), never);
    await llm.close();
    await server.close();
    assert.deepEqual(
      server.requests.map(({ body }) => "response_format" in body),
      [true, false, false],
    );
  });

  it("a wrong key is told as such", async () => {
    const server = await startModelServer({ apiKey: KEY });
    const apiKey = "sk-other-0123";
    const llm = openOpenAiLlm({ baseUrl: server.openAiUrl, apiKey, model: "gpt-test", timeoutMs: 60_000 });
    server.misbehave({ kind: "status", status: 401, body: `there is no ${apiKey}` });
    await assert.rejects(llm.complete(ask("x"), never), (error) => {
      assert.ok(isQuarryError(error, "model_unavailable"));
      assert.match(error.message, /check OPENAI_API_KEY/);
      assert.ok(!error.message.includes(apiKey));
      return true;
    });
    await assert.rejects(llm.complete(ask("x"), never), { message: /Incorrect API key/ });
    await llm.close();
    await server.close();
  });
});
