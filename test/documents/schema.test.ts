import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { DATABASES, type TestDatabase } from "../support/databases.ts";

/** The columns of a phase, as the design names them. */
const phase = (name: string) =>
  ["status", "worker_id", "started_at", "completed_at", "error", "retry_count", "last_heartbeat"].map(
    (column) => `${name}_${column}`,
  );

const COLUMNS: Record<string, string[]> = {
  documents: [
    ...["id", "filename", "ocr_status", "vector_index_status", "graphrag_index_status"],
    ...["ocr", "vector", "graphrag"].flatMap((name) => [
      `${name}_started_at`,
      `${name}_completed_at`,
      `${name}_error`,
    ]),
    ...["current_worker_id", "last_heartbeat"],
  ],
  task_queue_page: [
    ...["id", "document_id", "page_number", "page_file_path"],
    ...[...phase("ocr"), ...phase("vector"), ...phase("graphrag")],
    ...["chunk_count", "max_retries", "created_at", "updated_at"],
  ],
  task_queue_chunk: [
    ...["id", "page_id", "document_id", "chunk_id", "chunk_index", "chunk_content_hash"],
    ...[...phase("vector"), ...phase("graphrag")],
    ...["entities_extracted", "relationships_extracted", "max_retries", "created_at", "updated_at"],
  ],
};

const INDEXES = [
  ...["ocr", "vector", "graphrag"].flatMap((name) => [`idx_tqp_${name}_status`, `idx_tqp_${name}_heartbeat`]),
  ...["vector", "graphrag"].flatMap((name) => [`idx_tqc_${name}_status`, `idx_tqc_${name}_heartbeat`]),
  ...["idx_tqp_document", "idx_tqc_page", "idx_tqc_document"],
];

for (const { name, open } of DATABASES) {
  describe(`the tables on ${name}`, () => {
    let opened: TestDatabase;
    before(async () => {
      opened = await open();
    });
    after(() => opened.close());

    test("have every column and index of the design", async () => {
      const isPostgres = opened.database.dialect.name === "postgres";
      for (const [table, wanted] of Object.entries(COLUMNS)) {
        const sql = isPostgres
          ? `select column_name as name from information_schema.columns where table_name = '${table}'`
          : `select name from pragma_table_info('${table}')`;
        const have = new Set((await opened.database.query(sql)).map((row) => row.name));
        assert.deepEqual(
          wanted.filter((column) => !have.has(column)),
          [],
          table,
        );
      }
      const sql = isPostgres
        ? "select indexname as name from pg_indexes"
        : "select name from sqlite_schema where type = 'index'";
      const have = new Set((await opened.database.query(sql)).map((row) => row.name));
      assert.deepEqual(
        INDEXES.filter((index) => !have.has(index)),
        [],
      );
    });

    test("take a row with nothing but what the design requires", async () => {
      const [document] = await opened.database.query(
        "insert into documents (filename) values ('a.pdf') returning id, ocr_status, vector_index_status, graphrag_index_status",
      );
      assert.deepEqual(
        [document!.ocr_status, document!.vector_index_status, document!.graphrag_index_status],
        ["pending", "pending", "pending"],
      );
      const insert = `insert into task_queue_page (document_id, page_number) values ('${document!.id}', 1)`;
      const [page] = await opened.database.query(`${insert} returning *`);
      assert.deepEqual(
        [page!.ocr_status, page!.ocr_retry_count, page!.max_retries, page!.chunk_count],
        ["pending", 0, 3, 0],
      );
      await assert.rejects(opened.database.query(insert), { code: "constraint_violated" }, "a page twice");
      await opened.database.query(
        `insert into task_queue_chunk (page_id, document_id, chunk_id, chunk_index) values ('${page!.id}', '${document!.id}', 'c', 0)`,
      );
      await assert.rejects(opened.database.query("update task_queue_page set ocr_status = 'done'"));
      await opened.database.query("delete from documents");
      assert.deepEqual(
        await opened.database.query("select 1 from task_queue_chunk"),
        [],
        "all go with the document",
      );
    });
  });
}
