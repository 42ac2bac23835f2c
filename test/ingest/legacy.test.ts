import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import fc from "fast-check";
import pg from "pg";
import { type Database, done, openDatabase, openQuarry, openQueue, prepareQueue } from "../../src/index.ts";
import { Items } from "../../src/ingest/items.ts";
import { type LegacyTableReport, migrateQueues } from "../../src/ingest/legacy.ts";
import { openLegacySource } from "../../src/ingest/legacy-source.ts";
import { clamped, objectOf, stateOf, timeOf } from "../../src/ingest/legacy-values.ts";
import { itemQueues } from "../../src/ingest/queue.ts";
import { Running } from "../cli/running.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import { freshPostgres } from "../support/postgres.ts";

/** The old tables as the system before made them; `serial` and `time` differ between the databases. */
function oldSchema(dialect: string): string[] {
  const isPostgres = dialect === "postgres";
  const serial = isPostgres ? "serial primary key" : "integer primary key autoincrement";
  const time = `${isPostgres ? "timestamptz" : "timestamp"} not null default current_timestamp`;
  return [
    `create table messages (id ${serial}, error_type text not null, error_message text not null)`,
    `create table ingestion_queue (file_absolute_path text primary key not null, collection_name text not null, tenant_id text default 'default', branch text default 'main', operation text not null, priority integer not null default 5, queued_timestamp ${time}, retry_count integer not null default 0, retry_from text, error_message_id integer references messages(id), collection_type varchar)`,
    `create table content_ingestion_queue (queue_id text primary key, idempotency_key text not null unique, content text not null, collection text not null, source_type text not null default 'scratchbook', priority integer not null default 8, status text not null default 'pending', main_tag text, full_tag text, metadata text, created_at ${time}, updated_at ${time}, started_at text, completed_at text, retry_count integer not null default 0, max_retries integer not null default 3, error_message text)`,
    `create table processing_queue (queue_id text primary key, file_path text not null, collection text not null, priority integer not null default 2, created_at ${time}, scheduled_at ${time}, attempts integer not null default 0, metadata text)`,
    `create table missing_metadata_queue (queue_id text primary key not null, file_absolute_path text not null, collection_name text not null, tenant_id text not null, branch text not null, operation text not null, priority integer not null default 5, missing_tools text not null, queued_timestamp text not null, retry_count integer not null default 0, last_check_timestamp text, metadata text)`,
    `create table cumulative_deletions_queue (id ${serial}, file_absolute_path text not null, collection_name text not null, tenant_id text not null, branch text not null, marked_for_deletion_at text not null, deletion_scheduled_at text, deleted_at text, status text not null default 'pending', retry_count integer not null default 0, error_message text)`,
  ];
}

const TABLES = [
  "processing_queue",
  "missing_metadata_queue",
  "cumulative_deletions_queue",
  "ingestion_queue",
  "content_ingestion_queue",
];

async function insert(database: Database, table: string, row: Record<string, unknown>): Promise<void> {
  const names = Object.keys(row);
  const marks = names.map((_, index) => database.dialect.mark(index + 1));
  await database.query(
    `insert into ${table} (${names.join(", ")}) values (${marks.join(", ")})`,
    Object.values(row),
  );
}

const at = (minute: number) => `2026-01-02 10:${String(minute).padStart(2, "0")}:00`;
const iso = (minute: number) => `2026-01-02T10:${String(minute).padStart(2, "0")}:00.000Z`;

const file = (path: string, more: Record<string, unknown> = {}) => ({
  file_absolute_path: path,
  collection_name: "docs",
  operation: "ingest",
  queued_timestamp: `${at(0)}+00`,
  ...more,
});
const note = (id: string, content: string, more: Record<string, unknown> = {}) => ({
  queue_id: id,
  idempotency_key: `k-${id}`,
  content,
  collection: "notes",
  created_at: `${at(0)}+00`,
  ...more,
});
const deletion = (path: string, more: Record<string, unknown> = {}) => ({
  file_absolute_path: path,
  collection_name: "docs",
  tenant_id: "default",
  branch: "main",
  marked_for_deletion_at: iso(0),
  ...more,
});

const COUNTS = ["rows", "brought", "merged", "finished", "unmapped", "alreadyThere"] as const;

