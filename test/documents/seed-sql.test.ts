import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { readProgress } from "../../src/documents/progress.ts";
import { documentQueues } from "../../src/documents/queues.ts";
import { done, failed, openQueue, prepareQueue } from "../../src/index.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import { findPsql } from "../support/psql.ts";
import { growTree } from "./tree.ts";

/**
 * The statements of the design, as they are written there: whoever reads the design can use them in psql on our
 * tables, and they agree with what we say ourselves.
 */
const SEED = {
  pickUpOcr: `SELECT id, document_id, page_number
FROM task_queue_page
WHERE ocr_status IN ('pending', 'failed')
  AND ocr_retry_count < max_retries
ORDER BY
  CASE WHEN ocr_status = 'failed' THEN 0 ELSE 1 END,  -- Failed first
  ocr_retry_count ASC,
  created_at ASC
LIMIT 1
FOR UPDATE SKIP LOCKED;`,
  pickUpVector: `SELECT c.id, c.page_id, c.document_id, c.chunk_id, c.chunk_index
FROM task_queue_chunk c
JOIN task_queue_page p ON c.page_id = p.id
WHERE c.vector_status IN ('pending', 'failed')
  AND c.vector_retry_count < c.max_retries
  AND p.ocr_status = 'completed'  -- Dependency check!
ORDER BY
  CASE WHEN c.vector_status = 'failed' THEN 0 ELSE 1 END,
  c.vector_retry_count ASC,
  c.created_at ASC
LIMIT 1
FOR UPDATE SKIP LOCKED;`,
  pickUpGraphrag: `SELECT c.id, c.page_id, c.document_id, c.chunk_id, c.chunk_index
FROM task_queue_chunk c
WHERE c.graphrag_status IN ('pending', 'failed')
  AND c.graphrag_retry_count < c.max_retries
  AND c.vector_status = 'completed'  -- Dependency check!
ORDER BY
  CASE WHEN c.graphrag_status = 'failed' THEN 0 ELSE 1 END,
  c.graphrag_retry_count ASC,
  c.created_at ASC
LIMIT 1
FOR UPDATE SKIP LOCKED;`,
  heartbeatPage: `UPDATE task_queue_page
SET ocr_last_heartbeat = NOW()
WHERE id = :page_id AND ocr_worker_id = :worker_id;`,
  heartbeatChunk: `UPDATE task_queue_chunk
SET vector_last_heartbeat = NOW()
WHERE id = :chunk_id AND vector_worker_id = :worker_id;`,
  staleOcr: `UPDATE task_queue_page
SET ocr_status = 'pending',
    ocr_worker_id = NULL,
    ocr_started_at = NULL,
    ocr_last_heartbeat = NULL
WHERE ocr_status = 'processing'
  AND ocr_last_heartbeat < NOW() - INTERVAL '2 minutes';`,
  staleVector: `UPDATE task_queue_chunk
SET vector_status = 'pending',
    vector_worker_id = NULL,
    vector_started_at = NULL,
    vector_last_heartbeat = NULL
WHERE vector_status = 'processing'
  AND vector_last_heartbeat < NOW() - INTERVAL '2 minutes';`,
  staleGraphrag: `UPDATE task_queue_chunk
SET graphrag_status = 'pending',
    graphrag_worker_id = NULL,
    graphrag_started_at = NULL,
    graphrag_last_heartbeat = NULL
WHERE graphrag_status = 'processing'
  AND graphrag_last_heartbeat < NOW() - INTERVAL '2 minutes';`,
  progress: `SELECT
    d.id,
    d.filename,
    d.ocr_status,
    d.vector_index_status,
    d.graphrag_index_status,
    -- OCR progress
    COUNT(p.id) as total_pages,
    COUNT(p.id) FILTER (WHERE p.ocr_status = 'completed') as ocr_completed_pages,
    COUNT(p.id) FILTER (WHERE p.ocr_status = 'failed') as ocr_failed_pages,
    -- Vector progress
    SUM(p.chunk_count) as total_chunks,
    (SELECT COUNT(*) FROM task_queue_chunk c WHERE c.document_id = d.id AND c.vector_status = 'completed') as vector_completed_chunks,
    -- GraphRAG progress
    (SELECT COUNT(*) FROM task_queue_chunk c WHERE c.document_id = d.id AND c.graphrag_status = 'completed') as graphrag_completed_chunks
FROM documents d
LEFT JOIN task_queue_page p ON d.id = p.document_id
WHERE d.id = :doc_id
GROUP BY d.id;`,
  statistics: `SELECT
    'ocr_pages' as task_type,
    ocr_status as status,
    COUNT(*) as count
FROM task_queue_page
GROUP BY ocr_status

UNION ALL

SELECT
    'vector_chunks' as task_type,
    vector_status as status,
    COUNT(*) as count
FROM task_queue_chunk
GROUP BY vector_status

UNION ALL

SELECT
    'graphrag_chunks' as task_type,
    graphrag_status as status,
    COUNT(*) as count
FROM task_queue_chunk
GROUP BY graphrag_status;`,
  readyForVector: `SELECT id, filename
FROM documents
WHERE ocr_status = 'completed'
  AND vector_index_status = 'pending';`,
  readyForGraphrag: `SELECT id, filename
FROM documents
WHERE vector_index_status = 'completed'
  AND graphrag_index_status = 'pending';`,
} as const;

