import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { type OpenAiEmbedderSettings, openOpenAiEmbedder } from "../../../src/adapters/embed/openai.ts";
import { prefixesOf } from "../../../src/adapters/embed/prefixes.ts";
import type { ServiceEmbedder } from "../../../src/adapters/embed/service.ts";
import { type ModelServer, startModelServer } from "../../support/model-server.ts";
import { testEmbedder } from "./conformance.ts";

const TIMEOUT_MS = 60_000;
const KEY = "sk-canary-0123456789";
const MODEL = "text-embedding-3-small";
const { TEST_OPENAI_BASE_URL, TEST_OPENAI_API_KEY, TEST_OPENAI_MODEL = MODEL } = process.env;

if (TEST_OPENAI_BASE_URL)
  testEmbedder(`the service at ${TEST_OPENAI_BASE_URL}`, () =>
    openOpenAiEmbedder({
      baseUrl: TEST_OPENAI_BASE_URL,
      apiKey: TEST_OPENAI_API_KEY,
      model: TEST_OPENAI_MODEL,
      timeoutMs: TIMEOUT_MS,
    }),
  );

describe("the embedder of OpenAI's protocol", () => {
  const { signal } = new AbortController();
  let server: ModelServer;
  let decimals: ModelServer;
  const opened: ServiceEmbedder[] = [];
  const settings = () => ({ baseUrl: server.openAiUrl, apiKey: KEY, model: MODEL, timeoutMs: TIMEOUT_MS });
  const open = async (more: Partial<OpenAiEmbedderSettings> = {}) => {
    const embedder = await openOpenAiEmbedder({ ...settings(), ...more });
    opened.push(embedder);
    return embedder;
  };
  before(async () => {
    server = await startModelServer({ apiKey: KEY });
    decimals = await startModelServer({ hasOnlyFloats: true, hasNoUsage: true });
  });
  beforeEach(() => server.forget());
  after(async () => {
    for (const embedder of opened) await embedder.close();
    await server.close();
    await decimals.close();
  });

  testEmbedder("OpenAI's protocol, spoken by the in-repo server", () => openOpenAiEmbedder(settings()));
  testEmbedder("a plainer service of OpenAI's protocol, spoken by the in-repo server", () =>
    openOpenAiEmbedder({ baseUrl: decimals.openAiUrl, model: "bge-m3", timeoutMs: TIMEOUT_MS }),
  );

  it("asks as OpenAI's API says", async () => {
    const embedder = await open({ baseUrl: `${server.openAiUrl}/?version=2` });
    await embedder.embed(["Slate."], signal, "question");
    const [request] = server.requests;
    assert.equal(request?.path, "/v1/embeddings");
    assert.equal(request?.headers.authorization, `Bearer ${KEY}`);
    assert.deepEqual(request?.body, { model: MODEL, input: ["Slate."], encoding_format: "base64" });
  });

  it("asks for fewer dimensions only when told to", async () => {
    const embedder = await open({ dimensions: 256 });
    const { vectors } = await embedder.embed(["Slate."], signal);
    assert.deepEqual([embedder.model, vectors[0]?.length], [`${MODEL}/256`, 256]);
    assert.equal(server.requests[0]?.body.dimensions, 256);
  });

  it("bytes and decimals give the same vectors", async () => {
    const [bytes, numbers] = [await open(), await open({ baseUrl: decimals.openAiUrl })];
    const texts = ["Granite is quarried near the coast.", "Slate."];
    const [one, other] = [await bytes.embed(texts, signal), await numbers.embed(texts, signal)];
    assert.deepEqual(one.vectors, other.vectors);
    assert.equal(one.tokens, other.tokens);
  });

  it("takes vectors by their index, not by their place", async () => {
    const embedder = await open();
    const texts = ["granite", "slate", "marble"];
    const { vectors } = await embedder.embed(texts, signal);
    server.misbehave({ kind: "backwards" });
    assert.deepEqual((await embedder.embed(texts, signal)).vectors, vectors);
  });

  it("an index that comes twice is not believed", async () => {
    const embedder = await open({ dimensions: 1 });
    const body = JSON.stringify({
      data: [
        { index: 0, embedding: [1] },
        { index: 0, embedding: [1] },
      ],
    });
    server.misbehave({ kind: "body", body });
    await assert.rejects(embedder.embed(["one", "two"], signal), { code: "model_failed" });
  });

  it("counts the tokens itself where the service says something absurd", async () => {
    const embedder = await open({ dimensions: 1 });
    const { tokens: counted } = await embedder.embed(["Slate."], signal).catch(() => ({ tokens: 0 }));
    assert.ok(counted > 0);
    for (const total of [-5, 1.5, 1e300, 0, null, "many"]) {
      const body = JSON.stringify({ data: [{ index: 0, embedding: [1] }], usage: { total_tokens: total } });
      server.misbehave({ kind: "body", body });
      const { tokens } = await embedder.embed(["Slate."], signal);
      assert.ok(Number.isInteger(tokens) && tokens > 0 && tokens < 10, `${total} became ${tokens}`);
    }
  });

  it("stays within the texts and tokens that one request may have", async () => {
    const embedder = await open();
    await embedder.embed(Array(2100).fill("stone"), signal);
    assert.deepEqual(
      server.requests.map(({ inputs }) => inputs.length),
      [2048, 52],
    );
    await embedder.embed(Array(50).fill("stone ".repeat(8000)), signal);
    assert.deepEqual(
      server.requests.slice(2).map(({ inputs }) => inputs.length),
      [31, 19],
    );
  });

  it("a wrong key says which setting to check, and not what the key is", async () => {
    const embedder = await open({ apiKey: "sk-wrong-canary-987654" });
    await assert.rejects(embedder.embed(["x"], signal), (error: Error & { code: string }) => {
      assert.equal(error.code, "model_unavailable");
      assert.match(error.message, /401.*OPENAI_API_KEY/);
      assert.doesNotMatch(error.message, /canary/);
      return true;
    });
  });

  it("a key with a line break is refused before it is sent, and not shown", async () => {
    await assert.rejects(open({ apiKey: "sk-canary\n" }), (error: Error) => {
      assert.match(error.message, /OPENAI_API_KEY/);
      assert.doesNotMatch(JSON.stringify(error, Object.getOwnPropertyNames(error)), /canary/);
      return true;
    });
  });

  it("a model that the service does not have says what to check", async () => {
    await assert.rejects(open({ model: "nowhere" }), {
      code: "model_unavailable",
      message: /404.*nowhere.*OPENAI_BASE_URL/,
    });
  });

  it("shows until when it waits", async () => {
    const embedder = await open();
    server.misbehave({ kind: "status", status: 429, headers: { "retry-after": "300" } });
    const controller = new AbortController();
    const call = embedder.embed(["x"], controller.signal);
    while (!embedder.pause()) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.match(embedder.pause()!.reason, /429/);
    controller.abort(new Error("not wanted any more"));
    await assert.rejects(call, /not wanted any more/);
  });
});

describe("what models are told before a text", () => {
  const searching = "Represent this sentence for searching relevant passages: ";
  const told = {
    "nomic-ai/nomic-embed-text-v1.5": ["search_query: ", "search_document: "],
    "mxbai-embed-large:335m": [searching, ""],
    "BAAI/bge-small-en-v1.5": [searching, ""],
    "bge-large": [searching, ""],
    "bge-m3": ["", ""],
    "intfloat/e5-base-v2": ["query: ", "passage: "],
    "intfloat/multilingual-e5-large": ["query: ", "passage: "],
    "intfloat/multilingual-e5-large-instruct": ["", ""],
    "text-embedding-3-small": ["", ""],
  };
  for (const [model, [question, passage]] of Object.entries(told))
    it(`${model}`, () => assert.deepEqual(prefixesOf(model), { question, passage }));
});