/** "3 rows: 2 brought, 1 merged", with the counts that are not zero. */
function summary(report: readonly LegacyTableReport[], table: string): string {
  const found = report.find((one) => one.table === table)!;
  const [rows, ...outcomes] = COUNTS.map((name) => found[name]);
  assert.equal(
    outcomes.reduce((sum, count) => sum + count, 0),
    rows,
    "every row is accounted for",
  );
  const said = COUNTS.slice(1).flatMap((name) => (found[name] > 0 ? [`${found[name]} ${name}`] : []));
  return `${rows}: ${said.join(", ")}`;
}

const PAIRS = DATABASES.flatMap((own) => [
  { ...own, name: `${own.name}, in place`, elsewhere: undefined },
  { ...own, name: `${own.name}, from SQLite`, elsewhere: DATABASES[0]! },
  ...(own.name === "PostgreSQL"
    ? [{ ...own, name: "PostgreSQL, from PostgreSQL", elsewhere: DATABASES[1]! }]
    : []),
]);

for (const { name, open, elsewhere } of PAIRS) {
  describe(`the old queues, to ${name}`, () => {
    const queues = itemQueues();
    let test: TestDatabase;
    let other: TestDatabase | undefined;
    let own: Database;
    let old: Database;
    let items: Items;
    before(async () => {
      test = await open();
      own = test.database;
      for (const queue of Object.values(queues)) await prepareQueue(own, queue);
      items = new Items(own, queues);
      other = await elsewhere?.open();
      old = other?.database ?? own;
      // What stands in the other database is only what the old system had.
      if (other) await old.query("drop table legacy_tables");
    });
    after(async () => {
      await test.close();
      await other?.close();
    });
    beforeEach(async () => {
      for (const table of ["unified_queue", "legacy_rows", "legacy_tables"])
        await own.query(`delete from ${table}`);
      for (const table of [...TABLES, "messages"]) await old.query(`drop table if exists ${table}`);
      if (other) await old.query("drop table if exists legacy_tables");
      for (const sql of oldSchema(old.dialect.name)) await old.query(sql);
    });

    const run = async (isDropping = false) => {
      const source = await openLegacySource(old, other ? "elsewhere" : "");
      return migrateQueues({ database: own, queues, source }, { isDropping });
    };
    const all = async () => {
      const { items: found } = await items.list({ limit: 1_000 });
      return found.toSorted((one, two) => (one.idempotency_key < two.idempotency_key ? -1 : 1));
    };
    const only = async () => {
      const [item, ...more] = await all();
      assert.equal(more.length, 0);
      return item!;
    };
    const dump = async () => {
      const contents: unknown[] = [];
      for (const [table, order] of [
        ["unified_queue", "queue_id"],
        ["legacy_rows", "id"],
        ["legacy_tables", "name"],
      ]) {
        const rows = await own.query(`select * from ${table} order by ${order}`);
        contents.push(
          rows.map(({ recorded_at: at, ...row }) => (row.outcome === "unmapped" ? row : { ...row, at })),
        );
      }
      return contents;
    };

    it("become items with what the old rows told", async () => {
      await insert(old, "messages", { error_type: "PARSE_ERROR", error_message: "could not be parsed" });
      await insert(old, "ingestion_queue", {
        ...file("/a/b.txt", {
          tenant_id: "t1",
          branch: "dev",
          operation: "update",
          priority: 7,
          retry_count: 2,
        }),
        error_message_id: 1,
        collection_type: "project",
        collection_name: "_projects",
      });
      await insert(old, "ingestion_queue", file("/a", { operation: "scan_folder", priority: 3 }));
      await insert(
        old,
        "content_ingestion_queue",
        note("c1", "a note", {
          source_type: "clipboard",
          main_tag: "home",
          full_tag: "home/desk",
          metadata: '{"colour":"red"}',
          status: "in_progress",
        }),
      );
      await insert(old, "processing_queue", {
        ...{ queue_id: "p1", file_path: "/p.txt", collection: "docs", priority: 4, attempts: 9 },
        created_at: `${at(1)}+00`,
      });
      await insert(old, "missing_metadata_queue", {
        ...{
          queue_id: "m1",
          file_absolute_path: "/m.rs",
          collection_name: "docs",
          tenant_id: "t2",
          branch: "main",
        },
        ...{ operation: "ingest", missing_tools: '["lsp-rust"]', queued_timestamp: iso(2) },
      });
      await insert(old, "cumulative_deletions_queue", deletion("/d.txt"));
      const report = await run();
      assert.deepEqual(
        TABLES.map((table) => summary(report, table)),
        ["1: 1 brought", "1: 1 brought", "1: 1 brought", "2: 2 brought", "1: 1 brought"],
      );
      const found = new Map((await all()).map((item) => [JSON.stringify(item.payload), item]));
      const told = (payload: object) => {
        const item = found.get(JSON.stringify(payload))!;
        const {
          item_type: type,
          op,
          tenant_id: tenant,
          collection,
          priority,
          status,
          created_at: created,
        } = item;
        return { said: [type, op, tenant, collection, priority, status, created].join(" "), item };
      };
      const updated = told({ file_path: "/a/b.txt" });
      assert.equal(updated.said, `file update t1 _projects 7 pending ${iso(0)}`);
      assert.equal(updated.item.branch, "dev");
      assert.equal(updated.item.retry_count, 2);
      assert.equal(updated.item.error_message, "could not be parsed");
      assert.deepEqual(updated.item.metadata, { collection_type: "project" });
      assert.equal(
        told({ folder_path: "/a", recursive: true }).said,
        `folder scan default docs 3 pending ${iso(0)}`,
      );
      const content = told({
        ...{ content: "a note", source_type: "clipboard", main_tag: "home", full_tag: "home/desk" },
      });
      assert.equal(content.said, `content ingest default notes 8 pending ${iso(0)}`);
      assert.deepEqual(content.item.metadata, { colour: "red" });
      const processed = told({ file_path: "/p.txt" });
      assert.equal(processed.said, `file ingest default docs 9 pending ${iso(1)}`);
      assert.equal(processed.item.retry_count, 2, "one attempt is left");
      const missing = told({ file_path: "/m.rs" });
      assert.equal(missing.said, `file ingest t2 docs 5 pending ${iso(2)}`);
      assert.deepEqual(missing.item.metadata, { missing_tools: ["lsp-rust"] });
      assert.equal(told({ file_path: "/d.txt" }).said, `file delete default docs 5 pending ${iso(0)}`);
    });

    it("keep failures with their message, and leave behind what was finished", async () => {
      await insert(
        old,
        "content_ingestion_queue",
        note("c1", "bad", {
          status: "failed",
          error_message: "no room",
          retry_count: 8,
          updated_at: `${at(9)}+00`,
        }),
      );
      await insert(old, "content_ingestion_queue", note("c2", "good", { status: "done" }));
      await insert(
        old,
        "cumulative_deletions_queue",
        deletion("/gone", { status: "deleted", deleted_at: iso(5) }),
      );
      await insert(old, "cumulative_deletions_queue", deletion("/stuck", { status: "failed" }));
      const report = await run();
      assert.equal(summary(report, "content_ingestion_queue"), "2: 1 brought, 1 finished");
      assert.equal(summary(report, "cumulative_deletions_queue"), "2: 1 brought, 1 finished");
      const [bad, stuck] = await all();
      assert.deepEqual(
        [bad!.status, bad!.error_message, bad!.retry_count, bad!.last_error_at],
        ["failed", "no room", 3, iso(9)],
      );
      assert.equal(stuck!.status, "failed");
      assert.match(String(stuck!.error_message), /cumulative_deletions_queue/);
      assert.equal((await items.retry(bad!.queue_id)).status, "pending", "it can be tried again");
    });

    it("can be worked on, the most urgent first", async () => {
      await insert(old, "ingestion_queue", file("/low", { priority: 1 }));
      await insert(old, "ingestion_queue", file("/high", { priority: 9 }));
      await insert(
        old,
        "ingestion_queue",
        file("/later", { priority: 9, retry_from: "2999-01-01T00:00:00Z" }),
      );
      await run();
      const store = openQueue(own, queues.items);
      const claims = await store.claim({ worker: "w", limit: 10 });
      assert.deepEqual(
        claims.map(({ row }) => JSON.parse(row.payload_json).file_path),
        ["/high", "/low"],
      );
    });

    it("are brought over once: a second run changes nothing, also when the items are long forgotten", async () => {
      await insert(old, "ingestion_queue", file("/a"));
      await insert(old, "ingestion_queue", file("relative.txt"));
      await insert(old, "content_ingestion_queue", note("c1", "done", { status: "done" }));
      assert.equal(summary(await run(), "ingestion_queue"), "2: 1 brought, 1 unmapped");
      const before = await dump();
      const again = await run();
      assert.equal(summary(again, "ingestion_queue"), "2: 1 unmapped, 1 alreadyThere");
      assert.equal(summary(again, "content_ingestion_queue"), "1: 1 alreadyThere");
      assert.deepEqual(await dump(), before);

      const store = openQueue(own, queues.items);
      const claims = await store.claim({ worker: "w", limit: 10 });
      await store.settle(claims.map((claim) => ({ claim, outcome: done() })));
      await own.query("delete from unified_queue where status = 'done'");
      const third = await run();
      assert.equal(summary(third, "ingestion_queue"), "2: 1 unmapped, 1 alreadyThere");
      assert.equal(third.find(({ table }) => table === "ingestion_queue")!.gone, 0);
      assert.deepEqual(await all(), []);
    });

    it("bring over what has come since", async () => {
      await insert(old, "ingestion_queue", file("/a"));
      await run();
      await insert(old, "ingestion_queue", file("/b"));
      assert.equal(summary(await run(), "ingestion_queue"), "2: 1 brought, 1 alreadyThere");
      assert.equal((await all()).length, 2);
    });

    it("merge rows of one key: the newest wins, the highest priority stays, in whichever order they are read", async () => {
      await insert(old, "processing_queue", {
        ...{ queue_id: "p1", file_path: "/a", collection: "docs", priority: 4, created_at: `${at(1)}+00` },
      });
      await insert(old, "cumulative_deletions_queue", deletion("/a", { marked_for_deletion_at: iso(9) }));
      await insert(old, "ingestion_queue", file("/a", { priority: 2, queued_timestamp: `${at(5)}+00` }));
      const report = await run();
      assert.equal(summary(report, "processing_queue"), "1: 1 brought");
      assert.equal(summary(report, "cumulative_deletions_queue"), "1: 1 merged");
      assert.equal(summary(report, "ingestion_queue"), "1: 1 merged");
      const item = await only();
      assert.deepEqual([item.op, item.priority, item.created_at], ["delete", 9, iso(1)]);
    });

    it("merge rows of one key that stand on one page", async () => {
      await insert(old, "missing_metadata_queue", {
        ...{
          queue_id: "m1",
          file_absolute_path: "/a",
          collection_name: "docs",
          tenant_id: "t",
          branch: "dev",
        },
        ...{ operation: "update", missing_tools: "[]", queued_timestamp: iso(5), priority: 1 },
      });
      await insert(old, "missing_metadata_queue", {
        ...{
          queue_id: "m2",
          file_absolute_path: "/a",
          collection_name: "docs",
          tenant_id: "t",
          branch: "main",
        },
        ...{ operation: "ingest", missing_tools: "[]", queued_timestamp: iso(3), priority: 6 },
      });
      assert.equal(summary(await run(), "missing_metadata_queue"), "2: 1 brought, 1 merged");
      const item = await only();
      assert.deepEqual([item.op, item.branch, item.priority], ["update", "dev", 6]);
    });

    it("do not lose work that waits to a request that failed", async () => {
      for (const [id, path, minutes] of [
        [1, "/a", [2, 4]],
        [2, "/b", [4, 2]],
      ] as const) {
        const [failedAt, waitsAt] = minutes.map(iso);
        await insert(
          old,
          "cumulative_deletions_queue",
          deletion(path, { id: id * 10, status: "failed", marked_for_deletion_at: failedAt }),
        );
        await insert(
          old,
          "cumulative_deletions_queue",
          deletion(path, { id: id * 10 + 1, branch: "dev", marked_for_deletion_at: waitsAt }),
        );
      }
      await run();
      assert.deepEqual(
        (await all()).map(({ status }) => status),
        ["pending", "pending"],
      );
    });

    it("give way to what the queue was asked since, but keep the higher priority", async () => {
      await items.enqueue({
        item_type: "file",
        op: "update",
        collection: "docs",
        payload: { file_path: "/a" },
        priority: 2,
      });
      await insert(old, "ingestion_queue", file("/a", { operation: "delete", priority: 9 }));
      assert.equal(summary(await run(), "ingestion_queue"), "1: 1 merged");
      const item = await only();
      assert.deepEqual([item.op, item.priority, item.status], ["update", 9, "pending"]);
    });

    it("do not repeat what the queue has done since, and leave what is being worked on alone", async () => {
      for (const path of ["/done", "/running"])
        await items.enqueue({
          item_type: "file",
          op: "ingest",
          collection: "docs",
          payload: { file_path: path },
        });
      const store = openQueue(own, queues.items);
      const claims = await store.claim({ worker: "w", limit: 10 });
      const first = claims.find(({ row }) => row.payload_json.includes("/done"))!;
      await store.settle([{ claim: first, outcome: done() }]);
      for (const path of ["/done", "/running"])
        await insert(old, "ingestion_queue", file(path, { priority: 10 }));
      assert.equal(summary(await run(), "ingestion_queue"), "2: 2 merged");
      const states = new Map((await all()).map((item) => [item.payload.file_path, item]));
      assert.deepEqual(
        ["/done", "/running"].map((path) => [states.get(path)!.status, states.get(path)!.priority]),
        [
          ["done", 5],
          ["in_progress", 5],
        ],
      );
      const running = claims.filter((claim) => claim !== first);
      await store.settle(running.map((claim) => ({ claim, outcome: done() })));
      assert.deepEqual(await items.counts(), { done: 2 });
    });

    it("are done again when the old request is newer than what was done", async () => {
      for (const path of ["/done", "/running"])
        await items.enqueue({
          item_type: "file",
          op: "ingest",
          collection: "docs",
          payload: { file_path: path },
        });
      const store = openQueue(own, queues.items);
      const claims = await store.claim({ worker: "w", limit: 10 });
      const first = claims.find(({ row }) => row.payload_json.includes("/done"))!;
      await store.settle([{ claim: first, outcome: done() }]);
      await own.query(`update unified_queue set updated_at = '2025-01-01T00:00:00.000Z'`);
      for (const path of ["/done", "/running"])
        await insert(old, "ingestion_queue", file(path, { operation: "delete" }));
      assert.equal(summary(await run(), "ingestion_queue"), "2: 1 brought, 1 merged");
      const running = claims.filter((claim) => claim !== first);
      await store.settle(running.map((claim) => ({ claim, outcome: done() })));
      assert.deepEqual(
        (await all()).map(({ op, status }) => `${op} ${status}`),
        ["delete pending", "delete pending"],
      );
    });

    it("name rows that make no sense, with why", async () => {
      await insert(old, "ingestion_queue", file("relative.txt"));
      await insert(old, "ingestion_queue", file("/x", { operation: "explode" }));
      await insert(old, "ingestion_queue", file("/y", { collection_name: "no\nname" }));
      await insert(old, "content_ingestion_queue", note("c1", ""));
      await insert(old, "content_ingestion_queue", note("c2", "a", { status: "paused" }));
      await insert(old, "content_ingestion_queue", note("c3", "x".repeat(4_000_001)));
      const report = await run();
      const said = Object.fromEntries(
        report.flatMap(({ problems }) => problems.map(({ key, reason }) => [key, reason])),
      );
      assert.match(said["relative.txt"]!, /payload\.file_path: give an absolute path/);
      assert.match(said["/x"]!, /op: .* not "explode"/);
      assert.match(said["/y"]!, /cannot be a collection/);
      assert.match(said.c1!, /payload\.content/);
      assert.match(said.c2!, /status "paused" is not known/);
      assert.match(said.c3!, /payload\.content/);
      const kept = await own.query("select count(*) as total from legacy_rows where outcome = 'unmapped'");
      assert.equal(Number(kept[0]!.total), 6);
    });

    it("are marked as deprecated, once", async () => {
      await insert(old, "ingestion_queue", file("/a"));
      const report = await run();
      assert.ok(report.every(({ isDeprecated }) => isDeprecated));
      const marks = () =>
        own.query("select name, rows, deprecated_at, migrated_at from legacy_tables order by name");
      const first = await marks();
      assert.deepEqual(first.map((row) => row.name).toSorted(), TABLES.toSorted());
      assert.equal(Number(first.find((row) => row.name === "ingestion_queue")!.rows), 1);
      await run();
      assert.deepEqual(await marks(), first);
      if (old.dialect.name === "postgres") {
        const [row] = await old.query("select obj_description('ingestion_queue'::regclass) as said");
        assert.match(String(row!.said), /^Deprecated: its rows are in unified_queue since/);
      } else {
        const rows = await old.query("select name from legacy_tables where deprecated_at is not null");
        assert.equal(rows.length, TABLES.length, "in the database where they are");
      }
    });

    it("are dropped when every row is accounted for", async () => {
      await insert(old, "ingestion_queue", file("/a"));
      await insert(old, "content_ingestion_queue", note("c1", "a", { status: "done" }));
      const report = await run(true);
      assert.ok(report.every(({ isDropped }) => isDropped));
      assert.deepEqual((await openLegacySource(old, "")).tables, []);
      const rows = await own.query("select name from legacy_tables where dropped_at is not null");
      assert.equal(rows.length, TABLES.length);
      assert.equal((await only()).payload.file_path, "/a");
      assert.deepEqual(await run(true), [], "there is nothing left");
    });

    it("are not dropped while a row stands in the way, which is named", async () => {
      await insert(old, "ingestion_queue", file("/kept"));
      await insert(old, "ingestion_queue", file("/cancelled"));
      await insert(old, "content_ingestion_queue", note("c1", ""));
      await run();
      await own.query("delete from unified_queue where payload_json like '%cancelled%'");
      const report = await run(true);
      const byName = new Map(report.map((table) => [table.table, table]));
      assert.equal(byName.get("processing_queue")!.isDropped, true);
      const files = byName.get("ingestion_queue")!;
      assert.deepEqual([files.isDropped, files.gone, files.alreadyThere], [false, 1, 2]);
      assert.deepEqual(
        files.problems.map(({ key }) => key),
        ["/cancelled"],
      );
      assert.match(files.problems[0]!.reason, /without having been done/);
      const notes = byName.get("content_ingestion_queue")!;
      assert.deepEqual([notes.isDropped, notes.problems[0]!.key], [false, "c1"]);
      const left = await old.query("select * from ingestion_queue");
      assert.equal(left.length, 2);
    });

    it("are not dropped under a view that reads them", async () => {
      await old.query("create view queue_statistics as select count(*) as total from ingestion_queue");
      try {
        const files = (await run(true)).find(({ table }) => table === "ingestion_queue")!;
        assert.equal(files.isDropped, false);
        assert.deepEqual(files.problems, [
          { key: "queue_statistics", reason: "this view reads the table; drop it first" },
        ]);
      } finally {
        await old.query("drop view queue_statistics");
      }
    });

    it("stay where they are when something else depends on them", async () => {
      await insert(old, "ingestion_queue", file("/a"));
      await old.query(
        "create table notes_on_files (path text references ingestion_queue(file_absolute_path))",
      );
      await insert(old, "notes_on_files", { path: "/a" });
      try {
        await assert.rejects(run(true), {
          code: "constraint_violated",
          message: /ingestion_queue cannot be dropped/,
        });
        assert.equal((await old.query("select * from ingestion_queue")).length, 1);
        assert.equal(
          (await old.query("select * from processing_queue")).length,
          0,
          "also those that could have gone",
        );
        // One transaction where there is one database; where there are two, rows are safe here before they go there.
        assert.equal((await all()).length, other ? 1 : 0);
        const dropped = await own.query("select * from legacy_tables where dropped_at is not null");
        assert.deepEqual(dropped, []);
      } finally {
        await old.query("drop table notes_on_files");
      }
    });

    it("without the columns that matter are refused by name, and nothing is changed", async () => {
      await insert(old, "content_ingestion_queue", note("c1", "a"));
      await old.query("drop table ingestion_queue");
      await old.query("create table ingestion_queue (id integer, url text)");
      await assert.rejects(run(), {
        code: "schema_mismatch",
        message: /ingestion_queue .*file_absolute_path or file_path.*collection_name or collection.*id, url/,
      });
      assert.deepEqual(await all(), []);
      assert.deepEqual(await own.query("select * from legacy_tables"), []);
    });

    it("with hardly any columns are read with what such rows usually mean", async () => {
      await old.query("drop table ingestion_queue");
      await old.query("create table ingestion_queue (file_path text, collection text)");
      await insert(old, "ingestion_queue", { file_path: "/a", collection: "docs" });
      assert.equal(summary(await run(), "ingestion_queue"), "1: 1 brought");
      const item = await only();
      assert.deepEqual(
        [item.op, item.priority, item.tenant_id, item.branch, item.status, item.retry_count],
        ["ingest", 5, "default", "main", "pending", 0],
      );
    });

    it("are all brought over when they are more than a page", async () => {
      const rows = 1_203;
      const isPostgres = old.dialect.name === "postgres";
      const series = isPostgres
        ? `generate_series(1, ${rows}) as s(n)`
        : `(with recursive s(n) as (select 1 union all select n + 1 from s where n < ${rows}) select n from s)`;
      await old.query(
        `insert into ingestion_queue (file_absolute_path, collection_name, operation) select '/many/' || n, 'docs', 'ingest' from ${series}`,
      );
      await old.query(
        `insert into content_ingestion_queue (queue_id, idempotency_key, content, collection) select 'c' || n, 'k' || n, 'note ' || n, 'docs' from ${series}`,
      );
      const report = await run();
      assert.equal(summary(report, "ingestion_queue"), `${rows}: ${rows} brought`);
      assert.equal(summary(report, "content_ingestion_queue"), `${rows}: ${rows} brought`);
      assert.equal(summary(await run(), "ingestion_queue"), `${rows}: ${rows} alreadyThere`);
      assert.deepEqual(await items.counts(), { pending: 2 * rows });
    });
  });
}

