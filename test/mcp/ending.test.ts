import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { makeFolder, RawServer, type TestFolder } from "./running.ts";

const add = (content: string) => ({
  name: "add_content",
  arguments: { content },
  _meta: { progressToken: 1 },
});

describe("the end of a server", () => {
  let folder: TestFolder;
  beforeEach(async () => {
    folder = await makeFolder();
  });
  afterEach(() => folder.remove());

  it("comes when its input ends, after what was asked is answered", async () => {
    const server = new RawServer(folder.data);
    server.request(1, "tools/call", add("Gabbro is coarse."));
    server.request(2, "ping");
    server.endInput();
    assert.deepEqual(await server.ended(), { code: 0, signal: null });
    const answers = server.messages.filter(({ id }) => id !== undefined);
    assert.deepEqual(answers.map(({ id }) => id).sort(), [1, 2]);
    assert.equal(answers.find(({ id }) => id === 1)?.result.structuredContent.status, "done");
  });

  it("comes at once when nothing was asked, even in the middle of a line", async () => {
    const server = new RawServer(folder.data);
    server.write('{"jsonrpc": "2.0", "id": 1, "meth');
    server.endInput();
    assert.deepEqual(await server.ended(), { code: 0, signal: null });
    assert.equal(server.messages[0]?.error?.code, -32_700);
  });

  it("comes with a signal, and what was being waited for is said to go on", async () => {
    const server = new RawServer(folder.data);
    server.request(1, "tools/call", add("Diorite is speckled."));
    await server.until((messages) => messages.find(({ method }) => method === "notifications/message"));
    server.kill("SIGTERM");
    assert.deepEqual(await server.ended(), { code: 0, signal: null });
    assert.match(
      JSON.stringify(server.messages.find(({ id }) => id === 1)),
      /goes on by itself|can be searched/,
    );
    const next = new RawServer(folder.data);
    next.request(1, "tools/call", add("Diorite is speckled."));
    assert.equal((await next.answerTo(1)).result.structuredContent.status, "done");
    next.request(2, "tools/call", { name: "list_documents" });
    assert.equal((await next.answerTo(2)).result.structuredContent.documents.length, 1);
    next.endInput();
    await next.ended();
  });

  it("comes when nobody reads any more", async () => {
    const server = new RawServer(folder.data);
    server.request(1, "ping");
    await server.answerTo(1);
    server.stopReading();
    server.request(2, "ping");
    server.request(3, "ping");
    assert.deepEqual(await server.ended(), { code: 0, signal: null });
  });

  it("says that nobody works where workers are switched off", async () => {
    const server = new RawServer(folder.data, { TASK_QUEUE_ENABLED: "false" });
    server.request(1, "tools/call", add("Tuff is light."));
    const { result } = await server.answerTo(1);
    assert.equal(result.structuredContent.status, "pending");
    assert.match(result.content[0].text, /nobody works: TASK_QUEUE_ENABLED is false/);
    server.endInput();
    assert.equal((await server.ended()).code, 0);
  });

  it("is told on standard error when it cannot begin", async () => {
    const server = new RawServer(folder.data, { DATABASE_URL: "postgres://127.0.0.1:1/none" });
    const { code } = await server.ended();
    assert.equal(code, 3);
    assert.match(server.err, /^quarry: /);
    assert.deepEqual(server.messages, []);
  });
});
