import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import {
  appendFile,
  mkdir,
  mkdtemp,
  realpath,
  rename,
  rm,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { done, openQueue, prepareQueue, QuarryError } from "../../src/index.ts";
import { Items, type NewItem } from "../../src/ingest/items.ts";
import { itemQueues } from "../../src/ingest/queue.ts";
import { asFatal, type WatchOptions, watchPaths } from "../../src/ingest/watch.ts";
import type { WatchedItem } from "../../src/ingest/watch-items.ts";
import { until } from "../documents/parts.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import { seededRandom } from "../support/random.ts";

describe("watching folders", () => {
  let test: TestDatabase;
  let items: Items;
  let folder: string;
  let seen: WatchedItem[];
  let stop: AbortController;
  let watching: Promise<void> | undefined;

  before(async () => {
    test = await DATABASES[0]!.open();
    const queues = itemQueues();
    for (const queue of Object.values(queues)) await prepareQueue(test.database, queue);
    items = new Items(test.database, queues);
  });
  after(() => test.close());
  beforeEach(async () => {
    await test.database.query("delete from unified_queue");
    folder = await realpath(await mkdtemp(join(tmpdir(), "quarry-watch-")));
    seen = [];
    stop = new AbortController();
  });
  afterEach(async () => {
    stop.abort();
    await watching;
    watching = undefined;
    await rm(folder, { recursive: true, force: true });
  });

  const at = (path: string) => join(folder, path);
  const write = async (path: string, text = path) => {
    await mkdir(join(at(path), ".."), { recursive: true });
    await writeFile(at(path), text);
  };
  /** Resolves when everything is listened to. */
  const start = async (more: Partial<WatchOptions> = {}) => {
    const ready = Promise.withResolvers<void>();
    watching = watchPaths({
      items,
      paths: [folder],
      signal: stop.signal,
      onItem: (item) => seen.push(item),
      onReady: () => ready.resolve(),
      ...more,
    });
    await Promise.race([ready.promise, watching]);
  };
  const told = (list: readonly WatchedItem[] = seen) =>
    list.map(({ item_type: type, op, path, old_path: from }) => {
      const verb = type === "file" ? op : type === "folder" ? op : "rename";
      const to = relative(folder, path) || ".";
      return from === undefined ? `${verb} ${to}` : `${verb} ${relative(folder, from)} ${to}`;
    });
  let marks = 0;
  /** What was told since, once a file written now has been told too. */
  const sinceThen = async (change: () => Promise<unknown>): Promise<string[]> => {
    const from = seen.length;
    await change();
    const mark = `mark-${++marks}.md`;
    await write(mark);
    await until(() => told().includes(`ingest ${mark}`));
    return told(seen.slice(from))
      .filter((line) => !line.endsWith(mark))
      .sort();
  };
  /** A worker that has done everything. */
  const settle = async () => {
    const store = openQueue(test.database, itemQueues().items);
    const claims = await store.claim({ worker: "w", limit: 1_000 });
    await store.settle(claims.map((claim) => ({ claim, outcome: done() })));
  };

  it("tells what is made, written and removed, and asks for a scan at first", async () => {
    await write("a.md");
    await write("b.md");
    await start({ tenant: "acme", collection: "wiki" });
    assert.deepEqual(told(), ["scan ."]);
    assert.deepEqual(await sinceThen(() => write("deep/er/new.md")), ["ingest deep/er/new.md"]);
    assert.deepEqual(await sinceThen(() => appendFile(at("a.md"), "more")), ["update a.md"]);
    assert.deepEqual(await sinceThen(() => rm(at("b.md"))), ["delete b.md"]);
    assert.deepEqual(await sinceThen(() => rm(at("deep"), { recursive: true })), ["delete deep/er/new.md"]);
    const { items: rows } = await items.list({ tenant_id: "acme", collection: "wiki" });
    assert.equal(rows.length, new Set(seen.map(({ queue_id: id }) => id)).size);
    assert.deepEqual(
      rows
        .filter(({ item_type: type }) => type === "folder")
        .map(({ op, priority, payload }) => [op, priority, payload.folder_path]),
      [["scan", 3, folder]],
    );
  });

  it("many writes in a moment are one change", async () => {
    await write("a.md");
    await start();
    const changes = await sinceThen(async () => {
      for (let n = 0; n < 50; n++) await appendFile(at("a.md"), String(n));
      for (let n = 0; n < 20; n++) await write("new.md", String(n));
    });
    assert.deepEqual(changes, ["ingest new.md", "update a.md"]);
  });

  it("what editors do to save a file is one change of it", async () => {
    const editors: Record<string, () => Promise<unknown>> = {
      "a new file is renamed over it": async () => {
        await write("a.md.tmp.1234", "saved");
        await rename(at("a.md.tmp.1234"), at("a.md"));
      },
      "a hidden new file is renamed over it": async () => {
        await write(".a.md.swp", "saved hidden");
        await rename(at(".a.md.swp"), at("a.md"));
      },
      "it is renamed away and written anew": async () => {
        await write("4913", "");
        await rm(at("4913"));
        await rename(at("a.md"), at("a.md~"));
        await write("a.md", "saved anew");
        await rm(at("a.md~"));
      },
      "it is emptied and written": async () => {
        await write("a.md", "");
        await write("a.md", "saved in place");
      },
      "it is removed and made again": async () => {
        await rm(at("a.md"));
        await write("a.md", "saved once more");
      },
    };
    await write("a.md");
    await start();
    for (const [name, save] of Object.entries(editors))
      assert.deepEqual(await sinceThen(save), ["update a.md"], name);
  });

  it("what comes and goes within a moment is nothing", async () => {
    await start();
    const changes = await sinceThen(async () => {
      await write("a.md");
      await rm(at("a.md"));
      await write("sub/b.md");
      await rm(at("sub"), { recursive: true });
    });
    assert.deepEqual(changes, []);
  });

  it("a file that is only touched to the same time and content is left alone", async () => {
    await write("a.md");
    const time = new Date("2026-01-01");
    await utimes(at("a.md"), time, time);
    await start();
    assert.deepEqual(await sinceThen(() => utimes(at("a.md"), time, time)), []);
  });

  it("a move is a rename, of a file or of a folder with all that is in it", async () => {
    for (const path of ["a.md", "sub/b.md", "sub/deep/c.md", "sub/deep/d.md", "other/e.md"])
      await write(path);
    await start();
    assert.deepEqual(await sinceThen(() => rename(at("a.md"), at("sub/a2.md"))), ["rename a.md sub/a2.md"]);
    await settle();
    assert.deepEqual(await sinceThen(() => rename(at("sub"), at("other/moved"))), ["rename sub other/moved"]);
    const folders = seen.filter(({ is_folder: isFolder }) => isFolder);
    assert.equal(folders.length, 1);
    const { payload } = await items.read(folders[0]!.queue_id);
    assert.deepEqual(payload, { old_path: at("sub"), new_path: at("other/moved"), is_folder: true });
    await settle();
    // What moved is known under its new name.
    assert.deepEqual(await sinceThen(() => appendFile(at("other/moved/deep/c.md"), "x")), [
      "update other/moved/deep/c.md",
    ]);
    assert.deepEqual(await sinceThen(() => rm(at("other/moved/deep/d.md"))), [
      "delete other/moved/deep/d.md",
    ]);
  });

  it("a move in which something else happened is told file by file", async () => {
    for (const path of ["sub/b.md", "sub/c.md", "x.md", "y.md", "z.md"]) await write(path);
    await start();
    const folderAndEdit = await sinceThen(async () => {
      await rename(at("sub"), at("moved"));
      await appendFile(at("moved/c.md"), "more");
    });
    assert.deepEqual(folderAndEdit, ["delete sub/c.md", "ingest moved/c.md", "rename sub/b.md moved/b.md"]);
    await settle();
    const fileAndEdit = await sinceThen(async () => {
      await rename(at("x.md"), at("x2.md"));
      await appendFile(at("x2.md"), "more");
    });
    assert.deepEqual(fileAndEdit, ["delete x.md", "ingest x2.md"]);
    await settle();
    assert.deepEqual(await sinceThen(() => rename(at("y.md"), at("z.md"))), ["delete y.md", "update z.md"]);
  });

  it("a move of what is still worked on is a deletion and a new file", async () => {
    await start();
    await sinceThen(() => write("a.md"));
    assert.deepEqual(await sinceThen(() => rename(at("a.md"), at("b.md"))), ["delete a.md", "ingest b.md"]);
    await settle();
    assert.deepEqual(await sinceThen(() => rename(at("b.md"), at("c.md"))), ["rename b.md c.md"]);
    assert.deepEqual(await sinceThen(() => rename(at("c.md"), at("d.md"))), ["delete c.md", "ingest d.md"]);
  });

  it("a move while files that the scan found are still in line is one too", async () => {
    await write("a.md");
    await start();
    const store = openQueue(test.database, itemQueues().items);
    const [scan] = await store.claim({ worker: "w", limit: 1 });
    const child: NewItem = {
      item_type: "file",
      op: "ingest",
      payload: { file_path: at("a.md") },
      parent_id: String(scan!.key),
    };
    await items.enqueue(child);
    await store.settle([{ claim: scan!, outcome: done() }]);
    assert.deepEqual(await sinceThen(() => rename(at("a.md"), at("b.md"))), ["delete a.md", "ingest b.md"]);
  });

  it("leaves out what a scan leaves out", async () => {
    await write(".gitignore", "*.log\nout/\n");
    await write("sub/.gitignore", "!kept.log\nsecret.md\n");
    await write("data/x.md");
    await start({ except: [at("data")] });
    const changes = await sinceThen(async () => {
      for (const path of [
        ...["a.log", "out/x.md", "sub/secret.md", "data/y.md", ".hidden.md", ".git/config", "film.mp4"],
        ...["node_modules/x/readme.md", "dist/x.md", "sub/kept.log", "sub/more/x.md", "secret.md"],
      ])
        await write(path);
      await symlink("/etc/hosts", at("hosts.md"));
    });
    assert.deepEqual(changes, ["ingest secret.md", "ingest sub/kept.log", "ingest sub/more/x.md"]);
  });

  it("a .gitignore that changes is followed from then on, and a scan finds what it allows now", async () => {
    await write(".gitignore", "*.txt\n");
    await write("sub/a.txt");
    await start();
    assert.deepEqual(await sinceThen(() => appendFile(at("sub/a.txt"), "x")), []);
    await write(".gitignore", "*.log\n");
    await until(() => told().filter((line) => line === "scan .").length === 2);
    assert.deepEqual(await sinceThen(() => appendFile(at("sub/a.txt"), "x")), ["update sub/a.txt"]);
    assert.deepEqual(await sinceThen(() => write("x.log")), []);
  });

  it("files of a project come before others", async () => {
    await mkdir(at("project/.git"), { recursive: true });
    await start();
    await sinceThen(async () => {
      await write("project/src/a.md");
      await write("b.md");
    });
    const priority = (path: string) => seen.find((item) => item.path === at(path))?.priority;
    assert.deepEqual([priority("project/src/a.md"), priority("b.md")], [7, 5]);
    stop.abort();
    await watching;
    stop = new AbortController();
    await start({ priority: 2 });
    await sinceThen(() => write("project/src/c.md"));
    assert.equal(priority("project/src/c.md"), 2);
  });

  it("files that are named themselves are watched, whatever they are called", async () => {
    for (const path of ["a.log", "b.md", "sub/c.md"]) await write(path);
    await start({ paths: [at("a.log"), at("sub"), at("sub/c.md")] });
    assert.deepEqual(told().sort(), ["ingest a.log", "scan sub"]);
    const from = seen.length;
    await write("b.md", "unheard");
    await write(".a.tmp", "saved");
    await rename(at(".a.tmp"), at("a.log"));
    await until(() => seen.length > from);
    await rm(at("a.log"));
    await until(() => seen.length > from + 1);
    await write("a.log", "back");
    await until(() => seen.length > from + 2);
    assert.deepEqual(told(seen.slice(from)), ["update a.log", "delete a.log", "ingest a.log"]);
  });

  it("a watched folder that goes away takes nothing with it, and is scanned when it is back", async () => {
    await write("root/a.md");
    await write("root/b.md");
    const notices: string[] = [];
    await start({ paths: [at("root")], onNotice: (text) => notices.push(text) });
    await rename(at("root"), at("away"));
    await until(() => notices.length === 1);
    assert.match(notices[0]!, /root is gone/);
    await rm(at("away/b.md"));
    await rename(at("away"), at("root"));
    await until(() => seen.length === 2);
    assert.deepEqual(told(), ["scan root", "scan root"]);
    await write("root/c.md");
    await until(() => told().includes("ingest root/c.md"));
    assert.deepEqual(told(), ["scan root", "scan root", "ingest root/c.md"]);
  });

  it("another folder in the place of a watched one is watched", async () => {
    await write("root/a.md");
    await start({ paths: [at("root")] });
    await rm(at("root"), { recursive: true });
    await write("root/b.md");
    // It may have got the number of the one before, and is the same folder then.
    await until(() => seen.length > 1);
    await write("root/c.md");
    await until(
      () => told().includes("ingest root/c.md") || told().filter((it) => it === "scan root").length > 1,
    );
    await write("root/c.md", "changed");
    await until(() => told().includes("update root/c.md") || told().includes("ingest root/c.md"));
  });

  it("10,000 changes are written in batches", { timeout: 120_000 }, async () => {
    const sizes: number[] = [];
    const counting: WatchOptions["items"] = {
      enqueueMany: (list) => {
        sizes.push(list.length);
        return items.enqueueMany(list);
      },
      list: (filter) => items.list(filter),
      read: (id) => items.read(id),
    };
    // All at once: the folder is moved in, and out again.
    const many = `${folder}-many`;
    for (let sub = 0; sub < 20; sub++) {
      await mkdir(join(many, String(sub)), { recursive: true });
      for (let n = 0; n < 500; n++) writeFileSync(join(many, String(sub), `${n}.md`), "x");
    }
    await start({ items: counting });
    const count = (op: string) => seen.filter((item) => item.op === op).length;
    await rename(many, at("many"));
    await until(() => count("ingest") === 10_000);
    assert.equal((await items.counts()).pending, 10_001);
    await rename(at("many"), many);
    await until(() => count("delete") === 10_000);
    assert.ok(Math.max(...sizes) <= 500);
    assert.ok(sizes.length < 200, `${sizes.length} writes`);
    await rm(many, { recursive: true });
  });

  it("waits for a database that is away, and loses nothing", async () => {
    let outages = 0;
    const failing: WatchOptions["items"] = {
      enqueueMany: (list) => {
        if (seen.length === 1 && outages++ < 1) throw new QuarryError("database_unavailable", "away");
        return items.enqueueMany(list);
      },
      list: (filter) => items.list(filter),
      read: (id) => items.read(id),
    };
    await start({ items: failing });
    assert.deepEqual(await sinceThen(() => write("a.md")), ["ingest a.md"]);
    assert.equal(outages, 2);
  });

  it("a file that cannot be taken does not keep the others out", async () => {
    const picky: WatchOptions["items"] = {
      enqueueMany: (list) => {
        if (JSON.stringify(list).includes("bad.md")) throw new QuarryError("invalid_input", "bad name");
        return items.enqueueMany(list);
      },
      list: (filter) => items.list(filter),
      read: (id) => items.read(id),
    };
    await start({ items: picky });
    const changes = await sinceThen(async () => {
      for (const path of ["bad.md", "good.md", "fine.md"]) await write(path);
    });
    assert.deepEqual(changes, ["ingest fine.md", "ingest good.md"]);
  });

  it("says in a sentence what the system does not allow, and which path is not there", async () => {
    const failed = (code: string) => asFatal(Object.assign(new Error("no"), { code }));
    assert.match(failed("ENOSPC")!.message, /max_user_watches/);
    assert.match(failed("EMFILE")!.message, /ulimit/);
    assert.equal(failed("EACCES"), undefined);
    const options = { items, signal: stop.signal };
    await assert.rejects(watchPaths({ ...options, paths: [at("missing")] }), {
      code: "invalid_input",
      message: /no such file or folder/,
    });
  });

  it("ends at once, also while it begins", async () => {
    for (let n = 0; n < 200; n++) await write(`${n % 20}/${n}.md`);
    const begun = watchPaths({ items, paths: [folder], signal: stop.signal });
    stop.abort();
    await begun;
    await watchPaths({ items, paths: [folder], signal: stop.signal });
  });

  /** Documents as the items make them, each read when its item is told. */
  function documentsFrom(model: Map<string, string>, item: WatchedItem): void {
    const { item_type: type, op, path, old_path: from } = item;
    if (type === "folder") for (const [file, text] of filesIn(folder)) model.set(file, text);
    else if (type === "rename") {
      for (const [file, text] of [...model]) {
        if (file !== from && !file.startsWith(`${from}/`)) continue;
        model.delete(file);
        model.set(path + file.slice(from!.length), text);
      }
    } else if (op === "delete") model.delete(path);
    else
      try {
        model.set(path, readFileSync(path, "utf8"));
      } catch {
        // Gone again: that will be told.
      }
  }

  function filesIn(root: string): Map<string, string> {
    const files = new Map<string, string>();
    for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      if (entry.isFile()) files.set(path, readFileSync(path, "utf8"));
    }
    return files;
  }

  for (const seed of [1, 2, 3, 4]) {
    it(`whatever happens in a folder, the items lead to what is in it (${seed})`, async () => {
      const random = seededRandom(seed);
      const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
      const folders = ["", "one", "two", "one/deep", "two/deep/er"];
      const names = ["a.md", "b.md", "c.md", "d.md"];
      const path = () => join(pick(folders), pick(names));
      const attempt = (work: Promise<unknown>) => work.catch(() => undefined);
      let version = 0;
      const operations = [
        () => write(path(), `text ${++version}`),
        () => write(path(), `text ${++version}`),
        () => attempt(appendFile(at(path()), ` and ${++version}`)),
        () => attempt(rm(at(path()))),
        () => attempt(rename(at(path()), at(path()))),
        () => attempt(rename(at(pick(folders.slice(1))), at(pick(folders.slice(1))))),
        () => attempt(rm(at(pick(folders.slice(1))), { recursive: true })),
        async () => {
          const target = path();
          await write("save.tmp", `saved ${++version}`);
          await attempt(rename(at("save.tmp"), at(target)));
          await attempt(rm(at("save.tmp")));
        },
        () => new Promise((resolve) => setTimeout(resolve, random() * 200)),
        () => settle(),
      ];
      for (const name of names) await write(`one/${name}`);
      const model = new Map<string, string>();
      await start({
        stillMs: 60,
        onItem: (item) => {
          seen.push(item);
          documentsFrom(model, item);
        },
      });
      for (let n = 0; n < 150; n++) await pick(operations)();
      const sorted = (map: Map<string, string>) => [...map].sort(([one], [other]) => (one < other ? -1 : 1));
      const isSame = () => JSON.stringify(sorted(model)) === JSON.stringify(sorted(filesIn(folder)));
      await until(isSame);
      await sinceThen(() => write("last.md"));
      assert.deepEqual(sorted(model), sorted(filesIn(folder)));
    });
  }
});
