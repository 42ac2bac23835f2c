import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import type { Asked } from "../../src/index.ts";
import { gullible } from "../agents/gullible-model.ts";
import { type ModelServer, startModelServer } from "../support/model-server.ts";
import { type Serving, serveForTest } from "./serving.ts";

const QUESTION = "Who must be told before a blast?";
const NOTE = "# Blasting\n\nThe parish council and the school are told a day before each blast.\n";

describe("questions over HTTP", () => {
  let model: ModelServer;
  let serving: Serving;
  before(async () => {
    model = await startModelServer({ chat: gullible({ synthesis: () => "The school is told [1]." }) });
    serving = await serveForTest({ settings: { llm: "ollama:llama-test", ollamaHost: model.url } });
    const file = join(serving.folder, "blasting.md");
    await writeFile(file, NOTE);
    const crew = await serving.quarry.work();
    const { items } = await serving.quarry.ingest([file]);
    await serving.quarry.queue.finished(items.map((item) => item.queue_id));
    await crew.stop();
  });
  after(async () => {
    await serving.close();
    await model.close();
  });
  beforeEach(() => model.forget());
  afterEach(async () =>
    assert.deepEqual((await serving.quarry.workers()).length, 0, "a lane was left behind"),
  );

  const ask = (body: object, init: RequestInit = {}) =>
    serving.ask("/ask", {
      method: "POST",
      body: JSON.stringify(body),
      ...init,
      headers: { "content-type": "application/json", ...init.headers },
    });
  const read = async (id: string) => {
    const response = await serving.ask(`/ask/${id}`);
    return { status: response.status, asked: (await response.json()) as Asked };
  };
  const until = async (isTrue: () => boolean | Promise<boolean>) => {
    while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 10));
  };

  it("is answered when the answer is there; without a worker process the server works on it", async () => {
    const response = await ask({ question: QUESTION, collection: null });
    assert.equal(response.status, 200);
    const asked = (await response.json()) as Asked;
    assert.equal(asked.answer, "The school is told [1].");
    const [cited] = asked.citations;
    assert.ok(cited?.kind === "passage" && cited.filename === "blasting.md" && cited.page_number === 1);
    assert.deepEqual((await read(asked.planner_id)).asked, asked);
  });

  it("tells how far it is to whoever asks for events", async () => {
    const response = await ask({ question: QUESTION }, { headers: { accept: "text/event-stream" } });
    assert.equal(response.headers.get("content-type"), "text/event-stream");
    const events = (await response.text())
      .trim()
      .split("\n\n")
      .map((event) => {
        const [, kind, data] = /^event: (\w+)\ndata: (.*)$/.exec(event)!;
        return { kind, asked: JSON.parse(data!) as Asked };
      });
    assert.equal(events.at(-1)?.kind, "answer");
    assert.equal(events.at(-1)?.asked.answer, "The school is told [1].");
    assert.ok(events.length >= 2);
    assert.ok(events.slice(0, -1).every(({ kind }) => kind === "progress"));
    assert.equal(events[0]?.asked.planner_id, events.at(-1)?.asked.planner_id);
  });

  for (const accept of ["application/json", "text/event-stream"])
    it(`whoever goes away costs nothing: the question is cancelled (${accept})`, async () => {
      model.misbehave({ kind: "hang" });
      const gone = new AbortController();
      const asking = ask(
        { question: "Is anybody there?" },
        { signal: gone.signal, headers: { accept } },
      ).then((response) => response.text());
      await until(() => model.requests.length > 0);
      gone.abort();
      await assert.rejects(asking);
      const [row] = (await serving.quarry.tasks.list({ function_name: "execute_initial_planning", limit: 1 }))
        .tasks;
      const id = row!.entity_id;
      await until(async () => (await read(id)).asked.status === "FAILED");
      assert.equal((await read(id)).asked.error_message, "cancelled");
      await until(async () => (await serving.quarry.workers()).length === 0);
      assert.equal(model.requests.length, 1);
    });

  it("is put into line for whoever does not wait", async () => {
    const response = await ask({ question: QUESTION, wait: false });
    assert.equal(response.status, 202);
    const { planner_id: id, status } = (await response.json()) as Asked;
    assert.equal(status, "PENDING");
    const crew = await serving.quarry.work({ lanes: ["tasks"] });
    await until(async () => (await read(id)).asked.status === "COMPLETED");
    await crew.stop();
  });

  it("what cannot be asked is refused, also to whoever wants events", async () => {
    for (const headers of [{}, { accept: "text/event-stream" }])
      for (const body of [{}, { question: " " }, { question: "x", tenant: "-" }, { question: "x", more: 1 }])
        assert.equal((await ask(body, { headers })).status, 400, JSON.stringify(body));
    assert.equal((await read("nobody")).status, 404);
  });
});
