import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { after, before, describe, it } from "node:test";
import type { DocumentDetails, DocumentPage, SearchAnswer } from "../../src/index.ts";
import { eventually } from "../support/crash/patience.ts";
import { type Serving, serveForTest } from "./serving.ts";

describe("routes", () => {
  let serving: Serving;
  before(async () => {
    serving = await serveForTest({ settings: { pollMs: 200 } });
  });
  after(() => serving.close());
  const read = async <T>(path: string): Promise<T> => {
    const answer = await serving.ask(path);
    assert.equal(answer.status, 200, `${path}: ${answer.status}`);
    return (await answer.json()) as T;
  };
  const add = async (name: string, content: string, metadata = {}) => {
    const path = `${serving.folder}/${name}`;
    await writeFile(path, content);
    return serving.quarry.documents.add({ path, metadata });
  };

  it("documents are listed in pages, newest first, each once", async () => {
    const added: string[] = [];
    for (let count = 0; count < 7; count += 1)
      added.push((await add(`page-${count}.txt`, `Text number ${count}.`)).id);
    const seen: string[] = [];
    let after = "";
    let pages = 0;
    do {
      const page: DocumentPage = await read(`/documents?limit=3&name=page-${after}`);
      seen.push(...page.documents.map(({ id }) => id));
      after = page.next === undefined ? "" : `&after=${page.next}`;
      pages += 1;
    } while (after !== "");
    assert.equal(pages, 3);
    assert.deepEqual(seen, added.toReversed());
    assert.deepEqual((await read<DocumentPage>("/documents?tenant=nobody")).documents, []);
    assert.equal((await read<DocumentPage>("/documents?state=queued&limit=1000")).documents.length, 7);
  });

  it("documents are asked for by the machine whose path they came from", async () => {
    const path = `${serving.folder}/of-b.txt`;
    await writeFile(path, "From b.");
    const { id } = await serving.quarry.documents.add({ path, source: path, seenOn: "b" });
    const { documents } = await read<DocumentPage>("/documents?seenOn=b");
    assert.deepEqual(
      documents.map(({ id: found, seenOn }) => [found, seenOn]),
      [[id, "b"]],
    );
    assert.deepEqual((await read<DocumentPage>("/documents?seenOn=c")).documents, []);
    await serving.quarry.documents.delete(id);
  });

  it("the status tells how many items wait", async () => {
    const items = async () => (await read<{ items: object }>("/status")).items;
    assert.deepEqual(await items(), { waiting: 0, withoutWorkers: [] });
    const payload = { content: "A note.", source_type: "test" };
    const { queue_id } = await serving.quarry.queue.enqueue({ item_type: "content", op: "ingest", payload });
    assert.deepEqual(await items(), { waiting: 1, withoutWorkers: [] });
    await serving.quarry.queue.cancel(queue_id);
  });

  it("a document is shown, retried and deleted", async () => {
    const { id } = await add("one.txt", "One document.", { author: "Ann" });
    const shown = await read<DocumentDetails>(`/documents/${id}`);
    assert.deepEqual([shown.filename, shown.state, shown.metadata], ["one.txt", "queued", { author: "Ann" }]);
    assert.deepEqual(await read<DocumentDetails>(`/documents/${id.toUpperCase()}`), shown);
    const retry = async (init: RequestInit) =>
      (await serving.ask(`/documents/${id}/retry`, { method: "POST", ...init })).json();
    assert.deepEqual(await retry({}), { id, retried: 0 });
    const body = JSON.stringify({ phase: "ocr" });
    assert.deepEqual(await retry({ body, headers: { "content-type": "application/json" } }), {
      id,
      retried: 0,
    });
    const deleted = await serving.ask(`/documents/${id}`, { method: "DELETE" });
    assert.deepEqual(await deleted.json(), { id, deleted: true });
    assert.equal((await serving.ask(`/documents/${id}`)).status, 404);
    assert.equal((await serving.ask(`/documents/${id}`, { method: "DELETE" })).status, 404);
  });

  it("lanes rest and go on", async () => {
    const paused = async () =>
      (await read<{ lanes: { name: string; isPaused: boolean }[] }>("/lanes")).lanes
        .filter(({ isPaused }) => isPaused)
        .map(({ name }) => name);
    const post = async (path: string) => (await serving.ask(path, { method: "POST" })).json();
    assert.deepEqual(await paused(), []);
    assert.deepEqual(await post("/lanes/chunks.graphrag/pause"), { name: "chunks.graphrag", isPaused: true });
    assert.deepEqual(await post("/lanes/chunks.graphrag/pause"), { name: "chunks.graphrag", isPaused: true });
    assert.deepEqual(await paused(), ["chunks.graphrag"]);
    assert.deepEqual((await read<{ paused: string[] }>("/status")).paused, ["chunks.graphrag"]);
    assert.deepEqual(await post("/lanes/chunks.graphrag/resume"), {
      name: "chunks.graphrag",
      isPaused: false,
    });
    assert.deepEqual(await paused(), []);
  });

  it("HEAD says what GET says, without the body", async () => {
    for (const path of ["/health", "/lanes", "/docs", "/nothing"]) {
      const [head, whole] = [await serving.ask(path, { method: "HEAD" }), await serving.ask(path)];
      assert.equal(head.status, whole.status);
      assert.equal(head.headers.get("content-type"), whole.headers.get("content-type"));
      assert.equal(await head.text(), "");
    }
  });

  it("what was worked on is found, by words and by metadata", async () => {
    await add("glaciers.txt", "Glaciers carve valleys as they slide over rock.", { shelf: 4, isNew: true });
    await add("bread.txt", "Sourdough bread rises slowly overnight.", { shelf: 5 });
    const crew = await serving.quarry.work({ graceMs: 1_000 });
    const search = (query: string) => read<SearchAnswer>(`/search?${query}`);
    await eventually(
      async () => (await search("q=glaciers+valleys&mode=keyword")).results.length > 0,
      () => "the document was not found",
    );
    const [first] = (await search("q=What%20do%20glaciers%20carve%3F&limit=1")).results;
    assert.equal(first?.filename, "glaciers.txt");
    assert.deepEqual(first?.metadata, { shelf: 4, isNew: true });
    const found = async (query: string) => (await search(`q=glaciers&mode=keyword&${query}`)).results.length;
    assert.equal(await found("metadata=shelf%3D4&metadata=isNew%3Dtrue"), 1);
    assert.equal(await found("metadata=shelf%3D5"), 0);
    assert.equal(await found(`document=${first!.documentId}`), 1);
    assert.equal(await found("tenant=nobody"), 0);
    assert.equal(await found("collection=nothing"), 0);
    const { workers, progress } = await read<{ workers: object[]; progress: { documents: number } }>(
      "/status",
    );
    assert.equal(workers.length, 1);
    assert.equal(progress.documents, 9);
    await crew.stop();
  });
});