describe("old queues on PostgreSQL", () => {
  let test: TestDatabase;
  const queues = itemQueues();
  before(async () => {
    test = await DATABASES[1]!.open();
    for (const queue of Object.values(queues)) await prepareQueue(test.database, queue);
  });
  after(() => test.close());

  it("are closed to writers while they are brought over", async () => {
    const { url, drop } = await freshPostgres();
    const old = openDatabase(url);
    const writer = new pg.Client({ connectionString: url });
    await writer.connect();
    try {
      for (const sql of oldSchema("postgres")) await old.query(sql);
      await insert(old, "ingestion_queue", file("/first"));
      await writer.query("begin");
      await writer.query(
        "insert into ingestion_queue (file_absolute_path, collection_name, operation) values ('/late', 'docs', 'ingest')",
      );
      const source = await openLegacySource(old, "writers");
      const run = migrateQueues({ database: test.database, queues, source }, { isDropping: true });
      for (let isWaiting = false; !isWaiting; ) {
        const [row] = await test.database.query(
          "select count(*) as total from pg_locks where mode = 'ShareRowExclusiveLock' and not granted",
        );
        isWaiting = Number(row!.total) > 0;
      }
      await writer.query("commit");
      const report = await run;
      assert.equal(summary(report, "ingestion_queue"), "2: 2 brought", "what was being written is not lost");
    } finally {
      await writer.end();
      await old.close();
      await drop();
    }
  });

  it("that may only be read are brought over, but neither marked nor dropped", async () => {
    const { url, drop } = await freshPostgres();
    const owner = openDatabase(url);
    const role = `reader_${process.pid}`;
    const readUrl = new URL(url);
    readUrl.username = role;
    readUrl.password = "reader";
    try {
      for (const sql of oldSchema("postgres")) await owner.query(sql);
      await insert(owner, "ingestion_queue", file("/read-only"));
      await owner.query(`create role ${role} login password 'reader'`);
      await owner.query(`grant select on all tables in schema public to ${role}`);
      const old = openDatabase(readUrl.href);
      try {
        const source = await openLegacySource(old, "readable");
        const report = await migrateQueues({ database: test.database, queues, source }, { isDropping: true });
        const files = report.find(({ table }) => table === "ingestion_queue")!;
        assert.deepEqual([files.brought, files.isDeprecated, files.isDropped], [1, false, false]);
        assert.match(files.problems[0]!.reason, /may not drop/);
      } finally {
        await old.close();
      }
      await owner.query(`drop owned by ${role}`);
      await owner.query(`drop role ${role}`);
    } finally {
      await owner.close();
      await drop();
    }
  });
});

