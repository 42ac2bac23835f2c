import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openDatabase, openQuarry, type Row } from "../../src/index.ts";
import { startModelServer } from "../support/model-server.ts";
import { startQdrant } from "../support/qdrant.ts";

const TENANT = "default";

test("a store that is away stops the lanes that need it and no others; nothing is lost, no attempt spent", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "quarry-away-"));
  const [model, server] = await Promise.all([startModelServer(), startQdrant()]);
  const databaseUrl = join(folder, "quarry.db");
  const quarry = await openQuarry({
    ...{ dataFolder: join(folder, "data"), databaseUrl, logLevel: "silent", pollMs: 100, checkEveryMs: 200 },
    ...{ embedder: "ollama:nomic-embed-text", ollamaHost: model.url },
    ...{ vectors: "qdrant", qdrantUrl: server.url, qdrantApiKey: server.apiKey! },
  });
  const rows = openDatabase(databaseUrl);
  t.after(async () => {
    await quarry.close();
    await rows.close();
    await Promise.all([model.close(), server.stop()]);
    await rm(folder, { recursive: true, force: true });
  });
  const ingest = async (name: string, text: string) => {
    await writeFile(join(folder, name), text);
    return (await quarry.ingest([join(folder, name)])).items.map((item) => item.queue_id);
  };
  const search = (query: string) => quarry.search.search({ query, tenant: TENANT });
  const row = async (sql: string): Promise<Row> => (await rows.query(sql))[0]!;

  await quarry.work();
  const { documentIds } = await quarry.queue.finished(
    await ingest("old.md", "Granite is cut in the quarry."),
  );
  assert.equal((await search("granite")).results.length, 1);

  await server.quit();
  await quarry.documents.delete(documentIds[0]!);
  const later = await ingest("new.md", "Basalt is sawn in the valley.");
  const waiting =
    "select (select count(*) from task_queue_chunk where vector_status = 'pending' and vector_run_after is not null) as chunks, (select count(*) from document_removals where status = 'pending' and run_after is not null and vectors_status = 'pending' and graph_status = 'completed' and files_status = 'completed' and kind = 'document') as removals, (select count(*) from task_queue_page where ocr_status = 'completed' and is_chunked) as pages";
  await until(async () => {
    const { chunks, removals, pages } = await row(waiting);
    return chunks === 1 && Number(removals) >= 1 && pages === 1;
  });
  assert.equal((await row("select max(vector_retry_count) as spent from task_queue_chunk")).spent, 0);
  const { results, warnings } = await search("basalt");
  assert.deepEqual(results, []);
  assert.match(warnings.join(), /vector search is not available: Qdrant/);

  await server.launch();
  // Due at once, instead of in a quarter of a minute.
  const past = "'2000-01-01T00:00:00.000Z'";
  await rows.query(
    `update task_queue_chunk set vector_run_after = ${past} where vector_run_after is not null`,
  );
  await rows.query(`update document_removals set run_after = ${past} where run_after is not null`);
  await quarry.queue.finished(later);
  await until(async () => (await search("basalt")).warnings.length === 0);
  assert.equal((await search("basalt")).results.length, 1);
  assert.deepEqual(
    (await search("granite")).results.map(({ filename }) => filename),
    ["new.md"],
  );
  await until(
    async () =>
      Number(
        (await row("select count(*) as open from document_removals where vectors_status = 'pending'")).open,
      ) === 0,
  );
});

async function until(isReached: () => Promise<boolean>): Promise<void> {
  while (!(await isReached())) await new Promise((resolve) => setTimeout(resolve, 50));
}
