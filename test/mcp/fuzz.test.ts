import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import fc from "fast-check";
import { makeFolder, RawServer, type TestFolder } from "./running.ts";

const METHODS = [
  ...["initialize", "ping", "tools/list", "tools/call", "resources/list", "resources/templates/list"],
  ...["resources/read", "logging/setLevel", "notifications/cancelled", "notifications/initialized"],
];
/** Those that change something wait for work; what they refuse is tried elsewhere. */
const TOOLS = ["search", "queue_status", "list_queue", "show_queue_item", "list_documents", "show_document"];
const WORDS = [
  ...METHODS,
  ...TOOLS,
  "quarry://status",
  "quarry://documents/x",
  "__proto__",
  "constructor",
  "2.0",
];

const word = fc.oneof(fc.constantFrom(...WORDS), fc.string({ unit: "binary", maxLength: 20 }));
const strange = fc.oneof(fc.jsonValue(), word);
const fields = fc.dictionary(
  fc.constantFrom(
    "name",
    "arguments",
    "uri",
    "cursor",
    "level",
    "_meta",
    "requestId",
    "protocolVersion",
    "x",
  ),
  strange,
);
const toolCall = fc.record({
  name: fc.constantFrom(...TOOLS),
  arguments: fc.oneof(
    fc.dictionary(
      fc.constantFrom("query", "id", "limit", "after", "metadata", "mode", "status", "name"),
      strange,
    ),
    strange,
  ),
});
const message = fc.record(
  {
    jsonrpc: fc.oneof({ weight: 9, arbitrary: fc.constant("2.0") }, { weight: 1, arbitrary: strange }),
    id: fc.oneof(fc.integer(), strange),
    method: fc.oneof(
      { weight: 9, arbitrary: fc.constantFrom(...METHODS) },
      { weight: 1, arbitrary: strange },
    ),
    params: fc.oneof(fields, toolCall, strange),
  },
  { requiredKeys: ["jsonrpc"] },
);
const line = fc.oneof(
  { weight: 6, arbitrary: message.map((value) => Buffer.from(JSON.stringify(value))) },
  {
    weight: 1,
    arbitrary: fc.array(message, { maxLength: 4 }).map((value) => Buffer.from(JSON.stringify(value))),
  },
  { weight: 1, arbitrary: strange.map((value) => Buffer.from(JSON.stringify(value))) },
  {
    weight: 1,
    arbitrary: fc.string({ unit: "binary" }).map((text) => Buffer.from(text.replaceAll("\n", " "))),
  },
  {
    weight: 1,
    arbitrary: fc
      .uint8Array({ maxLength: 60 })
      .map((bytes) => Buffer.from(bytes.filter((byte) => byte !== 10))),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(message, fc.nat(80))
      .map(([value, end]) => Buffer.from(JSON.stringify(value).slice(0, end))),
  },
);

describe("whatever a client sends", () => {
  let folder: TestFolder;
  let server: RawServer;
  before(async () => {
    folder = await makeFolder();
    server = new RawServer(folder.data);
  });
  after(async () => {
    server.endInput();
    await server.ended();
    await folder.remove();
  });

  it("the server answers in messages and lives", { timeout: 120_000 }, async () => {
    const seed = Number(process.env.FUZZ_SEED ?? Math.trunc(Math.random() * 2 ** 31));
    const lines = fc.sample(line, { numRuns: 2_000, seed });
    for (const [index, bytes] of lines.entries()) {
      server.write(bytes);
      server.write("\n");
      // Now and then it is waited for, so that not everything stands in line.
      if (index % 200 === 199) {
        server.request(`alive ${index}`, "ping");
        assert.deepEqual((await server.answerTo(`alive ${index}`)).result, {}, `FUZZ_SEED=${seed}`);
      }
    }
    const deep = "[".repeat(100_000);
    server.send(deep + "]".repeat(100_000));
    server.send(
      `{"jsonrpc":"2.0","id":"deep","method":"tools/call","params":{"name":"search","arguments":{"query":"x","metadata":${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}}}}`,
    );
    assert.equal((await server.answerTo("deep")).error?.code, -32_602, `FUZZ_SEED=${seed}`);
    server.request("at the end", "tools/call", { name: "queue_status" });
    const { result } = await server.answerTo("at the end");
    assert.equal(result.structuredContent.items.pending, 0, `FUZZ_SEED=${seed}`);
    for (const answer of server.messages.flat()) {
      assert.equal(answer.jsonrpc, "2.0", `FUZZ_SEED=${seed}`);
      assert.notEqual(answer.error?.code, -32_603, `FUZZ_SEED=${seed}: ${JSON.stringify(answer)}`);
    }
  });
});
