import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, beforeEach, describe, it } from "node:test";
import {
  done,
  failed,
  openDatabase,
  openQueue,
  prepareQueue,
  type QueueStore,
  retry,
} from "../../src/index.ts";
import { Items, type NewItem } from "../../src/ingest/items.ts";
import { idempotencyKey } from "../../src/ingest/keys.ts";
import { checkedPayload } from "../../src/ingest/payloads.ts";
import {
  ITEM_TYPES,
  type ItemPayload,
  itemQueues,
  OPERATIONS,
  OPERATIONS_OF,
} from "../../src/ingest/queue.ts";
import { bound } from "../support/bound.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";

const PAYLOADS = {
  content: { content: "a note" },
  file: { file_path: "/a/b.txt" },
  folder: { folder_path: "/a" },
  project: { project_root: "/p" },
  library: { library_name: "qdrant-client", library_version: "1.15.0" },
  delete_tenant: { tenant_id_to_delete: "t" },
  delete_document: { document_id: "/a/b.txt" },
  rename: { old_path: "/a/b.txt", new_path: "/a/c.txt" },
} as const;

const file = (path: string, more: Partial<NewItem> = {}): NewItem => ({
  item_type: "file",
  op: "ingest",
  payload: { file_path: path },
  ...more,
});

describe("idempotency keys", () => {
  it("are made as the design says", () => {
    const hash = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 16);
    const vectors = {
      content: hash("a note"),
      file: hash("/a/b.txt"),
      folder: hash("/a"),
      project: hash("/p"),
      library: hash("qdrant-client:1.15.0"),
      delete_tenant: hash("t"),
      delete_document: hash("/a/b.txt"),
      rename: hash("/a/b.txt:/a/c.txt"),
    };
    for (const type of ITEM_TYPES)
      assert.equal(
        idempotencyKey(type, "docs", checkedPayload(type, PAYLOADS[type]) as never),
        `${type}:docs:${vectors[type]}`,
      );
    assert.equal(idempotencyKey("file", "docs", { file_path: "/a/b.txt" }), "file:docs:3af167d37e3712f4");
  });
});

