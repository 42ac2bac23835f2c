import assert from "node:assert/strict";
import type { Cut } from "../support/cuttable-line.ts";
import { type Machines, PAGES, until, wordOf } from "./machines.ts";

const TENANT = "default";

/**
 * Documents come in, a machine is cut off in the middle, the other one goes on with its work, and the first one comes
 * back by itself. Once for each way to be cut off. Returns how many documents there are in the end.
 */
export async function runMachines(
  machines: Machines,
  { cuts, documentsPerCut }: { cuts: readonly Cut[]; documentsPerCut: number },
): Promise<number> {
  const { quarry, far, near, query } = machines;
  const stateOf = async (ids: readonly string[]) => {
    const known = await quarry.workers(["active", "stale", "gone"]);
    return known.filter(({ id }) => ids.includes(id)).map(({ state }) => state);
  };
  const heldBy = async (ids: readonly string[]) => {
    const list = ids.map((id) => `'${id}'`).join(", ");
    const [row] = await query(
      `select (select count(*) from task_queue_page where ocr_status = 'processing' and ocr_worker_id in (${list})) + (select count(*) from task_queue_chunk where (vector_status = 'processing' and vector_worker_id in (${list})) or (graphrag_status = 'processing' and graphrag_worker_id in (${list}))) as count`,
    );
    return Number(row!.count);
  };
  let documents = 0;
  /** What was under way may have ended just before: then the cut is made again. */
  const cutInTheMiddle = async (how: Cut) => {
    for (;;) {
      if ((await machines.completed()) === documents) {
        await machines.ingest(documentsPerCut);
        documents += documentsPerCut;
      }
      await until(async () => (await heldBy(far.ids)) > 0 || (await machines.completed()) === documents);
      machines.cut(how);
      // What had left before the cut may still arrive.
      await new Promise((resolve) => setTimeout(resolve, 300));
      if ((await heldBy(far.ids)) > 0) return;
      machines.mend();
    }
  };
  for (const how of cuts) {
    await cutInTheMiddle(how);
    const atCut = await machines.completed();
    await until(async () => (await stateOf(far.ids)).every((state) => state === "stale"));
    // The others have taken over what it held, and got on.
    await until(async () => (await heldBy(far.ids)) === 0 && (await machines.completed()) > atCut);
    assert.deepEqual(await stateOf(near.ids), ["active", "active"]);
    machines.mend();
    await until(async () => (await stateOf(far.ids)).every((state) => state === "active"));
    await until(async () => (await machines.completed()) === documents);
    assert.ok(far.isRunning && near.isRunning);
  }
  await until(
    async () => (await query("select 1 as open from unified_queue where status <> 'done'")).length === 0,
  );
  return documents;
}

/** Nothing is missing, nothing is there twice, and every attempt that was spent says on what. */
export async function checkAll(
  machines: Machines,
  { documents, cuts }: { documents: number; cuts: number },
): Promise<void> {
  const { quarry, query, bucket } = machines;
  const states = await quarry.documents.states();
  assert.equal(states.completed, documents, JSON.stringify(states));
  const items = await query("select status, count(*) as count from unified_queue group by status");
  assert.deepEqual(
    items.map(({ status, count }) => [status, Number(count)]),
    [["done", documents]],
  );

  const pages = await query("select document_id, page_number, ocr_status, is_chunked from task_queue_page");
  assert.equal(new Set(pages.map((row) => `${row.document_id} ${row.page_number}`)).size, documents * PAGES);
  assert.equal(pages.length, documents * PAGES);
  assert.ok(pages.every((row) => row.ocr_status === "completed" && row.is_chunked === true));
  const chunks = await query(
    "select document_id, page_id, chunk_id, chunk_index, content from task_queue_chunk",
  );
  assert.equal(new Set(chunks.map((row) => `${row.document_id} ${row.chunk_id}`)).size, chunks.length);
  assert.equal(chunks.length, documents * PAGES, "a page is one chunk");

  const found = await Promise.all(
    Array.from({ length: documents }, async (_, document) => {
      const query = wordOf(document, document % PAGES);
      const { results, warnings } = await quarry.search.search({ query, tenant: TENANT, mode: "keyword" });
      assert.deepEqual(warnings, []);
      return results.map(({ filename, pageNumber }) => `${filename} ${pageNumber}`);
    }),
  );
  assert.deepEqual(
    found,
    Array.from({ length: documents }, (_, document) => [`${document}.pdf ${(document % PAGES) + 1}`]),
  );
  const { results } = await quarry.search.search({
    query: "quarry",
    tenant: TENANT,
    mode: "vector",
    limit: 1,
  });
  assert.equal(results.length, 1);
  assert.equal(await machines.points(), chunks.length);

  const [spent] = await query(
    "select (select sum(ocr_retry_count) from task_queue_page) + (select sum(vector_retry_count + graphrag_retry_count) from task_queue_chunk) as total, (select max(ocr_retry_count) from task_queue_page) as most",
  );
  assert.ok(Number(spent!.total) > 0, "leases lapsed while the machine was cut off, and that costs attempts");
  assert.ok(Number(spent!.most) <= cuts, "one for each time that it was cut off");

  const ids = (await query("select id from documents")).map((row) => String(row.id));
  const abandoned = await query("select document_id from document_removals where status = 'pending'");
  const isAbandoned = new Set(abandoned.map((row) => String(row.document_id)));
  const keys = (await bucket.list("quarry/documents/")).map((key) => key.split("/").slice(2).join("/"));
  const wanted = ids.flatMap((id) => [
    `${id}/original.pdf`,
    ...Array.from({ length: PAGES }, (_, page) => `${id}/page_${String(page + 1).padStart(4, "0")}_nohf.md`),
  ]);
  assert.deepEqual(keys.filter((key) => !isAbandoned.has(key.split("/")[0]!)).sort(), wanted.sort());
  assert.ok(ids.every((id) => !isAbandoned.has(id)));
  for (const said of [machines.far.said, machines.near.said])
    assert.ok(!said.includes(bucket.secretAccessKey));
}