describe("quarry.migrateLegacy", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "quarry-legacy-queues-"));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  it("takes a database that has queues but no documents, and says nothing is left after they are dropped", async () => {
    const from = join(folder, "state.db");
    const old = openDatabase(from);
    for (const sql of oldSchema("sqlite")) await old.query(sql);
    await insert(old, "ingestion_queue", file("/a"));
    await old.close();
    const quarry = await openQuarry({ dataFolder: join(folder, "data") });
    try {
      const first = await quarry.migrateLegacy(from);
      assert.deepEqual([first.documents, summary(first.queues, "ingestion_queue")], [0, "1: 1 brought"]);
      const second = await quarry.migrateLegacy(from, { isDropping: true });
      assert.ok(second.queues.every(({ isDropped }) => isDropped));
      assert.deepEqual((await quarry.migrateLegacy(from)).queues, []);
      assert.deepEqual(await quarry.queue.counts(), { pending: 1 });
    } finally {
      await quarry.close();
    }
  });
});

describe("quarry migrate legacy", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "quarry-legacy-command-"));
    const old = openDatabase(join(folder, "state.db"));
    for (const sql of oldSchema("sqlite")) await old.query(sql);
    await insert(old, "ingestion_queue", file("/a"));
    await insert(old, "ingestion_queue", file("relative.txt"));
    await old.close();
  });
  after(() => rm(folder, { recursive: true, force: true }));
  const quarry = (...args: string[]) =>
    new Running(folder, ["migrate", "legacy", "--from", "state.db", ...args]).ended();

  it("prints its report, names what could not be mapped and exits with 1 while there is such", async () => {
    const first = await quarry("--data", "elsewhere");
    assert.equal(first.code, 1, first.err);
    assert.match(
      first.out,
      /^ingestion_queue: 2 rows: 1 brought over, .*1 could not be mapped; .*deprecated\.$/m,
    );
    assert.match(first.out, /^ {2}relative\.txt: payload\.file_path: give an absolute path$/m);
    const again = await quarry("--data", "elsewhere", "--json");
    assert.equal(summary(JSON.parse(again.out).queues, "ingestion_queue"), "2: 1 unmapped, 1 alreadyThere");
    const old = openDatabase(join(folder, "state.db"));
    await old.query("delete from ingestion_queue where file_absolute_path = 'relative.txt'");
    await old.close();
    const last = await quarry("--data", "elsewhere", "--drop");
    assert.equal(last.code, 0, last.err);
    assert.match(last.out, /^ingestion_queue: .*the table was dropped\.$/m);
    assert.match(last.out, /nothing new/);
  });

  it("takes the file of its own database for what it is", async () => {
    const { code, out, err } = await new Running(folder, [
      ...["migrate", "legacy", "--json", "--data", "elsewhere", "--from", "elsewhere/../elsewhere/quarry.db"],
    ]).ended();
    assert.equal(code, 0, err);
    assert.deepEqual(JSON.parse(out).queues, []);
  });
});