for (const { name, open } of DATABASES) {
  describe(`the unified queue on ${name}`, () => {
    let test: TestDatabase;
    let items: Items;
    let store: QueueStore<ItemPayload>;
    let oldest: QueueStore<ItemPayload>;
    before(async () => {
      test = await open();
      const queues = itemQueues();
      for (const queue of Object.values(queues)) await prepareQueue(test.database, queue);
      items = new Items(test.database, queues);
      store = openQueue(test.database, queues.items);
      oldest = openQueue(test.database, queues.oldest);
    });
    after(() => test.close());
    beforeEach(() => test.database.query("delete from unified_queue"));

    const claim = async (limit = 1) => store.claim({ worker: "w", limit });

    it("takes what fits and refuses what does not, before and in the database", async () => {
      for (const type of ITEM_TYPES) {
        for (const op of OPERATIONS) {
          const fits = OPERATIONS_OF[type].includes(op);
          const item = { item_type: type, op, payload: PAYLOADS[type] };
          if (fits) await items.enqueue(item);
          else await assert.rejects(items.enqueue(item), { code: "invalid_input", message: /op:/ });
          const insert = test.database.query(
            `insert into unified_queue (queue_id, item_type, op, tenant_id, collection, idempotency_key, payload_json) values ('${type} ${op}', '${type}', '${op}', 't', 'c', '${type} ${op}', '{}')`,
          );
          if (fits) await insert;
          else await assert.rejects(insert, { code: "constraint_violated" });
        }
      }
    });

    it("keeps fields it does not know and names the field that is wrong", async () => {
      const { queue_id: id } = await items.enqueue(
        file("/x", { payload: { file_path: "/x", colour: "red" } }),
      );
      assert.equal((await items.read(id)).payload.colour, "red");
      const wrong: [NewItem, RegExp][] = [
        [file("relative/path"), /payload\.file_path: give an absolute path/],
        [
          { item_type: "folder", op: "scan", payload: { folder_path: "/a", recursive: "yes" } },
          /payload\.recursive/,
        ],
        [
          { item_type: "folder", op: "scan", payload: { folder_path: "/a", patterns: [1] } },
          /payload\.patterns\.0/,
        ],
        [{ item_type: "content", op: "ingest", payload: {} }, /payload\.content/],
        [file("/x", { priority: 11 }), /priority/],
        [file("/x", { tenant_id: "" }), /tenant_id/],
        [file("/x\u0000"), /NUL/],
      ];
      for (const [item, message] of wrong)
        await assert.rejects(items.enqueueMany([file("/fine"), item]), { code: "invalid_input", message });
      assert.equal((await items.list()).items.length, 1);
    });

    it("the same key while it waits: newest operation and payload win, highest priority stays", async () => {
      const first = await items.enqueue(file("/x", { priority: 8 }));
      const second = await items.enqueue(
        file("/x", { op: "update", priority: 3, payload: { file_path: "/x", n: 2 } }),
      );
      assert.deepEqual(
        [first.verdict, second.verdict, second.queue_id],
        ["queued", "merged", first.queue_id],
      );
      const item = await items.read(first.queue_id);
      assert.deepEqual([item.op, item.payload.n, item.priority], ["update", 2, 8]);
    });

    it("the same key while it is worked on: it runs once more afterwards, with what came last", async () => {
      const { queue_id: id } = await items.enqueue(file("/x"));
      const [running] = await claim();
      const again = await items.enqueue(file("/x", { op: "update", payload: { file_path: "/x", n: 2 } }));
      await items.enqueue(file("/x", { op: "delete", priority: 9, payload: { file_path: "/x", n: 3 } }));
      assert.deepEqual([again.verdict, again.queue_id], ["runs_again", id]);
      const during = await items.read(id);
      assert.deepEqual([during.status, during.op, during.payload.n], ["in_progress", "ingest", undefined]);
      assert.deepEqual(await claim(), []);
      await store.settle([{ claim: running!, outcome: done() }]);
      const after = await items.read(id);
      assert.deepEqual(
        [after.status, after.op, after.payload.n, after.priority],
        ["pending", "delete", 3, 9],
      );
      const [second] = await claim();
      await store.settle([{ claim: second!, outcome: done() }]);
      assert.equal((await items.read(id)).status, "done");
      assert.deepEqual(await claim(), []);
    });

    it("what comes while it is worked on stands in the line of the highest priority that it came with", async () => {
      await items.enqueueMany(
        Array.from({ length: 50 }, (_, n) => file(`/bulk/${n}`, { priority: 3, tenant_id: "bulk" })),
      );
      const { queue_id: id } = await items.enqueue(file("/bulk/last", { priority: 3, tenant_id: "bulk" }));
      const running = (await claim(60)).find(({ key }) => key === id)!;
      await items.enqueue(file("/bulk/last", { priority: 10, tenant_id: "bulk" }));
      await items.enqueue(file("/bulk/last", { priority: 3, tenant_id: "bulk" }));
      await items.enqueueMany(
        [1, 2, 3, 4, 5].map((n) => file(`/other/${n}`, { priority: 10, tenant_id: "other" })),
      );
      await store.settle([{ claim: running, outcome: done() }]);
      assert.ok((await claim(3)).some(({ key }) => key === id));
    });

    it("and when that one fails, is rescued or given back, what came last is done next", async () => {
      for (const end of ["failed", "retry", "released", "rescued"] as const) {
        const { queue_id: id } = await items.enqueue(file(`/${end}`));
        const [running] = await claim();
        await items.enqueue(file(`/${end}`, { op: "update" }));
        if (end === "rescued") {
          await store.expireLeases(["w"]);
          await store.rescueStale();
        } else {
          const outcome = {
            failed: failed("no"),
            retry: retry("no", 60_000),
            released: { kind: "released" } as const,
          }[end];
          await store.settle([{ claim: running!, outcome }]);
        }
        const item = await items.read(id);
        assert.deepEqual(
          [item.status, item.op, item.retry_count, item.run_after],
          ["pending", "update", 0, null],
          end,
        );
        const [next] = await claim();
        await store.settle([{ claim: next!, outcome: done() }]);
      }
    });

    it("the same key when it is done or failed: it is queued again, with fresh counters", async () => {
      for (const outcome of [done(), failed("it broke")]) {
        const { queue_id: id } = await items.enqueue(file("/x"));
        const [task] = await claim();
        await store.settle([{ claim: task!, outcome }]);
        const again = await items.enqueue(file("/x", { op: "update" }));
        assert.deepEqual([again.verdict, again.queue_id], ["requeued", id]);
        const item = await items.read(id);
        assert.deepEqual(
          [item.status, item.op, item.retry_count, item.completed_at],
          ["pending", "update", 0, null],
        );
        const [next] = await claim();
        await store.settle([{ claim: next!, outcome: done() }]);
      }
    });

    it("sixteen producers of one key make one item", async () => {
      const others = Array.from({ length: 15 }, () => openDatabase(test.url));
      const queues = itemQueues();
      const producers = [items, ...others.map((database) => new Items(database, queues))];
      const verdicts = (
        await Promise.all(
          producers.map(async (producer, n) => {
            const told: string[] = [];
            for (let round = 0; round < 10; round++)
              told.push(
                (await producer.enqueue(file("/same", { payload: { file_path: "/same", n } }))).verdict,
              );
            return told;
          }),
        )
      ).flat();
      for (const database of others) await database.close();
      assert.equal(verdicts.filter((verdict) => verdict === "queued").length, 1);
      assert.equal(verdicts.filter((verdict) => verdict === "merged").length, 159);
      assert.equal((await items.list()).items.length, 1);
    });

    it("sixteen producers at once are told the same of one that runs, and one of them requeues one that ended", async () => {
      const others = Array.from({ length: 15 }, () => openDatabase(test.url));
      const producers = [items, ...others.map((database) => new Items(database, itemQueues()))];
      const all = () => Promise.all(producers.map((producer) => producer.enqueue(file("/same"))));
      const told = async () => (await all()).map(({ verdict }) => verdict).toSorted();
      await items.enqueue(file("/same"));
      const [running] = await claim();
      assert.deepEqual(await told(), Array(16).fill("runs_again"));
      await store.settle([{ claim: running!, outcome: done() }]);
      const [again] = await claim();
      await store.settle([{ claim: again!, outcome: failed("broken") }]);
      assert.deepEqual(await told(), [...Array(15).fill("merged"), "requeued"]);
      assert.equal((await claim(5)).length, 1);
      for (const database of others) await database.close();
    });

    it("the design's own statement finds what is next", async () => {
      for (const priority of [3, 9, 5]) await items.enqueue(file(`/${priority}`, { priority }));
      const rows = await test.database.query(
        "SELECT * FROM unified_queue WHERE status='pending' ORDER BY priority DESC, created_at ASC LIMIT 2",
      );
      assert.deepEqual(
        rows.map((row) => row.priority),
        [9, 5],
      );
    });

    it("two tenants with the same file have an item each", async () => {
      const one = await items.enqueue(file("/x", { tenant_id: "a" }));
      const other = await items.enqueue(file("/x", { tenant_id: "b" }));
      assert.notEqual(one.queue_id, other.queue_id);
      assert.equal(one.idempotency_key, other.idempotency_key);
    });

    it("takes higher priorities first", async () => {
      for (const priority of [0, 10, 5, 3, 9]) await items.enqueue(file(`/${priority}`, { priority }));
      assert.deepEqual(
        (await claim(10)).map(({ row }) => row.priority),
        [10, 9, 5, 3, 0],
      );
    });

    it("lets tenants take turns: one item is served next, whatever the others have waiting", async () => {
      const many = Array.from({ length: 2_000 }, (_, n) => file(`/many/${n}`, { tenant_id: "many" }));
      await items.enqueueMany(many);
      const firsts = await claim(100);
      await store.settle(firsts.map((task) => ({ claim: task, outcome: done() })));
      await items.enqueueMany([1, 2, 3].map((n) => file(`/one/${n}`, { tenant_id: "one" })));
      const tenants = (await claim(10)).map(({ row }) => row.tenant_id);
      assert.deepEqual(tenants.filter((tenant) => tenant === "one").length, 3);
      assert.equal(tenants.indexOf("one") <= 1, true);
      // The other one goes on too.
      assert.ok(tenants.includes("many"));
      await items.enqueue(file("/new/1", { tenant_id: "newcomer" }));
      assert.ok((await claim(3)).some(({ row }) => row.tenant_id === "newcomer"));
    });

    it("a tenant that was served long before does not wait for one that has just come", async () => {
      for (let round = 0; round < 20; round++) {
        await items.enqueue(file(`/old/${round}`, { tenant_id: "regular" }));
        const [task] = await claim();
        await store.settle([{ claim: task!, outcome: done() }]);
      }
      await items.enqueueMany(
        Array.from({ length: 50 }, (_, n) => file(`/bulk/${n}`, { tenant_id: "bulk" })),
      );
      await items.enqueue(file("/old/last", { tenant_id: "regular" }));
      assert.ok((await claim(3)).some(({ row }) => row.tenant_id === "regular"));
    });

    it("machines have an item each for the same path, and tenants take turns among those a machine may take", async () => {
      const database = openDatabase(test.url);
      const queues = itemQueues({ machine: "here" });
      for (const queue of Object.values(queues)) await prepareQueue(database, queue);
      const [named, own] = [new Items(database, queues), openQueue(database, queues.items)];
      const at = (seen_on: string | undefined, path: string, tenant_id: string) =>
        file(path, { tenant_id, payload: { file_path: path, seen_on } });
      try {
        await named.enqueueMany(["here", "there", undefined].map((machine) => at(machine, "/x", "one")));
        assert.equal((await named.list()).items.length, 3);
        const bulk = Array.from({ length: 200 }, (_, n) => at(undefined, `/bulk/${n}`, "bulk"));
        await named.enqueueMany([...bulk, ...bulk.map((_, n) => at("there", `/far/${n}`, "far"))]);
        const firsts = await own.claim({ worker: "w", limit: 100 });
        assert.equal(firsts.filter(({ row }) => row.tenant_id === "one").length, 2);
        assert.ok(firsts.every(({ row }) => JSON.parse(row.payload_json).seen_on !== "there"));
        await own.settle(firsts.map((task) => ({ claim: task, outcome: done() })));
        // The first in a line of its own, and yet not behind all that wait in the other.
        await named.enqueue(at("here", "/new", "newcomer"));
        const tenants = (await own.claim({ worker: "w", limit: 3 })).map(({ row }) => row.tenant_id);
        assert.deepEqual(tenants.toSorted(), ["bulk", "bulk", "newcomer"]);
      } finally {
        await database.close();
      }
    });

    it("the oldest item is always next for those who look after the old ones", async () => {
      await items.enqueue(file("/patient", { priority: 0 }));
      await items.enqueueMany(Array.from({ length: 20 }, (_, n) => file(`/${n}`, { priority: 10 })));
      const [task] = await oldest.claim({ worker: "w", limit: 1 });
      assert.equal(task!.row.priority, 0);
      assert.equal((await claim(100)).length, 20);
    });

    it("a scan that was cancelled, or taken over, puts nothing into line any more", async () => {
      const { queue_id: id } = await items.enqueue({
        item_type: "folder",
        op: "scan",
        payload: PAYLOADS.folder,
      });
      const [task] = await claim();
      const child = [file("/a/1", { parent_id: id })];
      assert.equal((await items.enqueueMany(child, { claim: task! })).length, 1);
      await items.cancel(id);
      await assert.rejects(items.enqueueMany([file("/a/2")], { claim: task! }), { code: "lease_lost" });
      assert.deepEqual(
        (await items.list()).items.map(({ payload }) => payload.file_path),
        ["/a/1"],
      );
    });

    it("those who cancel are heard by both lanes", async () => {
      const { queue_id: id } = await items.enqueue(file("/x"));
      const heard = Promise.withResolvers<void>();
      const end = test.database.subscribe("items.oldest!", () => heard.resolve());
      await oldest.claim({ worker: "w", limit: 1 });
      assert.equal(await items.cancel(id), "aborted");
      await heard.promise;
      end();
    });

    it("a tenant's items go, those that run before those that wait", async () => {
      await items.enqueueMany(
        Array.from({ length: 30 }, (_, n) => file(`/${n}`, { tenant_id: n % 3 ? "going" : "staying" })),
      );
      await claim(10);
      assert.equal(await items.cancelAll({ tenant_id: "going" }, { except: "nobody" }), 20);
      assert.deepEqual(
        new Set((await items.list()).items.map((item) => item.tenant_id)),
        new Set(["staying"]),
      );
    });

    it("a family is counted as a whole, and nobody in it twice", async () => {
      const [library, alone] = await items.enqueueMany([
        { item_type: "library", op: "ingest", payload: PAYLOADS.library },
        file("/alone"),
      ]);
      const folder = await items.enqueue({
        item_type: "folder",
        op: "ingest",
        payload: PAYLOADS.folder,
        parent_id: library!.queue_id,
      });
      const files = await items.enqueueMany(
        [1, 2, 3].map((n) => file(`/a/${n}`, { parent_id: folder.queue_id, priority: 9 })),
      );
      const ids = [library!.queue_id, files[0]!.queue_id, alone!.queue_id];
      const tasks = await claim(2);
      await store.settle([
        { claim: tasks[0]!, outcome: done({ result_json: '{"change":"added"}' }) },
        { claim: tasks[1]!, outcome: failed("no") },
      ]);
      const { pending, inProgress, done: ended, failed: bad } = await items.progress(ids);
      assert.deepEqual([pending, inProgress, ended, bad], [4, 0, 1, 1]);
      const family = await items.family(ids);
      assert.deepEqual([family.length, family[0]!.status], [6, "failed"]);
      assert.deepEqual(await items.outcome(ids), {
        changes: { added: 1 },
        skipped: 0,
        removed: 0,
        failed: 1,
      });
    });

    it("what an item came to the last time does not stand while it waits again", async () => {
      const { queue_id: id } = await items.enqueue(file("/x"));
      const [task] = await claim();
      assert.equal(await items.noteDocument(task!, "00000000-0000-4000-8000-000000000000"), true);
      await store.settle([{ claim: task!, outcome: done({ result_json: '{"removed":1}' }) }]);
      await items.enqueue(file("/x"));
      const item = await items.read(id);
      assert.deepEqual([item.document_id, item.result], [null, null]);
      assert.equal(await items.noteDocument(task!, "00000000-0000-4000-8000-000000000000"), false);
    });

    it("one path has one item, however it is written", async () => {
      const keys = await items.enqueueMany(
        ["/a/b", "/a//b", "/a/./b/", "/a/c/../b"].map((path) => file(path)),
      );
      assert.equal(new Set(keys.map(({ queue_id: id }) => id)).size, 1);
    });

    it("is listed by filter, retried, cancelled and pruned", async () => {
      const made = await items.enqueueMany([
        file("/1", { tenant_id: "a", collection: "x" }),
        file("/2", { tenant_id: "b", collection: "x" }),
        { item_type: "content", op: "ingest", payload: PAYLOADS.content, tenant_id: "a", collection: "y" },
      ]);
      const count = async (filter: object) => (await items.list(filter)).items.length;
      assert.deepEqual(
        [
          await count({ tenant_id: "a" }),
          await count({ collection: "x" }),
          await count({ item_type: "content" }),
        ],
        [2, 2, 1],
      );
      const page = await items.list({ limit: 2 });
      assert.equal((await items.list({ limit: 2, after: page.next })).items.length, 1);
      assert.equal(await items.cancel(made[2]!.queue_id), "cancelled");
      await assert.rejects(items.read(made[2]!.queue_id), { code: "not_found" });
      const tasks = await claim(2);
      await store.settle(tasks.map((task) => ({ claim: task, outcome: failed("broken") })));
      await assert.rejects(items.cancel(made[0]!.queue_id), { code: "too_late" });
      const failure = (await items.list({ status: "failed" })).items[0]!;
      assert.deepEqual([failure.error_message, typeof failure.last_error_at], ["broken", "string"]);
      assert.equal((await items.retry(made[0]!.queue_id)).status, "pending");
      await assert.rejects(items.retry(made[0]!.queue_id), { code: "too_late" });
      assert.equal(await items.retryFailed({ tenant_id: "b" }), 1);
      const again = await claim(2);
      await store.settle(again.map((task) => ({ claim: task, outcome: done({ result_json: "{}" }) })));
      assert.equal(await items.prune({ doneOlderThanMs: 60_000 }), 0);
      assert.equal(await items.prune({ doneOlderThanMs: 0 }), 2);
    });

    it("what is claimed or comes while things are being taken back is taken back too", async () => {
      const later = { item_type: "folder", op: "delete", payload: { folder_path: "/f" } } as const;
      for (const takeBack of [
        async (from: Items, id: string) => {
          for await (const open of from.cancelAt("/f", { before: id })) assert.ok(open);
        },
        async (from: Items, id: string) => {
          await from.cancelAll({ tenant_id: "default" }, { except: id });
        },
      ]) {
        await items.enqueueMany([file("/f/1"), file("/f/2")]);
        const { queue_id: id } = await items.enqueue({ ...later, priority: 0 });
        // After the first look an item is claimed, and a scan that runs puts another file into line.
        const events = [
          async () => {
            await claim(1);
            await items.enqueue(file("/f/3", { parent_id: id }));
          },
        ];
        const eventful = new Proxy(test.database, {
          get: (target, name) =>
            name === "query"
              ? async (...asked: Parameters<typeof target.query>) => {
                  const rows = await target.query(...asked);
                  const [statement] = asked;
                  if (typeof statement !== "string" && /^items\.(open|before)/.test(statement.name))
                    await events.shift()?.();
                  return rows;
                }
              : bound(target, name),
        });
        await takeBack(new Items(eventful, itemQueues()), id);
        assert.deepEqual(
          (await items.list()).items.map((item) => item.queue_id),
          [id],
        );
        await items.cancel(id);
      }
    });
  });
}
