import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, it } from "node:test";
import type { Scope } from "../../src/agents/catalogue.ts";
import { checkedSelect } from "../../src/agents/sql-guard.ts";
import {
  type CatalogueReader,
  openCatalogueReader,
  openUnguardedReader,
} from "../../src/agents/sql-reader.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import { shelve } from "./shelf.ts";

const CANARY = "canary-7f3a";
const SCOPE: Scope = { tenant: "default", collection: null };
const RUNAWAY =
  "select count(*) from chunks a, chunks b, chunks c, chunks d, chunks e, chunks f, chunks g, chunks h";

/** Each must be refused, or answer without having done or seen anything. */
const HOSTILE: readonly string[] = [
  // Writing.
  "drop table documents",
  "delete from documents",
  "update documents set filename = 'x'",
  "insert into documents (filename) values ('x')",
  "create table loot (a text)",
  "create temp table loot as select * from documents",
  "alter table documents add column loot text",
  "select * into loot from documents",
  "with gone as (delete from documents returning *) select * from gone",
  "with changed as (update documents set title = 'x' returning id) select * from changed",
  "select * from documents for update",
  "truncate documents",
  "vacuum",
  "reindex",
  // More than one statement.
  "select 1; drop table documents",
  "select 1; select value from secrets",
  "select 1 ; ; select 2",
  // Hidden in what one of us reads otherwise.
  "select 1 -- \n; drop table documents",
  "select 1 /* ; */; drop table documents",
  "select /* hidden */ value from secrets",
  "select E'\\'; drop table documents; --'",
  "select $$x$$",
  "select $a$ ; drop table documents; $a$",
  "select U&'\\0041'",
  "select * from [secrets]",
  "select * from `secrets`",
  "select 1from secrets",
  "select 1.from secrets",
  "select 1.5.from secrets",
  "select * from\u00a0documents",
  "with secrets\u00a0as (a) as (select 1) select * from secrets",
  "select * from 'secrets'",
  // Other tables.
  "select value from secrets",
  'select value from "secrets"',
  "select value from SECRETS",
  "select * from documents, secrets",
  "select * from documents d, pages p, secrets",
  "select * from documents window, secrets",
  "select * from documents offset, secrets",
  "select * from documents join secrets on true",
  "select * from (secrets)",
  "select * from (documents cross join secrets)",
  "select (select value from secrets)",
  "select * from documents where exists (select 1 from secrets)",
  "select 1 union all select value from secrets",
  "select 1 union table secrets",
  "with documents as (select value from secrets) select * from documents",
  "with a as (select 1), b as (select value from secrets) select * from b",
  "select distinct from secrets",
  "select * from task_queue",
  "select * from planners",
  "select * from task_queue_chunk",
  "select * from only documents",
  // Around the views.
  "select * from main.documents",
  "select * from public.documents",
  "select * from temp.documents",
  "select * from main.secrets",
  "select * from public.secrets",
  "select * from pg_catalog.pg_class",
  "select * from pg_authid",
  "select * from pg_settings",
  "select * from pg_stat_activity",
  "select * from information_schema.tables",
  "select * from sqlite_master",
  "select sql from sqlite_schema",
  "select * from sqlite_temp_master",
  "select * from pragma_table_info('secrets')",
  "select * from pragma_database_list",
  "select * from dbstat",
  "select 'secrets'::regclass",
  "select cast('secrets' as regclass)",
  // Settings, files, the system.
  "pragma query_only = off",
  "pragma database_list",
  "attach database '/etc/passwd' as loot",
  "select load_extension('/tmp/evil')",
  "select readfile('/etc/passwd')",
  "select writefile('/tmp/loot', 'x')",
  "select pg_read_file('/etc/passwd')",
  "select pg_ls_dir('.')",
  "select lo_import('/etc/passwd')",
  "copy documents to program 'id'",
  "select set_config('role', 'postgres', false)",
  "select current_setting('data_directory')",
  "select query_to_xml('select * from secrets', true, true, '')",
  "select dblink('host=localhost', 'select 1')",
  "set statement_timeout = 0",
  "show all",
  "explain select 1",
  "select current_user",
  "select session_user",
  "select version()",
  "select pg_terminate_backend(1)",
  "select pg_sleep(60)",
  "select operator(pg_catalog.+)(1, 2)",
  "call something()",
  "do $$ begin end $$",
  "listen x",
  "begin",
  "values (1)",
  "",
  "  ;  ",
  "select * from",
  "select ((1)",
  "select 1)",
  // Exhausting.
  "select repeat('x', 1000000000)",
  "select zeroblob(2000000000)",
  "select hex(randomblob(1000000000))",
  "select printf('%1000000000d', 1)",
  "select * from generate_series(1, 1000000000)",
  `select ${"(".repeat(3_000)}1${")".repeat(3_000)}`,
  `select '${"x".repeat(20_000)}'`,
];

