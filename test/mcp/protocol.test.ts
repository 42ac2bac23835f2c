import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { makeFolder, RawServer, type TestFolder } from "./running.ts";

describe("the protocol, line by line", () => {
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
  let lastId = 0;
  const ask = async (method: string, params?: object) => {
    const id = ++lastId;
    server.request(id, method, params);
    return server.answerTo(id);
  };
  /** To lines without an id that can be known. */
  const refusals = () => server.messages.filter(({ id }) => id === null);

  it("takes the client's version if it knows it, else offers its newest", async () => {
    const versions = new Map([
      ["2025-06-18", "2025-06-18"],
      ["2025-11-25", "2025-11-25"],
      ["2024-11-05", "2024-11-05"],
      ["2031-01-01", "2025-11-25"],
    ]);
    for (const [asked, wanted] of versions) {
      const { result } = await ask("initialize", { protocolVersion: asked, capabilities: {} });
      assert.equal(result.protocolVersion, wanted);
    }
  });

  it("refuses lines that are no messages, and goes on", async () => {
    const cases: [string | Uint8Array, number][] = [
      ["{nonsense", -32_700],
      [Buffer.from([0x22, 0xff, 0x22]), -32_700],
      ["42", -32_600],
      ["[]", -32_600],
      [JSON.stringify({ id: 1.5, method: 3, jsonrpc: "1.0" }), -32_600],
      [JSON.stringify({ jsonrpc: "2.0", id: {}, method: "ping" }), -32_600],
    ];
    for (const [line, code] of cases) {
      const { length } = server.messages;
      server.write(line);
      server.write("\n");
      const [answer] = await server.until((messages) =>
        messages.length > length ? messages.slice(length) : undefined,
      );
      assert.equal(answer!.error?.code, code, String(line));
    }
    const blank = server.messages.length;
    server.write("\n \r\n");
    assert.deepEqual((await ask("ping")).result, {});
    assert.equal(server.messages.length, blank + 1);
  });

  it("names the field that is wrong", async () => {
    const call = (name: string, args?: unknown) => ask("tools/call", { name, arguments: args });
    const wrong: [Promise<{ error?: { code: number; message: string } }>, RegExp][] = [
      [call("search", {}), /^arguments\.query:/],
      [call("search", { query: "x", limit: 0 }), /^arguments\.limit:/],
      [call("search", { query: "x", metadata: { a: { b: 1 } } }), /^arguments\.metadata\.a:/],
      [call("add_content", { content: "x", tags: ["a", 1] }), /^arguments\.tags\.1:/],
      [call("add_content", { content: "x", colour: "red" }), /^arguments\.colour: there is no such field/],
      [call("nothing"), /^params\.name: there is no tool "nothing"; there are search,/],
      [call("search", []), /^params\.arguments:/],
      [ask("tools/call"), /^params\.name:/],
      [ask("tools/list", { cursor: "x" }), /^params\.cursor:/],
      [ask("resources/list", { cursor: "x" }), /^params\.cursor:/],
      [ask("resources/read", {}), /^params\.uri:/],
      [ask("logging/setLevel", { level: "loud" }), /^params\.level:/],
      [ask("ping", { _meta: { progressToken: {} } }), /^params\._meta\.progressToken:/],
      [ask("initialize", {}), /^params\.protocolVersion:/],
    ];
    for (const [answer, message] of wrong) {
      const { error } = await answer;
      assert.equal(error?.code, -32_602, error?.message);
      assert.match(error.message, message);
    }
    server.send({ jsonrpc: "2.0", id: "list", method: "ping", params: [1] });
    assert.equal((await server.answerTo("list")).error?.code, -32_602);
  });

  it("knows no other methods, and says nothing to notifications and answers", async () => {
    assert.equal((await ask("prompts/list")).error?.code, -32_601);
    assert.equal((await ask("__proto__")).error?.code, -32_601);
    const { length } = server.messages;
    server.send({ jsonrpc: "2.0", method: "notifications/initialized" });
    server.send({ jsonrpc: "2.0", method: "notifications/unknown", params: {} });
    server.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 99_999 } });
    server.send({ jsonrpc: "2.0", id: 5, result: {} });
    await ask("ping");
    assert.equal(server.messages.length, length + 1);
  });

  it("answers a batch with a batch", async () => {
    const ping = (id: number) => ({ jsonrpc: "2.0", id, method: "ping" });
    server.send([ping(9_001), { jsonrpc: "2.0", method: "notifications/initialized" }, 7, ping(9_002)]);
    const batch = await server.until((messages) => messages.find(Array.isArray));
    assert.deepEqual(
      (batch as unknown as { id: unknown }[]).map(({ id }) => id),
      [9_001, null, 9_002],
    );
  });

  it("refuses a line that is too long without keeping it, and goes on", async () => {
    const before = refusals().length;
    const piece = Buffer.alloc(1_048_576, "x");
    for (let megabytes = 0; megabytes < 33; megabytes++) server.write(piece);
    server.write("\n");
    const answer = await server.until(() => refusals()[before]);
    assert.equal(answer.error?.code, -32_600);
    assert.match(answer.error?.message ?? "", /too long/);
    assert.deepEqual((await ask("ping")).result, {});
  });

  it("refuses a text that is too long by its field, not by its line", async () => {
    const { error } = await ask("tools/call", {
      name: "add_content",
      arguments: { content: "é".repeat(4_000_001) },
    });
    assert.match(error?.message ?? "", /^arguments\.content: Too big/);
  });

  it("answers everything to a client that reads late", async () => {
    const other = new RawServer(folder.data, {}, { isReading: false });
    for (let id = 0; id < 2_000; id++) other.request(id, "tools/list");
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    other.read();
    other.endInput();
    assert.equal((await other.ended()).code, 0);
    assert.equal(new Set(other.messages.map(({ id }) => id)).size, 2_000);
  });

  it("serves others while one waits, and does not answer one that was cancelled", async () => {
    const note = {
      name: "add_content",
      arguments: { content: "Obsidian is glass." },
      _meta: { progressToken: "slow" },
    };
    server.request("slow", "tools/call", note);
    server.request("slow", "ping");
    assert.match((await server.answerTo("slow")).error?.message ?? "", /a request with it is running/);
    assert.deepEqual((await ask("ping")).result, {});
    server.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "slow" } });
    const again = await ask("tools/call", {
      name: "add_content",
      arguments: { content: "Obsidian is glass." },
    });
    assert.equal(again.result.structuredContent.status, "done");
    assert.equal(server.messages.filter(({ id }) => id === "slow").length, 1, "only the refusal");
  });

  it("tells what it does, as loud as it is asked to", async () => {
    const said = () => server.messages.filter(({ method }) => method === "notifications/message");
    assert.match(JSON.stringify(said()), /nobody else works/);
    assert.deepEqual((await ask("logging/setLevel", { level: "error" })).result, {});
  });

  it("has written nothing but messages to standard output, and nothing to standard error", () => {
    for (const message of server.messages.flat()) assert.equal(message.jsonrpc, "2.0");
    assert.equal(server.err, "");
  });
});
