import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { z } from "zod";
import { defineFunction } from "../../src/index.ts";
import { type Serving, serveForTest } from "./serving.ts";

interface Event {
  readonly id: string;
  readonly event: string;
  readonly data: Record<string, unknown>;
}

describe("events", () => {
  let serving: Serving;
  before(async () => {
    serving = await serveForTest({ settings: { embeddingModel: "elsewhere" } });
  });
  after(() => serving.close());

  /** Opens a stream; `next` gives its events one by one. */
  async function listen(path = "/events", headers: Record<string, string> = {}) {
    const closing = new AbortController();
    const response = await serving.ask(path, { headers, signal: closing.signal });
    assert.equal(response.headers.get("content-type"), "text/event-stream");
    const events = parse(response.body!);
    // Until the first word has come, nobody follows yet.
    const first = await events.next();
    assert.equal(first.value, undefined);
    return {
      next: async () => (await events.next()).value!,
      close: () => closing.abort(),
    };
  }

  async function* parse(body: ReadableStream<Uint8Array>): AsyncGenerator<Event | undefined> {
    let text = "";
    for await (const bytes of body) {
      text += Buffer.from(bytes).toString();
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const fields = new Map(
          text
            .slice(0, end)
            .split("\n")
            .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
        );
        text = text.slice(end + 2);
        const data = fields.get("data");
        yield data === undefined
          ? undefined
          : { id: fields.get("id") ?? "", event: fields.get("event")!, data: JSON.parse(data) };
      }
    }
  }

  it("tell what happens to a job, and go on where they broke off", async () => {
    const stream = await listen("/events?kind=embedding_job");
    const job = await serving.quarry.embeddings.create({ input_text: "watched" });
    const made = await stream.next();
    assert.deepEqual([made.event, made.data.id, made.data.status], ["embedding_job", job.id, "pending"]);
    const worker = await serving.quarry.remote.register({ host: "h", lanes: [], capabilities: {} });
    const { signal } = new AbortController();
    await serving.quarry.remote.claim("embeddings", { worker: worker.id, limit: 1, waitMs: 0, signal });
    const taken = await stream.next();
    assert.deepEqual(
      [taken.data.id, taken.data.status, taken.data.worker_id],
      [job.id, "processing", worker.id],
    );
    stream.close();

    const other = await serving.quarry.embeddings.create({ input_text: "while nobody looked" });
    const again = await listen("/events?kind=embedding_job", { "last-event-id": taken.id });
    const seen: unknown[] = [];
    while (!seen.includes(other.id)) seen.push((await again.next()).data.id);
    again.close();
  });

  it("tell of one thing only when asked to", async () => {
    const [, second] = await serving.quarry.embeddings.createMany([{ input_text: "a" }, { input_text: "b" }]);
    const stream = await listen(`/events?id=${second!.id}`, { "last-event-id": "2020-01-01T00:00:00Z" });
    assert.equal((await stream.next()).data.id, second!.id);
    stream.close();
  });

  it("tell what happens to items of the queue", async () => {
    const stream = await listen("/events?kind=queue_item");
    const item = await serving.quarry.queue.enqueue({
      item_type: "file",
      op: "ingest",
      payload: { file_path: "/watched" },
    });
    const { event, data } = await stream.next();
    assert.deepEqual([event, data.id, data.status], ["queue_item", item.queue_id, "pending"]);
    stream.close();
  });

  it("tell what happens to function tasks", async () => {
    const { tasks } = serving.quarry;
    const payload = z.object({});
    const run = async () => undefined;
    tasks.register(defineFunction({ name: "watched", entityType: "planner", payload, run }));
    const planner = await tasks.createEntity("planner");
    const stream = await listen("/events?kind=task");
    const [id] = await tasks.enqueue([
      { entity_type: "planner", entity_id: planner, function_name: "watched" },
    ]);
    const { event, data } = await stream.next();
    assert.deepEqual([event, data.id, data.status, data.entity_id], ["task", id, "PENDING", planner]);
    stream.close();
    const alone = await listen(`/events?id=${id}`, { "last-event-id": "2020-01-01T00:00:00Z" });
    assert.equal((await alone.next()).data.id, id);
    alone.close();
  });

  it("refuse what is no id of an event", async () => {
    for (const id of [
      "yesterday",
      "1",
      "2026",
      "2026-01-01",
      "0000-01-01T00:00:00Z",
      "Tue Mar 01 2022 (x)",
    ]) {
      const response = await serving.ask("/events", { headers: { "last-event-id": id } });
      assert.equal(response.status, 400, id);
      await response.body?.cancel();
    }
  });
});
