import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { openNeo4jGraph } from "../../src/adapters/graph/neo4j.ts";
import { openDatabase, openQuarry } from "../../src/index.ts";
import { drawPictures } from "../adapters/ocr/conformance.ts";
import { BOLT_PASSWORD, BOLT_USER, startBoltServer } from "../support/bolt-server.ts";
import type { ChatRequest } from "../support/model-chat.ts";
import { startModelServer } from "../support/model-server.ts";
import { entitiesAnswer } from "../support/reading-model.ts";

const filter = { tenant: "default" };

describe("a graph in Neo4j and models behind services (their stand-ins), by settings alone", () => {
  test("documents are read, found and deleted; while Neo4j is away its lane waits and the others go on", {
    timeout: 120_000,
  }, async (t) => {
    const chat = (asked: ChatRequest) =>
      asked.pictures!.length > 0 ? "Wangari Maathai lived in Nairobi." : entitiesAnswer(asked);
    const models = await startModelServer({ chat });
    const neo4j = await startBoltServer();
    const folder = await mkdtemp(join(tmpdir(), "quarry-outside-"));
    const databaseUrl = join(folder, "quarry.db");
    const quarry = await openQuarry({
      dataFolder: join(folder, "data"),
      databaseUrl,
      pollMs: 100,
      embedder: "openai:text-embedding-3-small",
      openaiBaseUrl: models.openAiUrl,
      llm: "openai:gpt-test",
      entities: "llm",
      ocr: "openai:gpt-test",
      neo4jUrl: neo4j.url,
      neo4jPassword: BOLT_PASSWORD,
      modelRequestsPerMinute: 10_000,
      logLevel: "silent",
    });
    const graph = openNeo4jGraph({ url: neo4j.url, user: BOLT_USER, password: BOLT_PASSWORD });
    const database = openDatabase(databaseUrl);
    t.after(async () => {
      await quarry.close();
      await graph.close();
      await database.close();
      await neo4j.close();
      await models.close();
      await rm(folder, { recursive: true, force: true });
    });
    const text = join(folder, "text.txt");
    await writeFile(text, "Wangari Maathai founded the Green Belt Movement.");
    const scan = join(folder, "scan.png");
    await writeFile(scan, (await drawPictures()).notice);

    await neo4j.leave();
    const crew = await quarry.work();
    const { items } = await quarry.ingest([text, scan]);
    const { documentIds: ids } = await quarry.queue.finished(items.map((item) => item.queue_id));
    const waiting = async () => {
      const sql =
        "select count(*) as waiting from task_queue_chunk where graphrag_status = 'pending' and graphrag_run_after is not null";
      return Number((await database.query(sql))[0]!.waiting);
    };
    while ((await waiting()) < 2) await new Promise((resolve) => setTimeout(resolve, 50));
    const { results, warnings } = await quarry.search.search({ query: "Wangari Maathai", tenant: "default" });
    assert.equal(results.length, 2);
    assert.match(warnings.join(), /graph search is not available: Neo4j at/);
    const rows = await database.query("select graphrag_retry_count as tries from task_queue_chunk");
    assert.deepEqual(
      rows.map(({ tries }) => tries),
      [0, 0],
      "an outage costs no attempt",
    );

    await neo4j.listen();
    // A test does not wait as long as a worker does.
    await database.query("update task_queue_chunk set graphrag_run_after = null");
    while ((await quarry.documents.progress(ids)).open > 0)
      await new Promise((resolve) => setTimeout(resolve, 50));
    const [maathai] = await graph.find(["Wangari Maathai"], filter);
    assert.equal(maathai!.mentions, 2);
    const [relation] = await graph.relationsOf(maathai!.id, filter);
    assert.deepEqual([relation!.type, relation!.target.name], ["founded", "Green Belt Movement"]);
    const found = await quarry.search.search({ query: "Wangari Maathai", tenant: "default", mode: "graph" });
    assert.equal(found.results.length, 2);
    for (const id of ids) {
      const { state, tokens } = await quarry.documents.show(id);
      assert.equal(state, "completed");
      assert.ok(tokens.vector > 0 && tokens.graphrag > 0);
    }

    // A delete that Neo4j does not hear of stays pending until it does.
    await neo4j.leave();
    for (const id of ids) await quarry.documents.delete(id);
    const pending = async () => {
      const sql =
        "select count(*) as pending from document_removals where graph_status = 'pending' and vectors_status = 'completed'";
      return Number((await database.query(sql))[0]!.pending);
    };
    while ((await pending()) < 2) await new Promise((resolve) => setTimeout(resolve, 50));
    await neo4j.listen();
    await database.query("update document_removals set run_after = null where vectors_status = 'completed'");
    while ((await graph.list({ limit: 10, filter })).length > 0)
      await new Promise((resolve) => setTimeout(resolve, 50));
    await crew.stop();
  });
});
