import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, realpath, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { pathToFileURL } from "node:url";
import { documentLanes } from "../../src/documents/lanes.ts";
import { SearchableDocuments } from "../../src/documents/searchable.ts";
import { prepareQueue } from "../../src/index.ts";
import type { FetchOptions } from "../../src/ingest/fetch.ts";
import type { LibrarySettings } from "../../src/ingest/handle.ts";
import type { Item } from "../../src/ingest/item-rows.ts";
import { Items } from "../../src/ingest/items.ts";
import { itemLanes } from "../../src/ingest/lane.ts";
import { cancelBelow } from "../../src/ingest/library-documents.ts";
import { itemQueues, type Operation } from "../../src/ingest/queue.ts";
import { Crew } from "../../src/queue/crew.ts";
import { openPipeline, type Pipeline, until } from "../documents/parts.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";

for (const { name, open } of DATABASES) {
  describe(`library items on ${name}`, () => {
    let test: TestDatabase;
    let pipeline: Pipeline;
    let items: Items;
    let crew: Crew;
    let folder: string;
    let server: Server;
    let port: number;
    /** What the internet says. */
    const pages = new Map<string, string>();
    let library: LibrarySettings & Pick<FetchOptions, "network">;

    before(async () => {
      server = createServer((request, response) => {
        const page = pages.get(request.url!);
        response.writeHead(page === undefined ? 404 : 200, { "content-type": "text/markdown" }).end(page);
      });
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      port = (server.address() as AddressInfo).port;
    });
    after(() => {
      server.closeAllConnections();
      server.close();
    });

    beforeEach(async () => {
      test = await open();
      folder = await realpath(await mkdtemp(join(tmpdir(), "quarry-library-")));
      pipeline = await openPipeline(test);
      const queues = itemQueues();
      for (const queue of Object.values(queues)) await prepareQueue(test.database, queue);
      items = new Items(test.database, queues);
      library = {
        isFetched: true,
        bytesMax: 1_000_000,
        network: { resolve: async () => ["127.0.0.1"], isAllowed: () => true, ports: [port] },
      };
      const { database } = test;
      const lanes = itemLanes({
        ...{ database, items, queues, documents: pipeline.documents, pollMs: 50 },
        searchable: new SearchableDocuments(database),
        temporaryFolder: join(test.folder, "incoming"),
        machine: "here",
        except: [],
        library,
      });
      const times = { heartbeatMs: 300, checkEveryMs: 300, staleMs: 2_000, pollMs: 50, graceMs: 2_000 };
      crew = new Crew({ database, lanes: [...lanes, ...documentLanes(pipeline.parts)], ...times });
      await crew.start();
    });
    afterEach(async () => {
      await crew.stop();
      await pipeline.close();
      await test.close();
      await rm(folder, { recursive: true, force: true });
      pages.clear();
    });

    const run = async (op: Operation, payload: Record<string, unknown>): Promise<Item> => {
      const { queue_id: id } = await items.enqueue({
        item_type: "library",
        op,
        payload: { library_name: "qdrant-client", library_version: "1.15.0", ...payload },
      });
      await until(async () => {
        const { pending = 0, in_progress: running = 0 } = await items.counts();
        return pending + running === 0;
      });
      return items.read(id);
    };
    const documents = async () => {
      const { documents: all } = await pipeline.documents.list();
      return all
        .filter(({ replacedBy }) => replacedBy === null)
        .map(({ source, filename, metadata }) => [source, filename, metadata.library_version])
        .sort();
    };
    const url = (path: string) => `http://docs.example:${port}${path}`;

    it("a file is a document, and goes with the library", async () => {
      const path = join(folder, "manual.md");
      await writeFile(path, "How to search points.");
      const item = await run("ingest", { source_path: path });
      assert.deepEqual([item.status, item.error_message, item.result?.state], ["done", null, "searchable"]);
      assert.deepEqual(await documents(), [[path, "manual.md", "1.15.0"]]);
      const removal = await run("delete", {});
      assert.deepEqual([removal.status, removal.result], ["done", { removed: 1, cancelled: 0 }]);
      assert.deepEqual(await documents(), []);
    });

    it("a folder becomes its files, an update replaces them, a deletion takes them all", async () => {
      const [one, other] = [join(folder, "one"), join(folder, "other")];
      for (const path of [`${one}/sub`, other]) await mkdir(path, { recursive: true });
      await writeFile(join(one, "a.md"), "First guide.");
      await writeFile(join(one, "sub", "b.md"), "Second guide.");
      await writeFile(join(other, "c.md"), "Third guide.");
      await run("ingest", { source_url: pathToFileURL(one).href });
      assert.deepEqual(await documents(), [
        [join(one, "a.md"), "a.md", "1.15.0"],
        [join(one, "sub/b.md"), "b.md", "1.15.0"],
      ]);
      await rm(join(one, "sub"), { recursive: true });
      await writeFile(join(one, "a.md"), "First guide, revised.");
      await run("update", { source_path: one });
      assert.deepEqual(await documents(), [[join(one, "a.md"), "a.md", "1.15.0"]]);
      const moved = await run("update", { source_path: other, library_version: "1.16.0" });
      assert.equal(moved.result?.replaced, 1);
      assert.deepEqual(await documents(), [[join(other, "c.md"), "c.md", "1.16.0"]]);
      await run("delete", { library_version: "1.16.0" });
      assert.deepEqual(await documents(), []);
    });

    it("is fetched, replaced by what the address says next, and deleted", async () => {
      pages.set("/guide.md", "Vectors are searched.");
      const item = await run("ingest", { source_url: url("/guide.md") });
      assert.deepEqual([item.status, item.error_message], ["done", null]);
      assert.deepEqual(await documents(), [["library:qdrant-client", "guide.md", "1.15.0"]]);
      const embedded = pipeline.calls.embedded.length;
      await run("update", { source_url: url("/guide.md") });
      assert.equal(pipeline.calls.embedded.length, embedded, "the same text is not embedded again");
      pages.set("/guide.md", "Vectors are filtered and searched.");
      const update = await run("update", { source_url: url("/guide.md") });
      assert.equal(update.result?.change, "replaced");
      assert.match(pipeline.calls.embedded.at(-1)!, /filtered/);
      assert.equal((await documents()).length, 1);
      await run("delete", {});
      assert.deepEqual(await documents(), []);
      assert.deepEqual(await readdir(join(test.folder, "incoming")), [], "downloads do not stay");
    });

    it("what came from a folder is replaced by what is fetched, and other libraries stay", async () => {
      await writeFile(join(folder, "a.md"), "A guide.");
      await run("ingest", { source_path: folder });
      await writeFile(join(folder, "other.txt"), "About another one.");
      await run("ingest", { library_name: "other", source_path: join(folder, "other.txt") });
      pages.set("/guide.md", "The guide.");
      const item = await run("update", { source_url: url("/guide.md") });
      assert.equal(item.result?.replaced, 1);
      const sources = (await documents()).map(([source]) => source);
      assert.deepEqual(sources, [join(folder, "other.txt"), "library:qdrant-client"]);
    });

    it("says what is wrong, and keeps what there was", async () => {
      pages.set("/guide.md", "The guide.");
      await run("ingest", { source_url: url("/guide.md") });
      const gone = await run("update", { source_url: url("/missing") });
      assert.deepEqual([gone.status, gone.retry_count], ["failed", 1], "a 404 is not tried again");
      assert.match(gone.error_message!, /answered 404/);
      const nothing = await run("update", {});
      assert.match(nothing.error_message!, /source_path or source_url/);
      const foreign = await run("update", { source_url: "file://elsewhere/guide.md" });
      assert.match(foreign.error_message!, /give source_path/);
      assert.equal((await documents()).length, 1);
    });

    it("a deletion takes back what its folder has put into line", async () => {
      await crew.stop();
      const { queue_id: id } = await items.enqueue({
        item_type: "library",
        op: "ingest",
        payload: { library_name: "qdrant-client", library_version: "1.15.0", source_path: folder },
      });
      const scan = await items.enqueue({
        item_type: "folder",
        op: "ingest",
        payload: { folder_path: folder },
        parent_id: id,
      });
      await writeFile(join(folder, "a.md"), "A guide.");
      await items.enqueue({
        item_type: "file",
        op: "ingest",
        payload: { file_path: join(folder, "a.md") },
        parent_id: scan.queue_id,
        priority: 0,
      });
      await test.database.query(`update unified_queue set status = 'done' where item_type = 'folder'`);
      assert.equal(await cancelBelow(items, id), 1);
      assert.deepEqual((await items.list({ item_type: "file" })).items, []);
    });
  });
}