it("the guard by itself refuses all of them, whatever a database would make of them", () => {
  for (const sql of HOSTILE) assert.throws(() => checkedSelect(sql), { code: "invalid_input" }, sql);
});

for (const { name, open } of DATABASES) {
  describe(`queries over the catalogue on ${name}`, () => {
    let test: TestDatabase;
    let reader: CatalogueReader;
    const { signal } = new AbortController();
    const read = (sql: string, scope = SCOPE) => reader.read(sql, scope, signal);

    before(async () => {
      test = await open();
      const { database, url } = test;
      await shelve(database, [
        {
          filename: "slate.md",
          collection: "stones",
          pages: [
            ["Slate splits into thin plates.", "Roofs are made of it."],
            ["Ada Stone founded the works."],
          ],
          entities: { "Ada Stone": "person", "Wender Works": "organization" },
        },
        { filename: "bread.md", collection: "food", pages: [["Bread is baked at dawn."]] },
        {
          filename: `${CANARY}.md`,
          tenant: "other",
          pages: [[`${CANARY} is nobody's business.`]],
          entities: { [CANARY]: "concept" },
        },
      ]);
      await database.query("create table secrets (value text)");
      await database.query(`insert into secrets (value) values ('${CANARY}')`);
      reader = openCatalogueReader({ url, database });
    });
    after(async () => {
      await reader.close();
      await test.close();
    });

    const contents = async () => {
      const { query } = test.database;
      const counts: unknown[] = [];
      for (const table of ["documents", "task_queue_page", "task_queue_chunk", "entities", "secrets"])
        counts.push(...(await query.call(test.database, `select count(*) as n from ${table}`)));
      return JSON.stringify(counts);
    };

    it("counts, joins, groups and sorts", async () => {
      assert.deepEqual(await read("select count(*) as documents from documents"), {
        columns: ["documents"],
        rows: [[2]],
        isCut: false,
      });
      const grouped = await read(
        "with n as (select filename, count(*) as passages from chunks group by filename) select n.filename, passages, pages from n join documents d on d.filename = n.filename order by passages desc;",
      );
      assert.deepEqual(grouped.rows, [
        ["slate.md", 3, 2],
        ["bread.md", 1, 1],
      ]);
      const where = "select entity, filename, page_number from mentions where type = 'person'";
      assert.deepEqual((await read(where)).rows, [["Ada Stone", "slate.md", 1]]);
      assert.deepEqual((await read("select count(*), sum(mentions) from entities")).rows, [[2, 2]]);
      assert.deepEqual((await read("select count(*) from relations")).rows, [[0]]);
      assert.deepEqual((await read("select lower(text_source), chunks from pages where chunks > 1")).rows, [
        ["text", 2],
      ]);
    });

    it("sees one tenant's documents, or one collection of them", async () => {
      const all = async (scope: Scope) =>
        (await read("select filename from documents order by filename", scope)).rows.flat();
      assert.deepEqual(await all(SCOPE), ["bread.md", "slate.md"]);
      assert.deepEqual(await all({ tenant: "default", collection: "food" }), ["bread.md"]);
      assert.deepEqual(await all({ tenant: "other", collection: null }), [`${CANARY}.md`]);
      assert.deepEqual(await all({ tenant: "x' or '1'='1", collection: null }), []);
      for (const view of ["documents", "pages", "chunks", "entities", "mentions"])
        assert.ok(!JSON.stringify(await read(`select * from ${view}`)).includes(CANARY), view);
    });

    it("gives the first rows and says when there are more", async () => {
      const few = openCatalogueReader({ url: test.url, database: test.database, rowsMax: 2 });
      const cut = await few.read("select filename from chunks", SCOPE, signal);
      const whole = await few.read("select filename from documents", SCOPE, signal);
      await few.close();
      assert.deepEqual([cut.rows.length, cut.isCut, whole.rows.length, whole.isCut], [2, true, 2, false]);
    });

    it("long texts are cut", async () => {
      const { rows } = await read(`select '${"x".repeat(600)}' as long`);
      assert.equal(String(rows[0]![0]).length, 501);
    });

    // SQLite's values are cut in the process that has so much memory and no more.
    if (name === "PostgreSQL")
      it("values of a great length fill nobody's memory", async () => {
        const doubled = `with recursive r as (select '${"x".repeat(1_000)}' as x, 1 as n union all select x || x, n + 1 from r where n < 16) select x from r`;
        await assert.rejects(read(doubled), { code: "resource_exhausted", message: /more than 16 MB/ });
        assert.deepEqual((await read("select count(*) from documents")).rows, [[2]]);
      });

    // An outage costs no try: the model would be asked for such a query for ever.
    if (name === "PostgreSQL")
      it("a query that takes too much of the server is no outage", async () => {
        const current = "execute format('alter database %I set temp_file_limit = 0', current_database())";
        await test.database.query(`do $$ begin ${current}; end $$`);
        const sorted =
          "select count(*) from (select a.content from chunks a, chunks b, chunks c, chunks d, chunks e, chunks f, chunks g, chunks h, chunks i order by a.content desc, i.content) as s";
        await assert.rejects(read(sorted), { code: "resource_exhausted" });
        await test.database.query(
          `do $$ begin ${current.replace("set temp_file_limit = 0", "reset temp_file_limit")}; end $$`,
        );
      });

    it(`refuses ${HOSTILE.length} hostile statements, and nothing has changed`, async () => {
      const before = await contents();
      for (const sql of HOSTILE) {
        await assert.rejects(read(sql), (error: { code?: string; message: string }) => {
          assert.equal(error.code, "invalid_input", `${sql.slice(0, 80)}: ${error.message}`);
          return !error.message.includes(CANARY);
        });
      }
      assert.equal(await contents(), before);
    });

    // Waiting gives a role no rights: taken for an outage, the question would wait for ever.
    if (name === "PostgreSQL")
      it("a role that may not make the views is told so, and is no outage", async () => {
        const { database, url } = test;
        const address = new URL(url);
        [address.username, address.password] = [`poor_${randomUUID().slice(0, 8)}`, "x"];
        const { username: role } = address;
        await database.query(`create role ${role} login password 'x'`);
        await database.query(
          "do $$ begin execute format('revoke temporary on database %I from public', current_database()); end $$",
        );
        const poor = openCatalogueReader({ url: String(address), database });
        const reading = poor.read("select 1", SCOPE, signal);
        await assert.rejects(reading, { code: "database_failed", message: /may make temporary views/ });
        await poor.close();
        await database.query(`drop role ${role}`);
      });

    it("a query that does not end is ended, and the next one is answered", async () => {
      const hasty = openCatalogueReader({ url: test.url, database: test.database, deadlineMs: 300 });
      await shelve(test.database, [{ filename: "long.md", pages: [Array(60).fill("Some words.")] }]);
      await assert.rejects(hasty.read(RUNAWAY, SCOPE, signal), { code: "timeout" });
      const later = await reader.read("select count(*) from documents", SCOPE, signal);
      assert.deepEqual(later.rows, [[3]]);
      await hasty.close();
    });

    it("a query that is not wanted any more is ended", async () => {
      const controller = new AbortController();
      const reading = reader.read(RUNAWAY, SCOPE, controller.signal);
      setTimeout(() => controller.abort(new Error("not wanted any more")), 50);
      await assert.rejects(reading, /not wanted any more/);
    });

    it("even what no guard has looked at cannot write, nor reach another table by its name", async () => {
      const before = await contents();
      const bare = openUnguardedReader({ url: test.url, database: test.database });
      const attempts = HOSTILE.filter((sql) =>
        /^(drop|delete|update|insert|create|alter|truncate|with|vacuum|attach)/.test(sql),
      );
      const names = [
        "select value from secrets",
        "select * from task_queue",
        "select * from task_queue_chunk",
      ];
      for (const sql of [...attempts, ...names, "select * from documents for update"].filter((sql) =>
        name === "SQLite" ? !sql.endsWith("for update") : !sql.startsWith("attach"),
      ))
        await assert.rejects(bare.read(sql, SCOPE, signal), { code: "invalid_input" }, sql);
      await bare.close();
      assert.equal(await contents(), before);
    });
  });
}
