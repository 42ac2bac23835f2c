import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, describe, it } from "node:test";
import { rawAnswers, type Serving, sendRaw, serveForTest } from "./serving.ts";

/** What comes over the wire before it is a request at all. */
describe("sockets", () => {
  let serving: Serving;
  let host: string;
  before(async () => {
    serving = await serveForTest({
      settings: { bodyMbMax: 1 },
      limits: { headersMs: 300, requestMs: 600, checkEveryMs: 50, silentMs: 1_500 },
    });
    host = `Host: 127.0.0.1:${serving.port}`;
  });
  after(() => serving.close());
  const statuses = async (bytes: string, until?: RegExp) =>
    rawAnswers(await sendRaw(serving.port, bytes, until)).map(({ status }) => status);
  const isPaused = async () => (await serving.quarry.lanes.paused()).size > 0;
  /** A second request that would be answered if the first were read as shorter than it is. */
  const smuggled = () => `POST /lanes/chunks.vector/pause HTTP/1.1\r\n${host}\r\n\r\n`;

  const heads: readonly (readonly [name: string, head: () => string, status: number])[] = [
    ["a length and parts", () => `Content-Length: 4\r\nTransfer-Encoding: chunked`, 400],
    ["two lengths", () => `Content-Length: 4\r\nContent-Length: 0`, 400],
    ["two lengths in one", () => `Content-Length: 4, 0`, 400],
    ["a length with a sign", () => `Content-Length: +4`, 400],
    ["a negative length", () => `Content-Length: -4`, 400],
    ["a length in hexadecimal", () => `Content-Length: 0x4`, 400],
    ["an unknown encoding", () => `Transfer-Encoding: xchunked`, 400],
    ["parts that are not last", () => `Transfer-Encoding: chunked, identity`, 400],
    ["a space before the colon", () => `Transfer-Encoding : chunked`, 400],
    ["a header on two lines", () => `X-A: 1\r\n Transfer-Encoding: chunked`, 400],
    ["a bare line feed", () => `X-A: 1\nTransfer-Encoding: chunked`, 400],
    ["NUL in a header", () => `X-A: \0`, 400],
    ["a header without a name", () => `: x`, 400],
    ["headers of 20 kB", () => `X-A: ${"x".repeat(20_000)}`, 431],
  ];
  for (const [name, head, status] of heads)
    it(`${name} → ${status}, and nothing after it is read`, async () => {
      const answers = await statuses(`POST /lanes HTTP/1.1\r\n${host}\r\n${head()}\r\n\r\n${smuggled()}`);
      assert.deepEqual(answers, [status]);
      assert.equal(await isPaused(), false);
    });

  it("a size of a part that is no number is refused, and nothing after it is read", async () => {
    const head = `POST /documents/01990b0e-0000-7000-8000-000000000000/retry HTTP/1.1\r\n${host}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
    assert.deepEqual(await statuses(`${head}zz\r\n${smuggled()}`), [400]);
    assert.equal(await isPaused(), false);
  });

  it("a request line that is none is refused", async () => {
    for (const line of [
      "GET",
      "GET /",
      "GET / HTTP/9.9",
      "GET /a b HTTP/1.1",
      "BREW / HTTP/1.1",
      "get / HTTP/1.1",
    ])
      assert.deepEqual(await statuses(`${line}\r\n${host}\r\n\r\n`), [400], line);
    assert.deepEqual(await statuses(`GET /${"x".repeat(20_000)} HTTP/1.1\r\n${host}\r\n\r\n`), [431]);
    assert.deepEqual(await statuses("\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03"), [400], "TLS");
    assert.deepEqual(await statuses("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), [400], "HTTP/2");
  });

  it("CONNECT is not answered, an upgrade is not made", async () => {
    assert.deepEqual(await statuses(`CONNECT evil.test:443 HTTP/1.1\r\n${host}\r\n\r\n`), []);
    const upgrade = `GET /health HTTP/1.1\r\n${host}\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n`;
    assert.deepEqual(await statuses(upgrade), [200]);
  });

  it("several requests on one connection are answered in their order", async () => {
    const one = (path: string, more = "") => `GET ${path} HTTP/1.1\r\n${host}\r\n${more}\r\n`;
    const answers = rawAnswers(
      await sendRaw(
        serving.port,
        one("/health") +
          one("/nothing") +
          one("/lanes") +
          one("/documents?x=1") +
          one("/health", "Connection: close\r\n"),
      ),
    );
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 404, 200, 400, 200],
    );
    assert.match(answers[2]!.body, /chunks.vector/);
  });

  it("HTTP/1.0 is answered, and the connection closed", async () => {
    assert.deepEqual(await statuses(`GET /health HTTP/1.0\r\n${host}\r\n\r\n`), [200]);
  });

  it("a body that is longer than allowed ends the connection", async () => {
    const part = `${(65_536).toString(16)}\r\n${"x".repeat(65_536)}\r\n`;
    const head = `POST /documents/01990b0e-0000-7000-8000-000000000000/retry HTTP/1.1\r\n${host}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const answers = rawAnswers(await sendRaw(serving.port, head + part.repeat(40)));
    assert.deepEqual(
      answers.map(({ status }) => status),
      [413],
    );
    assert.equal(answers[0]!.headers.connection, "close");
  });

  it("whoever sends a head slowly is not waited for", async () => {
    const socket = connect(serving.port, "127.0.0.1");
    let answer = "";
    socket.on("data", (data) => {
      answer += data;
    });
    socket.on("error", () => undefined);
    socket.write(`GET /health HTTP/1.1\r\n${host}\r\n`);
    const drip = setInterval(() => socket.write("X-A: 1\r\n"), 50);
    // Not `once`, which takes the reset for a failure: what was dripped after the answer brings one.
    await new Promise((resolve) => socket.on("close", resolve));
    clearInterval(drip);
    assert.match(answer, /^(HTTP\/1\.1 408 |$)/);
  });

  it("whoever sends a body slowly is not waited for", async () => {
    const answers = await statuses(
      `POST /documents/01990b0e-0000-7000-8000-000000000000/retry HTTP/1.1\r\n${host}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`,
    );
    assert.deepEqual(answers, [408]);
  });

  it("whoever sends nothing at all is not waited for", async () => {
    const socket = connect(serving.port, "127.0.0.1");
    socket.resume();
    await once(socket, "close");
  });

  it("whoever goes away in the middle does no harm", async () => {
    const socket = connect(serving.port, "127.0.0.1");
    socket.write(
      `POST /documents/01990b0e-0000-7000-8000-000000000000/retry HTTP/1.1\r\n${host}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`,
      () => socket.destroy(),
    );
    await once(socket, "close");
    assert.equal((await serving.ask("/health")).status, 200);
    assert.ok(!serving.log.some((line) => line.includes('"level":"error"')), serving.log.join(""));
  });
});
