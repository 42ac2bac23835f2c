import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type Serving, serveForTest } from "./serving.ts";

describe("queue items over HTTP", () => {
  let serving: Serving;
  before(async () => {
    serving = await serveForTest();
  });
  after(() => serving.close());

  async function ask(path: string, init?: RequestInit) {
    const response = await serving.ask(path, init);
    return { status: response.status, body: JSON.parse(await response.text()) };
  }
  const post = (path: string, body?: unknown) =>
    ask(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  const file = (path: string, more: object = {}) => ({
    item_type: "file",
    op: "ingest",
    payload: { file_path: path },
    ...more,
  });

  it("one or many are enqueued, and the same thing again is told", async () => {
    const one = await post("/queue/items", file("/a", { priority: 7, metadata: { year: 2026 } }));
    assert.deepEqual([one.status, one.body.verdict], [201, "queued"]);
    const many = await post("/queue/items", [file("/a"), file("/b")]);
    assert.deepEqual(
      many.body.map(({ verdict }: { verdict: string }) => verdict),
      ["merged", "queued"],
    );
    const { body } = await ask(`/queue/items/${one.body.queue_id}`);
    assert.deepEqual(
      [body.status, body.priority, body.payload, body.metadata, body.result],
      ["pending", 7, { file_path: "/a" }, {}, null],
    );
  });

  it("they are listed by filter, a page at a time", async () => {
    await post("/queue/items", [
      file("/c", { tenant_id: "t", collection: "docs" }),
      file("/d", { tenant_id: "t" }),
    ]);
    const count = async (query: string) => (await ask(`/queue/items?${query}`)).body.items.length;
    assert.deepEqual(
      [await count("tenant_id=t"), await count("tenant_id=t&collection=docs"), await count("status=done")],
      [2, 1, 0],
    );
    assert.equal(await count("item_type=folder"), 0);
    const first = (await ask("/queue/items?limit=3")).body;
    const second = (await ask(`/queue/items?limit=3&after=${first.next}`)).body;
    assert.equal(new Set([...first.items, ...second.items].map(({ queue_id: id }) => id)).size, 4);
    assert.equal(second.next, null);
  });

  it("they say whose paths they are about, and are asked for by it", async () => {
    const payload = { file_path: "/of-b", seen_on: "b" };
    const { queue_id } = (await post("/queue/items", { ...file("/of-b"), payload })).body;
    const { items } = (await ask("/queue/items?seen_on=b")).body;
    assert.deepEqual(
      items.map((item: { queue_id: string; seen_on: string }) => [item.queue_id, item.seen_on]),
      [[queue_id, "b"]],
    );
    assert.equal((await ask("/queue/items?limit=1000")).body.items.at(-1).seen_on, null);
    assert.equal((await ask("/queue/items?seen_on=")).status, 400);
    await ask(`/queue/items/${queue_id}`, { method: "DELETE" });
  });

  it("they are cancelled and retried, when it is time for it", async () => {
    const { body } = await post("/queue/items", file("/e"));
    const retried = await post(`/queue/items/${body.queue_id}/retry`);
    assert.deepEqual([retried.status, retried.body.code], [409, "too_late"]);
    const cancelled = await ask(`/queue/items/${body.queue_id}`, { method: "DELETE" });
    assert.deepEqual(cancelled.body, { queue_id: body.queue_id, verdict: "cancelled" });
    assert.equal((await ask(`/queue/items/${body.queue_id}`)).status, 404);
    assert.equal((await post("/queue/items/nothing/retry")).status, 404);
  });

  it("what makes no sense is refused with the field, and none of a batch is kept", async () => {
    const before = (await ask("/queue/items")).body.items.length;
    for (const [item, detail] of [
      [file("relative"), /payload\.file_path/],
      [{ ...file("/x"), op: "scan" }, /op: .*"ingest"\|"update"\|"delete"/],
      [{ ...file("/x"), tenant_id: " " }, /tenant_id/],
    ] as const) {
      const refused = await post("/queue/items", [file("/fine"), item]);
      assert.equal(refused.status, 400);
      assert.match(refused.body.detail, detail);
    }
    assert.equal((await post("/queue/items", file("/x", { priority: 11 }))).status, 400);
    assert.equal((await post("/queue/items", file("/x", { colour: "red" }))).status, 400);
    assert.equal((await ask("/queue/items")).body.items.length, before);
  });
});
