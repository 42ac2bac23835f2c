import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { documentLanes } from "../../src/documents/lanes.ts";
import { SearchableDocuments } from "../../src/documents/searchable.ts";
import { isQuarryError, QuarryError } from "../../src/errors.ts";
import { Crew, openDatabase, openQueue, prepareQueue } from "../../src/index.ts";
import { Items, type NewItem } from "../../src/ingest/items.ts";
import { itemLanes } from "../../src/ingest/lane.ts";
import { describeProject, normalRemote } from "../../src/ingest/project.ts";
import { type ItemQueues, itemQueues, PRIORITIES } from "../../src/ingest/queue.ts";
import { openPipeline, type Pipeline } from "../documents/parts.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";

for (const { name, open } of DATABASES) {
  describe(`what items do on ${name}`, () => {
    let opened: TestDatabase;
    let pipeline: Pipeline;
    let queues: ItemQueues;
    let items: Items;
    let crew: Crew;
    let root: string;
    beforeEach(async () => {
      opened = await open();
      pipeline = await openPipeline(opened);
      queues = itemQueues({ machine: "here" });
      for (const queue of Object.values(queues)) await prepareQueue(opened.database, queue);
      items = new Items(opened.database, queues);
      root = join(opened.folder, "docs");
      await mkdir(root);
      crew = await work();
    });
    afterEach(async () => {
      await crew.stop();
      await pipeline.close();
      await opened.close();
    });

    const work = (
      { database, queues: own, machine } = { database: opened.database, queues, machine: "here" },
    ) => {
      const lanes = itemLanes({
        ...{ database, queues: own, machine, pollMs: 50, documents: pipeline.documents },
        items: new Items(database, own),
        searchable: new SearchableDocuments(database),
        temporaryFolder: join(pipeline.dataFolder, "incoming"),
        except: [pipeline.dataFolder],
        library: { isFetched: false, bytesMax: 1_000_000 },
      });
      const all = [...lanes, ...documentLanes(pipeline.parts)];
      const settings = { heartbeatMs: 500, checkEveryMs: 300, staleMs: 2_000, pollMs: 50, graceMs: 2_000 };
      return new Crew({ database, lanes: all, ...settings }).start();
    };
    const write = async (path: string, text: string) => {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), text);
      return join(root, path);
    };
    /** Enqueues, waits for it and all that came of it, and gives the item back. */
    const run = async (item: Omit<NewItem, "payload"> & { payload: object }) => {
      const { queue_id: id } = await items.enqueue(item);
      await items.finished([id]);
      return items.read(id);
    };
    const file = (op: NewItem["op"], path: string) =>
      run({ item_type: "file", op, payload: { file_path: path } });
    const folder = (op: NewItem["op"], more: object = {}) =>
      run({ item_type: "folder", op, payload: { folder_path: root, ...more } });
    const sources = async () =>
      (await pipeline.documents.list()).documents
        .map(({ source }) => source.replace(`${root}/`, ""))
        .toSorted();
    const found = async (query: string) => {
      const hits = await pipeline.parts.fulltext.search(query, {
        limit: 10,
        filter: { tenant: "default" },
      });
      return hits.length;
    };
    /** What a document left in the index and the data folder is taken away by removals. */
    const untilRemoved = async (query: string) => {
      while ((await found(query)) > 0) await new Promise((resolve) => setTimeout(resolve, 20));
    };

    it("a file is done when it can be searched, updated when it changed, and deleted everywhere", async () => {
      const path = await write("a.txt", "Ada wrote to Bob.");
      const added = await file("ingest", path);
      assert.deepEqual(
        [added.status, added.result!.change, added.result!.state],
        ["done", "added", "searchable"],
      );
      assert.equal(await found("ada"), 1);
      assert.equal((await file("ingest", path)).result!.change, "unchanged");
      await write("a.txt", "Ada wrote to Carol.");
      const updated = await file("update", path);
      assert.equal(updated.result!.change, "replaced");
      assert.notEqual(updated.document_id, added.document_id);
      assert.equal(await found("carol"), 1);
      const id = String(updated.document_id);
      assert.deepEqual((await file("delete", path)).result, { removed: 1 });
      await untilRemoved("ada");
      assert.deepEqual(await sources(), []);
      while (existsSync(join(pipeline.dataFolder, "documents", id)))
        await new Promise((r) => setTimeout(r, 20));
      assert.deepEqual((await file("delete", path)).result, { removed: 0 });
    });

    it("a file that is missing or broken fails with its reason, at once", async () => {
      const missing = await file("ingest", join(root, "nope.txt"));
      assert.equal(missing.status, "failed");
      assert.match(missing.error_message!, /no such file/);
      assert.equal(typeof missing.last_error_at, "string");
      const broken = await file("ingest", await write("b.txt", "[broken]"));
      assert.equal(broken.status, "failed");
      assert.match(broken.error_message!, /it is broken/);
    });

    it("an edit of a file embeds only the chunks whose text changed", async () => {
      const parts = Array.from({ length: 8 }, (_, n) => `## Part ${n}\n\n${"stone ".repeat(60)}number${n}.`);
      const path = await write("long.md", parts.join("\n\n"));
      await file("ingest", path);
      const before = pipeline.calls.embedded.length;
      parts[3] = `## Part 3\n\n${"stone ".repeat(60)}changed.`;
      await write("long.md", parts.join("\n\n"));
      await file("update", path);
      assert.ok(
        pipeline.calls.embedded.length - before <= 2,
        `${pipeline.calls.embedded.length - before} embedded`,
      );
    });

    it("content keeps its tags as metadata, is updated by its name, and deleted", async () => {
      const note = (op: NewItem["op"], content: string) =>
        run({
          item_type: "content",
          op,
          payload: {
            content,
            source_type: "mcp",
            main_tag: "ops",
            full_tag: "ops/night",
            source: "night-log",
          },
        });
      const added = await note("ingest", "The pump was loud at night.");
      const document = await pipeline.documents.show(String(added.document_id));
      assert.deepEqual(document.metadata, { source_type: "mcp", main_tag: "ops", full_tag: "ops/night" });
      await note("update", "The pump was quiet at dawn.");
      await untilRemoved("night");
      assert.equal((await pipeline.documents.list()).documents.length, 1);
      assert.equal(await found("dawn"), 1);
      assert.deepEqual((await note("delete", "whatever")).result, { removed: 1 });
      await untilRemoved("dawn");
    });

    it("a folder becomes items for its files, by depth, patterns and .gitignore; links lead nowhere", async () => {
      await write("a.md", "one");
      await write("b.py", "two");
      await write("sub/c.py", "three");
      await write("sub/deep/d.py", "four");
      await write("sub/.gitignore", "*.log\n!keep.log\nout/\n");
      await write("sub/x.log", "five");
      await write("sub/keep.log", "six");
      await write("sub/out/y.md", "seven");
      await write(".hidden/z.md", "eight");
      await symlink("/etc/hostname", join(root, "link.txt"));
      await symlink(dirname(root), join(root, "loop"));
      const all = await folder("ingest");
      assert.deepEqual([all.status, all.result!.files], ["done", 5]);
      assert.deepEqual(await sources(), ["a.md", "b.py", "sub/c.py", "sub/deep/d.py", "sub/keep.log"]);
      const children = (await items.list({ parent_id: all.queue_id })).items;
      assert.deepEqual(new Set(children.map(({ status }) => status)), new Set(["done"]));
      assert.deepEqual((await folder("delete")).result, { removed: 5, cancelled: 0 });
      await folder("ingest", { patterns: ["*.py"], ignore_patterns: ["deep/"] });
      assert.deepEqual(await sources(), ["b.py", "sub/c.py"]);
      await folder("delete");
      await folder("ingest", { recursive: false });
      assert.deepEqual(await sources(), ["a.md", "b.py"]);
      await folder("ingest", { recursive_depth: 1 });
      assert.deepEqual(await sources(), ["a.md", "b.py", "sub/c.py", "sub/keep.log"]);
    });

    it("a scan works in the background, and removes documents whose files are gone", async () => {
      await write("a.md", "stays");
      const gone = await write("b.md", "goes");
      await folder("ingest");
      await rm(gone);
      const scan = await run({
        item_type: "folder",
        op: "scan",
        payload: { folder_path: root },
        priority: 9,
      });
      assert.deepEqual([scan.result!.files, scan.result!.gone], [1, 1]);
      const children = (await items.list({ parent_id: scan.queue_id })).items;
      assert.deepEqual(new Set(children.map(({ priority }) => priority)), new Set([PRIORITIES.scan]));
      assert.deepEqual(await sources(), ["a.md"]);
      const missing = await run({
        item_type: "folder",
        op: "scan",
        payload: { folder_path: "/no/such/folder" },
      });
      assert.deepEqual(
        [missing.status, /no such file or folder/.test(missing.error_message!)],
        ["failed", true],
      );
    });

    it("a project knows what it is and where it came from", async () => {
      await write("pyproject.toml", "[project]");
      await write("main.py", "print()");
      await write(
        ".git/config",
        '[core]\n\tbare = false\n[remote "origin"]\n\turl = git@github.com:Acme/Rocks.git\n',
      );
      const project = await run({ item_type: "project", op: "ingest", payload: { project_root: root } });
      assert.deepEqual(
        [project.result!.type, project.result!.git_remote, project.result!.files],
        ["python", "git@github.com:Acme/Rocks.git", 2],
      );
      const { tenant_id: tenant } = await describeProject(root);
      assert.deepEqual([project.result!.tenant_id, project.tenant_id], [tenant, tenant]);
      const { documents } = await pipeline.documents.list({ tenant });
      assert.equal(documents.length, 2);
      for (const remote of ["https://github.com/Acme/Rocks", "ssh://git@GitHub.com:22/Acme/Rocks.git/"])
        assert.equal(normalRemote(remote), normalRemote("git@github.com:Acme/Rocks.git"));
      await write("package.json", "{}");
      assert.equal((await describeProject(root)).type, "mixed");
    });

    it("a rename moves a file or a folder, and embeds nothing", async () => {
      await write("old/a.md", "alpha text");
      await write("old/sub/b.md", "beta text");
      await write("older.md", "gamma text");
      await write("new/a.md", "in the way");
      await folder("ingest");
      const embedded = pipeline.calls.embedded.length;
      await rm(join(root, "new"), { recursive: true });
      await rename(join(root, "old"), join(root, "new"));
      const moved = await run({
        item_type: "rename",
        op: "update",
        payload: { old_path: join(root, "old"), new_path: join(root, "new"), is_folder: true },
      });
      assert.deepEqual(moved.result, { moved: 2, followed: 0 });
      assert.deepEqual(await sources(), ["new/a.md", "new/sub/b.md", "older.md"]);
      await rename(join(root, "older.md"), join(root, "newer.md"));
      const payload = { old_path: join(root, "older.md"), new_path: join(root, "newer.md") };
      assert.equal((await run({ item_type: "rename", op: "update", payload })).result!.moved, 1);
      assert.equal((await folder("scan")).result!.gone, 0);
      assert.deepEqual(await sources(), ["new/a.md", "new/sub/b.md", "newer.md"]);
      assert.equal(pipeline.calls.embedded.length, embedded);
    });

    it("a rename into a folder below moves what waits once", async () => {
      await crew.stop();
      const waiting = join(root, "a/f.md");
      await items.enqueue({ item_type: "file", op: "ingest", payload: { file_path: waiting }, priority: 0 });
      const { queue_id: id } = await items.enqueue({
        item_type: "rename",
        op: "update",
        payload: { old_path: join(root, "a"), new_path: join(root, "a/old"), is_folder: true },
        priority: 10,
      });
      await write("a/old/f.md", "alpha");
      crew = await work();
      await idle();
      assert.equal((await items.read(id)).result!.followed, 1);
      assert.deepEqual(await sources(), ["a/old/f.md"]);
    });

    it("a document is deleted by its id or its path, a tenant with all it has", async () => {
      const one = await file("ingest", await write("a.md", "alpha"));
      await file("ingest", await write("b.md", "beta"));
      const remove = (documentId: string) =>
        run({ item_type: "delete_document", op: "delete", payload: { document_id: documentId } });
      assert.deepEqual((await remove(String(one.document_id))).result, { removed: 1 });
      assert.deepEqual((await remove(join(root, "b.md"))).result, { removed: 1 });
      assert.deepEqual((await remove("00000000-0000-4000-8000-000000000000")).result, { removed: 0 });
      await run({ item_type: "content", op: "ingest", payload: { content: "theirs" }, tenant_id: "theirs" });
      await file("ingest", join(root, "a.md"));
      const tenant = await run({
        item_type: "delete_tenant",
        op: "delete",
        payload: { tenant_id_to_delete: "theirs", reason: "user_request" },
      });
      assert.equal(tenant.result!.removed, 1);
      assert.deepEqual(await sources(), ["a.md"]);
    });

    it("a library comes from a path, file or folder", async () => {
      await write("lib/guide.md", "how to use it");
      await write("lib/api.md", "what it offers");
      const library = (op: NewItem["op"]) =>
        run({
          item_type: "library",
          op,
          payload: { library_name: "rocks", library_version: "2.0", source_path: join(root, "lib") },
        });
      assert.equal((await library("ingest")).status, "done");
      // The same folder through a link: what it holds is the same, and stays.
      await symlink(join(root, "lib"), join(root, "link"));
      const linked = await run({
        item_type: "library",
        op: "update",
        payload: { library_name: "rocks", library_version: "2.0", source_path: join(root, "link") },
      });
      assert.equal(linked.result!.replaced, 0);
      const { documents } = await pipeline.documents.list();
      assert.deepEqual(
        documents.map(({ metadata }) => metadata.library_name),
        ["rocks", "rocks"],
      );
      await library("delete");
      assert.deepEqual(await sources(), []);
      const fetched = await run({
        item_type: "library",
        op: "ingest",
        payload: { library_name: "far", source_url: "https://docs.example.org/" },
      });
      assert.deepEqual([fetched.status, /QUARRY_FETCH/.test(fetched.error_message!)], ["failed", true]);
    });

    it("what others wrote wrongly into the table fails with its reason and harms nobody", async () => {
      const insert = (id: string, type: string, op: string, payload: string) =>
        opened.database.query(
          `insert into unified_queue (queue_id, item_type, op, tenant_id, collection, idempotency_key, payload_json) values ('${id}', '${type}', '${op}', 't', 'c', '${id}', '${payload}')`,
        );
      await insert("bad-json", "file", "ingest", "{");
      await insert("bad-field", "file", "ingest", '{"file_path": "relative"}');
      await items.finished(["bad-json", "bad-field"]);
      assert.match((await items.read("bad-json")).error_message!, /payload_json is not JSON/);
      assert.match(
        (await items.read("bad-field")).error_message!,
        /payload\.file_path: give an absolute path/,
      );
    });

    /** Everything that embeds waits until it is let go. */
    const held = () => {
      const gate = Promise.withResolvers<void>();
      pipeline.calls.before = async (step) => {
        if (step === "embed") await gate.promise;
      };
      return () => {
        pipeline.calls.before = () => undefined;
        gate.resolve();
      };
    };
    const until = async (isTrue: () => Promise<boolean>) => {
      while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 20));
    };
    const idle = () =>
      until(async () => {
        const { pending, in_progress: running } = await items.counts();
        return !pending && !running;
      });

    const tokens = async () =>
      (
        await opened.database.query(
          "select queue_id, status, lease_token, worker_id from unified_queue where seen_on = 'there' order by queue_id",
        )
      ).map((row) => ({ ...row }));

    it("items of another machine's paths are never touched, however many and urgent they are", async () => {
      const seen = await write("both.md", "Granite can be seen under the same path on both machines.");
      const there = { seen_on: "there" };
      const others: NewItem[] = [
        { item_type: "file", op: "ingest", payload: { file_path: seen, as_found: true, ...there } },
        { item_type: "folder", op: "scan", payload: { folder_path: root, ...there } },
        { item_type: "project", op: "ingest", tenant_id: "p", payload: { project_root: root, ...there } },
        { item_type: "library", op: "ingest", payload: { library_name: "x", source_path: root, ...there } },
        { item_type: "rename", op: "update", payload: { old_path: seen, new_path: `${seen}x`, ...there } },
        ...Array.from({ length: 100 }, (_, n): NewItem => {
          const payload = { file_path: join(root, `${n}.md`), ...there };
          return { item_type: "file", op: "delete", payload };
        }),
      ];
      await items.enqueueMany(others.map((item) => ({ ...item, priority: 10 })));
      const before = await tokens();
      assert.equal(before.length, others.length);
      for (let round = 0; round < 5; round++) {
        const path = await write("own.md", `Basalt number ${round}.`);
        const own = { item_type: "file", op: "ingest", priority: 0 } as const;
        const taken = await run({ ...own, payload: { file_path: path, seen_on: "here" } });
        assert.equal(taken.status, "done");
      }
      assert.deepEqual(await tokens(), before, "no claim, no release");
      assert.ok(before.every((row) => row.status === "pending" && row.worker_id === null));
      assert.deepEqual(new Set(await sources()), new Set(["own.md"]));
    });

    it("an item that does not say whose it is, is told so once and left to that machine", async () => {
      const path = await write("theirs.md", "Granite.");
      await crew.stop();
      const { queue_id: id } = await items.enqueue({
        item_type: "file",
        op: "ingest",
        payload: { file_path: path, seen_on: "there" },
      });
      // As it was written before there was such a column, or by others.
      await opened.database.query("update unified_queue set seen_on = ''");
      const token = async () =>
        Number(
          (await opened.database.query("select lease_token from unified_queue order by queue_id"))[0]!
            .lease_token,
        );
      const before = await token();
      crew = await work();
      await until(async () => (await tokens()).length === 1 && (await items.read(id)).status === "pending");
      for (const word of ["one", "two"]) await file("ingest", await write("own.md", word));
      assert.equal(await token(), before + 1);
      assert.equal((await items.read(id)).retry_count, 0);
    });

    it("the same path on two machines is two items and two documents; each takes only its own for gone", async () => {
      const here = { seen_on: "here" };
      const there = { seen_on: "there" };
      /** Who saw what, and how it begins. */
      const known = async () => {
        const rows = await opened.database.query(
          "select source, seen_on, id from documents where replaced_by is null",
        );
        const texts = await Promise.all(
          rows.map(({ id }) => pipeline.documents.pageText(String(id), 1).then((text) => text?.trim())),
        );
        return rows
          .map((row, nth) => `${row.seen_on}: ${String(row.source).replace(`${root}/`, "")}: ${texts[nth]}`)
          .toSorted();
      };
      await write("a.md", "only here");
      await write("b.md", "from here");
      await folder("ingest", here);
      assert.deepEqual(await known(), ["here: a.md: only here", "here: b.md: from here"]);
      await crew.stop();

      // Another machine's disk, under the same path.
      await rm(join(root, "a.md"));
      await write("b.md", "from there");
      const far = openDatabase(opened.url);
      const farQueues = itemQueues({ machine: "there" });
      for (const queue of Object.values(farQueues)) await prepareQueue(far, queue);
      const farCrew = await work({ database: far, queues: farQueues, machine: "there" });
      try {
        const scanned = await folder("scan", there);
        assert.deepEqual([scanned.status, scanned.result!.files, scanned.result!.gone], ["done", 1, 0]);
        const both = ["here: a.md: only here", "here: b.md: from here", "there: b.md: from there"];
        assert.deepEqual(await known(), both);
        await write("b.md", "later there");
        await run({ item_type: "file", op: "update", payload: { file_path: join(root, "b.md"), ...there } });
        await rename(join(root, "b.md"), join(root, "a.md"));
        const move = { old_path: join(root, "b.md"), new_path: join(root, "a.md"), ...there };
        assert.equal((await run({ item_type: "rename", op: "update", payload: move })).result!.moved, 1);
        assert.deepEqual(await known(), [...both.slice(0, 2), "there: a.md: later there"]);
        await rm(join(root, "a.md"));
        assert.equal((await folder("scan", there)).result!.gone, 1);
        assert.deepEqual(await known(), both.slice(0, 2));
        await write("c.md", "to be deleted");
        await folder("scan", there);
        const { queue_id: waiting } = await items.enqueue({
          item_type: "file",
          op: "ingest",
          payload: { file_path: join(root, "c.md"), ...here },
        });
        assert.equal((await folder("delete", there)).result!.removed, 1);
        assert.deepEqual(await known(), both.slice(0, 2));
        assert.equal(
          (await items.read(waiting)).status,
          "pending",
          "what is to be done here is not taken back",
        );
        await items.cancel(waiting);
      } finally {
        await farCrew.stop();
        await far.close();
      }

      crew = await work();
      // Whoever names no machine means all of them.
      assert.equal((await folder("delete")).result!.removed, 2);
    });

    it("a document of before machines had names belongs to whoever finds its path", async () => {
      const path = await write("a.md", "from before");
      await file("ingest", path);
      await opened.database.query("update documents set seen_on = null");
      const again = await file("ingest", path);
      assert.deepEqual([again.result!.change, (await sources()).length], ["unchanged", 1]);
      const seenOn = async () =>
        (await opened.database.query("select seen_on from documents")).map((row) => row.seen_on);
      assert.deepEqual(await seenOn(), ["here"]);

      await opened.database.query("update documents set seen_on = null");
      await rm(path);
      assert.equal((await folder("scan")).result!.gone, 1);
      assert.deepEqual(await seenOn(), []);
    });

    it("a folder that is deleted while its files wait does not come back", async () => {
      for (let n = 0; n < 70; n++) await write(`deep/${n}.md`, `text number ${n}`);
      const letGo = held();
      const payload = { folder_path: root };
      const { queue_id: id } = await items.enqueue({ item_type: "folder", op: "ingest", payload });
      await until(async () => (await items.read(id)).status === "done");
      await items.enqueue({ item_type: "folder", op: "delete", payload, priority: 10 });
      // Let those that hold their place run on; the deletion is next.
      letGo();
      await idle();
      const { result } = await items.read(id);
      assert.ok(Number(result!.cancelled) > 0);
      assert.deepEqual(await sources(), []);
      assert.equal((await items.list({ item_type: "file", status: "failed" })).items.length, 0);
    });

    it("what came after a folder's deletion stands", async () => {
      const path = await write("a.md", "alpha");
      await crew.stop();
      await items.enqueue({
        item_type: "file",
        op: "ingest",
        payload: { file_path: await write("b.md", "b") },
      });
      await new Promise((resolve) => setTimeout(resolve, 5));
      await items.enqueue({
        item_type: "folder",
        op: "delete",
        payload: { folder_path: root },
        priority: 10,
      });
      await new Promise((resolve) => setTimeout(resolve, 5));
      await items.enqueue({ item_type: "file", op: "ingest", payload: { file_path: path } });
      crew = await work();
      await idle();
      assert.deepEqual(await sources(), ["a.md"]);
    });

    it("an item that is tried again tries its document again", async () => {
      const path = await write("b.md", "some text");
      pipeline.calls.before = (step) => {
        if (step === "embed") throw new QuarryError("file_unreadable", "the model refuses it");
      };
      const failure = await file("ingest", path);
      assert.equal(failure.status, "failed");
      pipeline.calls.before = () => undefined;
      assert.equal((await file("ingest", path)).status, "failed");
      await items.retry(failure.queue_id);
      await items.finished([failure.queue_id]);
      const item = await items.read(failure.queue_id);
      assert.deepEqual([item.status, item.result?.change], ["done", "retried"]);
    });

    it("nobody deletes another tenant's document by its id", async () => {
      const one = await file("ingest", await write("a.md", "alpha"));
      const remove = (tenant: string) =>
        run({
          item_type: "delete_document",
          op: "delete",
          payload: { document_id: String(one.document_id) },
          tenant_id: tenant,
          collection: "other",
        });
      assert.deepEqual((await remove("stranger")).result, { removed: 0 });
      assert.deepEqual(await sources(), ["a.md"]);
      assert.deepEqual((await remove("default")).result, { removed: 1 });
    });

    it("a folder is the same folder however it is written: links, slashes, any letters", async () => {
      const odd = "100%_\\ 🦊 ö";
      const gone = await write(`${odd}/a.md`, "alpha");
      await write(`${odd}/b.md`, "beta");
      await write("100x_/c.md", "gamma");
      await symlink(join(root, odd), join(opened.folder, "link"));
      const link = join(opened.folder, "link");
      const over = (op: NewItem["op"], path: string) =>
        run({ item_type: "folder", op, payload: { folder_path: path } });
      await over("ingest", `${link}/`);
      assert.deepEqual(await sources(), [`${odd}/a.md`, `${odd}/b.md`]);
      assert.equal((await file("ingest", join(link, "b.md"))).result!.change, "unchanged");
      await over("ingest", `${root}/./100x_//`);
      await rm(gone);
      assert.equal((await over("scan", link)).result!.gone, 1);
      await rename(join(root, odd), join(root, `${odd}2`));
      const payload = { old_path: `${join(root, odd)}/`, new_path: `${join(root, odd)}2/`, is_folder: true };
      assert.equal((await run({ item_type: "rename", op: "update", payload })).result!.moved, 1);
      assert.deepEqual(await sources(), [`${odd}2/b.md`, "100x_/c.md"]);
      assert.equal((await over("delete", `${join(root, odd)}2//`)).result!.removed, 1);
      assert.deepEqual(await sources(), ["100x_/c.md"]);
    });

    it("what a scan saw does not undo what happened since", async () => {
      const path = await write("a.md", "alpha");
      await folder("ingest");
      const child = (op: NewItem["op"]) =>
        run({ item_type: "file", op, payload: { file_path: path, as_found: true } });
      assert.equal((await child("delete")).result!.change, "unchanged");
      await rm(path);
      assert.deepEqual((await child("ingest")).result, { removed: 1 });
      assert.deepEqual(await sources(), []);
    });

    it("a rename takes along what is still to be done under the old name", async () => {
      await write("old/a.md", "alpha");
      await folder("ingest");
      await crew.stop();
      await write("old/a.md", "alpha changed");
      const metadata = { colour: "red" };
      const payload = { file_path: await write("old/b.md", "beta") };
      await items.enqueue({ item_type: "file", op: "ingest", payload, metadata });
      await items.enqueue({
        item_type: "file",
        op: "update",
        payload: { file_path: join(root, "old/a.md") },
      });
      await rename(join(root, "old"), join(root, "new"));
      const paths = { old_path: join(root, "old"), new_path: join(root, "new"), is_folder: true };
      const { queue_id: id } = await items.enqueue({
        item_type: "rename",
        op: "update",
        payload: paths,
        priority: 10,
      });
      crew = await work();
      await idle();
      assert.equal((await items.read(id)).result!.followed, 2);
      // The version before goes when its successor can be searched.
      assert.deepEqual([...new Set(await sources())], ["new/a.md", "new/b.md"]);
      assert.equal(await found("changed"), 1);
      const { documents } = await pipeline.documents.list();
      assert.deepEqual(documents.find(({ filename }) => filename === "b.md")!.metadata, metadata);
    });

    it("an item that is cancelled while its file is copied leaves no document", async () => {
      const path = await write("a.md", "alpha");
      const { documents } = pipeline;
      const add = documents.add.bind(documents);
      const [begun, cancelled] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const ended = Promise.withResolvers<unknown>();
      documents.add = async (document) => {
        begun.resolve();
        await cancelled.promise;
        const adding = add(document);
        adding.then(ended.resolve, ended.resolve);
        return adding;
      };
      const { queue_id: id } = await items.enqueue({
        item_type: "file",
        op: "ingest",
        payload: { file_path: path },
      });
      await begun.promise;
      assert.equal(await items.cancel(id), "aborted");
      cancelled.resolve();
      assert.ok(isQuarryError(await ended.promise, "lease_lost"));
      assert.deepEqual((await documents.list()).documents, []);
      assert.deepEqual(await readdir(join(opened.folder, "data/documents")).catch(() => []), []);
    });

    it("an item whose worker was killed is worked on again, and the document is the same", async () => {
      const path = await write("a.md", "slow text");
      const waiting = Promise.withResolvers<void>();
      pipeline.calls.before = async (step) => {
        if (step === "embed") await waiting.promise;
      };
      const { queue_id: id } = await items.enqueue({
        item_type: "file",
        op: "ingest",
        payload: { file_path: path },
      });
      while ((await items.read(id)).document_id === null) await new Promise((r) => setTimeout(r, 20));
      const first = (await items.read(id)).document_id;
      crew.worker.kill();
      await crew.stop();
      waiting.resolve();
      pipeline.calls.before = () => undefined;
      await openQueue(opened.database, queues.items).expireLeases([crew.worker.id]);
      crew = await work();
      await items.finished([id]);
      const item = await items.read(id);
      assert.deepEqual([item.status, item.document_id], ["done", first]);
      assert.equal((await pipeline.documents.list()).documents.length, 1);
    });
  });
}
