import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { type OllamaEmbedderSettings, openOllamaEmbedder } from "../../../src/adapters/embed/ollama.ts";
import type { ServiceEmbedder } from "../../../src/adapters/embed/service.ts";
import { ollamaUrl } from "../../../src/adapters/ollama-url.ts";
import { type ModelServer, startModelServer } from "../../support/model-server.ts";
import { testEmbedder } from "./conformance.ts";

const TIMEOUT_MS = 60_000;
const { TEST_OLLAMA_HOST, TEST_OLLAMA_MODEL } = process.env;

if (TEST_OLLAMA_HOST)
  testEmbedder(`Ollama at ${TEST_OLLAMA_HOST}`, () =>
    openOllamaEmbedder({ host: TEST_OLLAMA_HOST, model: TEST_OLLAMA_MODEL, timeoutMs: TIMEOUT_MS }),
  );

describe("the Ollama embedder", () => {
  const { signal } = new AbortController();
  let server: ModelServer;
  const opened: ServiceEmbedder[] = [];
  const open = async (settings: Partial<OllamaEmbedderSettings> = {}) => {
    const embedder = await openOllamaEmbedder({ host: server.url, timeoutMs: TIMEOUT_MS, ...settings });
    opened.push(embedder);
    return embedder;
  };
  before(async () => {
    server = await startModelServer({
      models: { "box/unheard-of:7b": { dimensions: 48, window: 512 } },
      refusedWords: "unspeakable",
    });
  });
  beforeEach(() => server.forget());
  after(async () => {
    for (const embedder of opened) await embedder.close();
    await server.close();
  });

  testEmbedder("Ollama, spoken by the in-repo server", () =>
    openOllamaEmbedder({ host: server.url, timeoutMs: TIMEOUT_MS }),
  );
  testEmbedder("Ollama and a model that is not in the table, spoken by the in-repo server", () =>
    openOllamaEmbedder({ host: server.url, model: "box/unheard-of:7b", timeoutMs: TIMEOUT_MS }),
  );

  it("asks as Ollama's API says, and tells the model what a text is for", async () => {
    const embedder = await open();
    await embedder.embed(["Slate."], signal);
    await embedder.embed(["What is slate?"], signal, "question");
    const [passage, question] = server.requests;
    assert.equal(passage?.path, "/api/embed");
    assert.deepEqual(passage?.body, {
      model: "nomic-embed-text",
      input: ["search_document: Slate."],
      truncate: false,
    });
    assert.deepEqual(question?.inputs, ["search_query: What is slate?"]);
    assert.equal(passage.connection, question?.connection);
  });

  it("opens a known model without asking, and asks an unknown one for its dimensions once", async () => {
    const known = await open({ model: "mxbai-embed-large:latest" });
    assert.equal(server.requests.length, 0);
    assert.deepEqual([known.model, known.dimensions], ["mxbai-embed-large", 1024]);
    const unknown = await open({ model: "box/unheard-of:7b" });
    assert.equal(server.requests.length, 1);
    assert.deepEqual([unknown.model, unknown.dimensions], ["box/unheard-of:7b", 48]);
  });

  it("vectors that were cut short are those of another model", async () => {
    const embedder = await open({ dimensions: 256 });
    assert.deepEqual([embedder.model, embedder.dimensions], ["nomic-embed-text/256", 256]);
    const { vectors } = await embedder.embed(["Slate."], signal);
    assert.equal(vectors[0]?.length, 256);
    assert.equal(server.requests[0]?.body.dimensions, 256);
  });

  it("counts what Ollama counts, or by itself when that says nothing", async () => {
    const embedder = await open();
    const { tokens } = await embedder.embed(["Granite.", "Slate."], signal);
    assert.ok(tokens > 0);
    const silent = await startModelServer({ hasNoUsage: true });
    const other = await open({ host: silent.url });
    const own = (await other.embed(["Granite.", "Slate."], signal)).tokens;
    await silent.close();
    const marks = 4;
    assert.equal(own, tokens - marks);
  });

  it("a model that is missing is to be pulled", async () => {
    await assert.rejects(open({ model: "nowhere" }), {
      code: "model_unavailable",
      message: /404.*ollama pull nowhere/,
    });
  });

  it("many texts go in several requests, each answered in order", async () => {
    const embedder = await open({ model: "all-minilm" });
    const texts = Array.from({ length: 150 }, (_, index) => `word${index} stone${index}`);
    const { vectors } = await embedder.embed(texts, signal);
    assert.deepEqual(
      server.requests.map(({ inputs }) => inputs.length),
      [64, 64, 22],
    );
    const [last] = (await embedder.embed([texts[149]!], signal)).vectors;
    assert.deepEqual(vectors[149], last);
  });

  it("a text that the model counts longer than we do is read in smaller pieces, to its end", async () => {
    const embedder = await open({ model: "all-minilm", tokensMax: 1000 });
    const text = `${"granite ".repeat(600)}${"slate ".repeat(300)}`;
    const [vector] = (await embedder.embed([text], signal)).vectors;
    const [slate] = (await embedder.embed(["slate"], signal)).vectors;
    assert.ok(vector!.reduce((sum, value, index) => sum + value * slate![index]!, 0) > 0.2);
  });

  it("refuses a text that one vector cannot stand for", async () => {
    const embedder = await open({ model: "all-minilm" });
    await assert.rejects(embedder.embed(["word ".repeat(20_000)], signal), {
      code: "invalid_input",
      message: /cut it to/,
    });
  });

  it("a refused text fails for good when alone, and its neighbours can be tried without it", async () => {
    const embedder = await open();
    await assert.rejects(embedder.embed(["fine", "unspeakable", "fine"], signal), {
      code: "model_failed",
      message: /400: .*this text is refused/,
    });
    await assert.rejects(embedder.embed(["unspeakable"], signal), { code: "invalid_input" });
    assert.equal((await embedder.embed(["fine", "fine"], signal)).vectors.length, 2);
  });

  const wrong = [
    [{ kind: "wrong dimensions" }, /767 dimensions instead of 768/],
    [{ kind: "wrong count" }, /1 vectors for 2 texts/],
    [{ kind: "zeros" }, /without a direction/],
    [{ kind: "body", body: '{"embeddings":[[1,null],[0.5,2]]}' }, /2 dimensions instead of 768/],
    [{ kind: "body", body: '{"embeddings":"none"}' }, /without vectors/],
    [{ kind: "body", body: "[]" }, /without vectors/],
  ] as const;
  for (const [fault, message] of wrong) {
    it(`an answer is not believed: ${message.source}`, async () => {
      const embedder = await open();
      server.misbehave(fault);
      await assert.rejects(embedder.embed(["one", "two"], signal), { code: "model_failed", message });
      assert.equal((await embedder.embed(["one", "two"], signal)).vectors.length, 2);
    });
  }

  it("a vector with something in it that is no number is not believed", async () => {
    const embedder = await open({ dimensions: 2 });
    server.misbehave({ kind: "body", body: '{"embeddings":[[1,null]]}' });
    await assert.rejects(embedder.embed(["one"], signal), { code: "model_failed", message: /no number/ });
  });

  it("finds Ollama wherever its own programs would", () => {
    const read = {
      "": "http://127.0.0.1:11434",
      ":1234": "http://127.0.0.1:1234",
      "127.0.0.1:11434": "http://127.0.0.1:11434",
      "0.0.0.0": "http://127.0.0.1:11434",
      "http://0.0.0.0:80": "http://127.0.0.1:80",
      box: "http://box:11434",
      "box/ollama/": "http://box:11434/ollama",
      "::1": "http://[::1]:11434",
      "[::1]:1234": "http://[::1]:1234",
      "http://box": "http://box",
      " https://box.example/ollama/ ": "https://box.example/ollama",
    };
    for (const [host, url] of Object.entries(read)) assert.equal(ollamaUrl(host), url, host);
  });
});
