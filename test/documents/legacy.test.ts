import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import fc from "fast-check";
import { openFolderFiles } from "../../src/adapters/files/folder.ts";
import { DocumentFiles } from "../../src/documents/files.ts";
import { migrateLegacy } from "../../src/documents/legacy.ts";
import { readIndexingDetails, readOcrDetails } from "../../src/documents/legacy-details.ts";
import { documentQueues } from "../../src/documents/queues.ts";
import { type Database, migrate, openDatabase, prepareQueue, readMigrations } from "../../src/index.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import { freshPostgres } from "../support/postgres.ts";

const IDS = ["a", "b", "c", "d"].map((digit) => `00000000-0000-4000-8000-00000000000${digit}`);
const queues = documentQueues({ staleMs: 120_000 });

/** The table of the system before, as far as the design tells. */
async function oldSystem(database: Database, markdownPath: string): Promise<void> {
  const json = database.dialect.name === "postgres" ? "jsonb" : "text";
  const id = database.dialect.name === "postgres" ? "uuid" : "text";
  await database.query(
    `create table documents (id ${id} primary key, filename varchar(255) not null, convert_status varchar(20), index_status varchar(20), ocr_details ${json}, indexing_details ${json})`,
  );
  const ocr = {
    pages: [
      { page_number: 1, status: "completed", page_file_path: markdownPath },
      { page_number: 2, status: "completed" },
    ],
  };
  const bad = { page_1: { status: "success" }, page_2: { status: "failed", error: "no text" } };
  const chunks = {
    chunks: [
      { chunk_id: "c-1", page_number: 1, chunk_index: 0, content: "first", entities_extracted: 2 },
      { chunk_id: "c-2", page_number: 1, chunk_index: 1, content: "second", relationships: ["x"] },
    ],
  };
  const rows = [
    [IDS[0], "indexed.pdf", "converted", "indexed", ocr, chunks],
    [IDS[1], "converted.pdf", "converted", "pending", ocr, null],
    [IDS[2], "new.pdf", "pending", "pending", null, null],
    [IDS[3], "torn.pdf", "converted", "pending", bad, null],
  ];
  for (const row of rows) {
    const values = row.map((value) =>
      typeof value === "object" && value !== null ? JSON.stringify(value) : value,
    );
    const marks = values.map((_, index) =>
      database.dialect.name === "postgres" ? `$${index + 1}` : `?${index + 1}`,
    );
    await database.query(`insert into documents values (${marks.join(", ")})`, values);
  }
}

async function statuses(database: Database) {
  const rows = await database.query(
    "select filename, ocr_status, vector_index_status as v, graphrag_index_status as g from documents order by filename",
  );
  return rows.map((row) => [row.filename, row.ocr_status, row.v, row.g].join(" "));
}

const EXPECTED = [
  "converted.pdf completed pending pending",
  "indexed.pdf completed completed completed",
  "new.pdf failed pending pending",
  "torn.pdf failed pending pending",
];

describe("documents of the system before", () => {
  let folder: string;
  let markdown: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "quarry-legacy-"));
    markdown = join(folder, "page_1_nohf.md");
    await writeFile(markdown, "# Old page\n\nStill here.\n");
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const partsOf = (database: Database) => ({
    database,
    files: new DocumentFiles(openFolderFiles(join(folder, "data"))),
    attemptsMax: 3,
    fileBytesMax: 1_000_000,
  });

  for (const { name, open } of DATABASES) {
    test(`are brought over from another database to ${name}, once`, async () => {
      const old = openDatabase(join(folder, `${name}.db`));
      const opened: TestDatabase = await open();
      try {
        await oldSystem(old, markdown);
        const first = await migrateLegacy(partsOf(opened.database), old);
        assert.deepEqual(first, { documents: 4, pages: 6, chunks: 2, alreadyThere: 0 });
        assert.deepEqual(await statuses(opened.database), EXPECTED);
        const [page] = await opened.database.query(
          `select p.page_file_path from task_queue_page as p join documents as d on d.id = p.document_id where d.filename = 'converted.pdf' and p.page_number = 1`,
        );
        assert.match(
          String(page!.page_file_path),
          /^documents\/.*page_0001_nohf\.md$/,
          "its text is ours now",
        );
        const chunks = await opened.database.query(
          "select chunk_id, content, entities_extracted as e, relationships_extracted as r from task_queue_chunk order by chunk_index",
        );
        assert.deepEqual(
          chunks.map((chunk) => [chunk.chunk_id, chunk.content, chunk.e, chunk.r]),
          [
            ["c-1", "first", 2, 0],
            ["c-2", "second", 0, 1],
          ],
        );
        const again = await migrateLegacy(partsOf(opened.database), old);
        assert.deepEqual(again, { documents: 0, pages: 0, chunks: 0, alreadyThere: 4 });
        assert.deepEqual(await statuses(opened.database), EXPECTED);
      } finally {
        await opened.close();
        await old.close();
      }
    });
  }

  test("are brought over in their own table, whose old columns stay", async () => {
    const { url, drop } = await freshPostgres();
    const database = openDatabase(url);
    try {
      await oldSystem(database, markdown);
      await migrate(database, readMigrations(join(import.meta.dirname, "../../migrations/postgres")));
      for (const queue of Object.values(queues)) await prepareQueue(database, queue);
      assert.deepEqual(await migrateLegacy(partsOf(database)), {
        documents: 4,
        pages: 6,
        chunks: 2,
        alreadyThere: 0,
      });
      assert.deepEqual(await statuses(database), EXPECTED);
      const [row] = await database.query(
        "select convert_status from documents where filename = 'indexed.pdf'",
      );
      assert.equal(row!.convert_status, "converted");
      assert.equal((await migrateLegacy(partsOf(database))).pages, 0);
    } finally {
      await database.close();
      await drop();
    }
  });

  test("a database without anything old says so", async () => {
    const opened = await DATABASES[0]!.open();
    try {
      await opened.database.query("insert into documents (filename) values ('x')");
      await assert.rejects(migrateLegacy(partsOf(opened.database)), {
        code: "invalid_input",
        message: /--from/,
      });
    } finally {
      await opened.close();
    }
  });

  test("a database of something else says so", async () => {
    const opened = await DATABASES[0]!.open();
    const other = openDatabase(join(folder, "other.db"));
    await assert.rejects(migrateLegacy(partsOf(opened.database), other), {
      code: "invalid_input",
      message: /no documents table/,
    });
    await other.close();
    await opened.close();
  });

  test("details in any spelling are read, and any JSON at all is survived", () => {
    const pages = (details: unknown) =>
      readOcrDetails(details).map(({ pageNumber, isFailed }) => [pageNumber, isFailed]);
    assert.deepEqual(pages([{ page: 1 }, { page_no: "2", status: "error" }]), [
      [1, false],
      [2, true],
    ]);
    assert.deepEqual(pages('{"page_3": {"state": "failed"}, "page_4": {}}'), [
      [3, true],
      [4, false],
    ]);
    const chunks = readIndexingDetails({
      pages: [{ page_number: 2, chunks: [{ text: "a" }, { text: "b" }] }],
    });
    assert.deepEqual(
      chunks.map((chunk) => [chunk.pageNumber, chunk.chunkIndex, chunk.content]),
      [
        [2, 0, "a"],
        [2, 1, "b"],
      ],
    );
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        readOcrDetails(value);
        const found = readIndexingDetails(value);
        assert.equal(
          new Set(found.map((chunk) => `${chunk.pageNumber} ${chunk.chunkIndex}`)).size,
          found.length,
        );
      }),
    );
  });
});
