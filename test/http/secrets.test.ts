import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type Serving, sendRaw, serveForTest } from "./serving.ts";

/** Sent everywhere a key may end up by mistake. It must come out nowhere. */
const CANARY = "canary-4f1b9c7d2e8a6035";
const ID = "01990b0e-0000-7000-8000-000000000000";

describe("secrets", () => {
  let serving: Serving;
  before(async () => {
    serving = await serveForTest({ settings: { apiKey: `read=${CANARY},write=other-key-0123456789` } });
  });
  after(() => serving.close());

  it("a key is neither logged nor answered, wherever it was sent", async () => {
    const json = { "content-type": "application/json" };
    const write = { "x-api-key": "other-key-0123456789" };
    const answers = await Promise.all([
      serving.ask("/lanes", { headers: { authorization: `Bearer ${CANARY}` } }),
      serving.ask("/lanes", { headers: { "x-api-key": CANARY } }),
      serving.ask("/lanes", { headers: { "x-api-key": `${CANARY}x` } }),
      serving.ask("/lanes", { headers: { authorization: CANARY } }),
      serving.ask("/lanes", { headers: { authorization: `Basic ${btoa(CANARY)}` } }),
      serving.ask("/lanes/x/pause", { method: "POST", headers: { "x-api-key": CANARY } }),
      serving.ask(`/lanes?api_key=${CANARY}`, { headers: { "x-api-key": CANARY } }),
      serving.ask(`/documents?state=${CANARY}`, { headers: { "x-api-key": CANARY } }),
      serving.ask(`/documents?after=${CANARY}`, { headers: { "x-api-key": CANARY } }),
      serving.ask(`/search?q=a&mode=${CANARY}`, { headers: { "x-api-key": CANARY } }),
      serving.ask(`/documents/${CANARY}`, { headers: { "x-api-key": CANARY } }),
      serving.ask(`/${CANARY}`, { headers: { "x-api-key": CANARY } }),
      serving.ask(`/lanes/${CANARY}/pause`, { method: "POST", headers: write }),
      serving.ask(`/documents/${ID}/retry`, {
        method: "POST",
        headers: { ...json, ...write },
        body: JSON.stringify({ phase: CANARY }),
      }),
      serving.ask(`/documents/${ID}/retry`, {
        method: "POST",
        headers: { ...json, ...write },
        body: `{${CANARY}`,
      }),
      serving.ask("/lanes", {
        headers: { cookie: `key=${CANARY}`, "user-agent": CANARY, referer: `http://x/${CANARY}` },
      }),
      serving.ask("/lanes", { headers: { "x-request-id": `not an id ${CANARY}` } }),
    ]);
    const host = `Host: 127.0.0.1:${serving.port}`;
    const raw = await Promise.all([
      sendRaw(serving.port, `GET / HTTP/1.1\r\n${host}\r\nX-Api-Key: ${CANARY}\0\r\n\r\n`),
      sendRaw(serving.port, `GET / HTTP/1.1\r\n${host}\r\nX-Api-Key : ${CANARY}\r\n\r\n`),
      sendRaw(serving.port, `GET / HTTP/1.1\r\nHost: ${CANARY}@x\r\nConnection: close\r\n\r\n`),
      sendRaw(serving.port, `GET / HTTP/1.1\r\nHost: ${CANARY}\r\nConnection: close\r\n\r\n`),
      sendRaw(
        serving.port,
        `GET / HTTP/1.1\r\n${host}\r\nOrigin: http://${CANARY}\r\nConnection: close\r\n\r\n`,
      ),
      sendRaw(serving.port, `GET http://${CANARY}@x/ HTTP/1.1\r\n${host}\r\nConnection: close\r\n\r\n`),
      sendRaw(serving.port, `${CANARY} / HTTP/1.1\r\n${host}\r\n\r\n`),
    ]);
    const texts = await Promise.all(
      answers.map(async (answer) => JSON.stringify([...answer.headers]) + (await answer.text())),
    );
    for (const text of [...texts, ...raw]) assert.ok(!text.includes(CANARY), text);
    assert.ok(serving.log.length >= answers.length);
    for (const line of serving.log) assert.ok(!line.includes(CANARY), line);
    assert.ok(!serving.log.join("").includes(btoa(CANARY)));
  });

  it("a request is one line: method, declared path, status, time, id, and which key without the key", async () => {
    serving.log.length = 0;
    const headers = { "x-api-key": CANARY, "x-request-id": "abc_1.2-3" };
    const answer = await serving.ask(`/documents/${ID}?`, { headers });
    assert.equal(answer.headers.get("x-request-id"), "abc_1.2-3");
    assert.equal(serving.log.length, 1);
    const { time, ms, key, ...rest } = JSON.parse(serving.log[0]!);
    assert.deepEqual(rest, {
      level: "info",
      requestId: "abc_1.2-3",
      method: "GET",
      route: "/documents/{id}",
      status: 404,
      msg: "request",
    });
    assert.match(key, /^key-[0-9a-f]{8}$/);
    assert.equal(typeof ms, "number");
    assert.ok(Date.parse(time));
  });

  it("an id of the caller's is taken only when it is harmless", async () => {
    for (const [given, isTaken] of [
      ["a", true],
      ["A-1_2.3", true],
      ["x".repeat(64), true],
      ["x".repeat(65), false],
      ["a b", false],
      ["<script>", false],
      ["", false],
    ] as const) {
      const answered = (await serving.ask("/health", { headers: { "x-request-id": given } })).headers.get(
        "x-request-id",
      );
      assert.equal(answered === given, isTaken, given);
      assert.match(answered!, /^[\w.-]{1,64}$/);
    }
  });
});