const queues = documentQueues({ staleMs: 120_000 });

describe("the design's own SQL in psql", () => {
  let opened: TestDatabase;
  let psql: string;

  before(async () => {
    psql = findPsql();
    opened = await DATABASES.find(({ name }) => name === "PostgreSQL")!.open();
    for (const queue of Object.values(queues)) await prepareQueue(opened.database, queue);
  });
  after(() => opened.close());

  const run = async (sql: string, variables: Record<string, string> = {}): Promise<string[][]> => {
    const given = Object.entries(variables).flatMap(([name, value]) => ["-v", `${name}='${value}'`]);
    const child = promisify(execFile)(psql, [
      opened.url,
      "-XAtq",
      "-F",
      "|",
      "-v",
      "ON_ERROR_STOP=1",
      ...given,
    ]);
    child.child.stdin!.end(sql);
    const { stdout } = await child;
    return stdout
      .split("\n")
      .filter(Boolean)
      .map((line) => line.split("|"));
  };
  const store = <K extends keyof typeof queues>(name: K) => openQueue<object>(opened.database, queues[name]);
  const empty = () => opened.database.query("delete from documents");

  test("picks up the row that we would pick up: failed first, then fewest tries, then oldest", async () => {
    await empty();
    await growTree(opened.database, queues, { pages: [2, 2, 2] });
    const asks = [
      ["pageOcr", SEED.pickUpOcr],
      ["chunkVector", SEED.pickUpVector],
      ["chunkGraphrag", SEED.pickUpGraphrag],
    ] as const;
    const write = (sql: string) => opened.database.query(sql);
    const unread =
      "vector_status = 'pending', graphrag_status = 'pending', is_chunked = false, chunk_count = 0";
    await write(
      "delete from task_queue_chunk where page_id in (select id from task_queue_page where page_number > 1)",
    );
    await write(`update task_queue_page set ocr_status = 'pending', ${unread} where page_number = 2`);
    await write(
      `update task_queue_page set ocr_status = 'failed', ocr_retry_count = 1, ${unread} where page_number = 3`,
    );
    await write("update task_queue_chunk set vector_status = 'pending', graphrag_status = 'pending'");
    await write("update task_queue_chunk set vector_status = 'completed' where chunk_index = 1");
    for (const [name, sql] of asks) {
      const [[id] = []] = await run(sql);
      const [claim] = await store(name).claim({ worker: "w", limit: 1 });
      assert.equal(id, claim?.key, name);
    }
  });

  test("renews a lease that we gave, and releases it when it is stale", async () => {
    await empty();
    const read = await growTree(opened.database, queues, { pages: [1] });
    const unread = await growTree(opened.database, queues, { pages: [0] });
    await opened.database.query(
      `update task_queue_chunk set graphrag_status = 'pending', vector_status = 'pending' where document_id = '${read.documentId}'`,
    );
    await opened.database.query(
      `update task_queue_page set ocr_status = 'pending', vector_status = 'pending', graphrag_status = 'pending', is_chunked = false where document_id = '${unread.documentId}'`,
    );
    const [page] = await store("pageOcr").claim({ worker: "w1", limit: 1 });
    const [chunk] = await store("chunkVector").claim({ worker: "w1", limit: 1 });
    const makeOld = () =>
      opened.database.query("update task_queue_page set ocr_last_heartbeat = now() - interval '3 minutes'");
    await makeOld();
    await opened.database.query(
      "update task_queue_chunk set vector_last_heartbeat = now() - interval '3 minutes'",
    );
    await run(SEED.heartbeatPage, { page_id: String(page!.key), worker_id: "w1" });
    await run(SEED.heartbeatChunk, { chunk_id: String(chunk!.key), worker_id: "w1" });
    assert.deepEqual(await store("pageOcr").rescueStale(), [], "a heartbeat in psql keeps our lease");
    assert.deepEqual(await store("chunkVector").rescueStale(), []);
    await makeOld();
    await opened.database.query(
      "update task_queue_chunk set vector_last_heartbeat = now() - interval '3 minutes'",
    );
    await run(SEED.staleOcr);
    await run(SEED.staleVector);
    await run(SEED.staleGraphrag);
    assert.deepEqual(await store("pageOcr").settle([{ claim: page!, outcome: done() }]), ["lost"]);
    assert.deepEqual(await store("chunkVector").settle([{ claim: chunk!, outcome: done() }]), ["lost"]);
    const again = await store("pageOcr").claim({ worker: "w2", limit: 1 });
    assert.equal(again[0]?.key, page!.key, "what psql released can be claimed");
  });

  test("agrees with our figures for a document and for everything", async () => {
    await empty();
    const { documentId } = await growTree(opened.database, queues, { pages: [2, 3, 1] });
    await growTree(opened.database, queues, { pages: [1] });
    const graph = store("chunkGraphrag");
    await opened.database.query("update task_queue_chunk set graphrag_status = 'pending'");
    const claims = await graph.claim({ worker: "w", limit: 4 });
    await graph.settle([
      { claim: claims[0]!, outcome: failed("no") },
      { claim: claims[1]!, outcome: done() },
    ]);
    const ours = await readProgress(opened.database, [documentId]);
    const [theirs] = await run(SEED.progress, { doc_id: documentId });
    assert.deepEqual(
      [
        ours.ocr.total,
        ours.ocr.completed,
        ours.ocr.failed,
        ours.vector.total,
        ours.vector.completed,
        ours.graphrag.completed,
      ],
      theirs!.slice(5).map(Number),
    );
    const all = await readProgress(opened.database);
    const counted = new Map(
      (await run(SEED.statistics)).map(([type, status, count]) => [`${type} ${status}`, Number(count)]),
    );
    assert.equal(counted.get("ocr_pages completed"), all.ocr.completed);
    assert.equal(counted.get("vector_chunks completed"), all.vector.completed);
    assert.equal(counted.get("graphrag_chunks completed") ?? 0, all.graphrag.completed);
    assert.equal(counted.get("graphrag_chunks failed"), all.graphrag.failed);
    assert.equal(counted.get("graphrag_chunks processing"), all.graphrag.processing);
  });

  test("finds documents that are ready for the next phase", async () => {
    await empty();
    const { documentId } = await growTree(opened.database, queues, { pages: [1] });
    const set = (vector: string, graphrag: string) =>
      opened.database.query(
        `update documents set vector_index_status = '${vector}', graphrag_index_status = '${graphrag}'`,
      );
    await set("pending", "pending");
    assert.deepEqual(
      (await run(SEED.readyForVector)).map(([id]) => id),
      [documentId],
    );
    assert.deepEqual(await run(SEED.readyForGraphrag), []);
    await set("completed", "pending");
    assert.deepEqual(await run(SEED.readyForVector), []);
    assert.deepEqual(
      (await run(SEED.readyForGraphrag)).map(([id]) => id),
      [documentId],
    );
  });
});