describe("what old rows say", () => {
  it("is read in the ways that such systems write it", () => {
    const noon = "2026-03-01T12:00:00.000Z";
    for (const text of [
      ...[
        "2026-03-01 12:00:00",
        "2026-03-01T12:00:00Z",
        "2026-03-01T12:00Z",
        "2026-03-01 12:00:00.000000+00",
      ],
      ...["2026-03-01 13:00:00+01", "2026-03-01T17:30:00+05:30", "2026-03-01T17:30:00.000123+0530"],
      ...["1772366400", "1772366400000", "1772366400000000", "1772366400000000000", "1772366400.0"],
    ])
      assert.equal(timeOf(text), noon, text);
    assert.equal(timeOf("2026-03-01"), "2026-03-01T00:00:00.000Z");
    for (const text of [null, "", "yesterday", "/a/b.txt", "2026-13-45 99:00:00", "0", "-5"])
      assert.equal(timeOf(text), undefined, String(text));
    assert.deepEqual(
      ["12", "-3", "6.6", "many", "", null].map((text) => clamped(text, { min: 0, max: 10, otherwise: 5 })),
      [10, 0, 7, 5, 5, 5],
    );
    assert.deepEqual(
      [stateOf(null), stateOf("Processing"), stateOf("COMPLETED")],
      ["pending", "pending", "finished"],
    );
    assert.deepEqual(objectOf('["x"]'), { legacy_metadata: ["x"] });
    assert.deepEqual(objectOf("plain words"), { legacy_metadata: "plain words" });
  });

  it("is survived whatever it is", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const time = timeOf(text);
        assert.ok(time === undefined || !Number.isNaN(Date.parse(time)));
        objectOf(text);
        const value = clamped(text, { min: 0, max: 10, otherwise: 5 });
        assert.ok(Number.isInteger(value) && value >= 0 && value <= 10);
      }),
    );
  });
});
