import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { isQuarryError, openQueue, type QueueStore } from "../../../src/index.ts";
import { chunks, type Fixture, type MailPayload, mail, rowOf, sms, steps } from "../fixture.ts";

export function testEnqueue(fixture: () => Fixture): void {
  describe("enqueueing", () => {
    let store: QueueStore<MailPayload>;
    beforeEach(async () => {
      await fixture().reset();
      store = openQueue(fixture().database, mail);
    });

    it("nothing is nothing", async () => {
      assert.deepEqual(await store.enqueue([]), []);
    });

    it("rows of different columns go together, in the order of the call, with the table's defaults", async () => {
      const enqueued = await store.enqueue([
        { recipient: "a", priority: 3 },
        { recipient: "b" },
        { recipient: "c", priority: 3, urgency: "high" },
        {},
      ]);
      const rows = await Promise.all(enqueued.map(({ key }) => rowOf(fixture().database, "messages", key)));
      assert.deepEqual(
        rows.map((row) => [row.recipient, row.priority, row.urgency, row.kind]),
        [
          ["a", 3, "normal", "mail"],
          ["b", 0, "normal", "mail"],
          ["c", 3, "high", "mail"],
          [null, 0, "normal", "mail"],
        ],
      );
    });

    it("a key of the caller's is kept", async () => {
      const id = "0198c0de-0000-7000-8000-00000000abcd";
      assert.deepEqual(await store.enqueue([{ id, recipient: "a" }]), [{ key: id, isNew: true }]);
    });

    it("columns that are asked for come back as they were written, of new rows only", async () => {
      const returning = ["recipient", "priority", "status"];
      const [id, other] = ["0198c0de-0000-7000-8000-00000000abcd", "0198c0de-0000-7000-8000-00000000abce"];
      const [first] = await store.enqueue([{ id, recipient: "a" }], { returning });
      const { recipient, priority, status } = first!.row!;
      assert.deepEqual([recipient, priority, status], ["a", 0, "pending"]);
      const many = await store.enqueue([{ id: other, recipient: "b", priority: 2 }, { recipient: "c" }], {
        returning,
      });
      assert.deepEqual(
        many.map(({ row }) => [row?.recipient, row?.priority]),
        [
          ["b", 2],
          ["c", 0],
        ],
      );
    });

    it("keys made by the database come back in order", async () => {
      const rows = Array.from({ length: 50 }, (_unused, position) => ({
        entity_type: "w",
        entity_id: `e${position}`,
        position,
      }));
      const keys = (await openQueue(fixture().database, steps).enqueue(rows)).map(({ key }) => Number(key));
      assert.deepEqual(
        keys,
        [...keys].sort((a, b) => a - b),
      );
      assert.equal((await rowOf(fixture().database, "steps", keys[7]!)).position, 7);
    });

    it("JSON, bytes and text come back as they went in", async () => {
      const payload = { text: "ü \\u0000 \"quoted\" 'single' \n", list: [1, 2.5, true, null, { deep: [] }] };
      const bytes = Buffer.from([0, 1, 127, 128, 255]);
      const [first] = await store.enqueue([{ recipient: "x'); drop table messages; --", payload, bytes }]);
      const [claim] = await store.claim({ worker: "w", limit: 1 });
      assert.deepEqual(claim!.row, { recipient: "x'); drop table messages; --", payload });
      const row = await rowOf(fixture().database, "messages", first!.key);
      assert.deepEqual(Buffer.from(row.bytes as Uint8Array), Buffer.from(bytes));
    });

    it("10,000 rows in one call are all there, in order", async () => {
      const rows = Array.from({ length: 10_000 }, (_unused, n) => ({ recipient: `r${n}` }));
      const enqueued = await store.enqueue(rows);
      assert.equal(new Set(enqueued.map(({ key }) => key)).size, 10_000);
      const claims = await store.claim({ worker: "w", limit: 3 });
      assert.deepEqual(
        claims.map((claim) => claim.row.recipient),
        ["r0", "r1", "r2"],
      );
    });

    it("a call is all or nothing", async () => {
      const rows = [{ recipient: "good" }, { recipient: "bad", priority: 11 }];
      await assert.rejects(store.enqueue(rows), (error) => isQuarryError(error, "constraint_violated"));
      assert.deepEqual([...(await store.countByStatus())], []);
    });

    it("a delay keeps rows away until they are due", async () => {
      await store.enqueue([{ recipient: "later" }], { delayMs: 30_000 });
      assert.deepEqual(await store.claim({ worker: "w", limit: 1 }), []);
      assert.equal(await store.nextDueMs(), 30_000);
      fixture().clock.advance(30_000);
      assert.equal(await store.promoteDelayed(), 1);
      assert.equal((await store.claim({ worker: "w", limit: 1 })).length, 1);
    });

    it("a NUL character or half a surrogate is refused with a hint, and nothing is inserted", async () => {
      for (const recipient of ["a\u0000b", "a\ud800b", "a\udc00b"]) {
        await assert.rejects(
          store.enqueue([{ recipient: "fine" }, { recipient }]),
          (error) => isQuarryError(error, "invalid_input") && /NUL character or half/.test(error.message),
        );
        await assert.rejects(store.enqueue([{ payload: { deep: [recipient] } }]), (e) =>
          isQuarryError(e, "invalid_input"),
        );
      }
      await store.enqueue([{ recipient: "a full pair \ud83d\ude00 and a written \\u0000" }]);
      assert.deepEqual([...(await store.countByStatus())], [["pending", 1]]);
    });

    it("a row that is too large is refused with a hint", async () => {
      await assert.rejects(
        store.enqueue([{ recipient: "x".repeat(9 * 1024 * 1024) }]),
        (error) => isQuarryError(error, "invalid_input") && /enqueue a reference/.test(error.message),
      );
    });

    it("columns of the engine and names that are none are refused", async () => {
      for (const row of [
        { status: "completed" },
        { lease_token: 5 },
        { attempts: 2 },
        { "x; drop table": 1 },
        { Upper: 1 },
      ]) {
        await assert.rejects(store.enqueue([row]), (error) => isQuarryError(error, "invalid_input"));
      }
      await assert.rejects(store.enqueue([{ no_such_column: 1 }]), (error) =>
        isQuarryError(error, "schema_mismatch"),
      );
    });

    it("a grouped row needs its group", async () => {
      const grouped = openQueue(fixture().database, steps);
      await assert.rejects(grouped.enqueue([{ entity_type: "w" }]), (error) =>
        isQuarryError(error, "invalid_input"),
      );
    });

    it("the same key again is not inserted; the caller is told which row it is", async () => {
      const [first] = await store.enqueue([{ recipient: "a", idempotency_key: "k1" }]);
      const again = await store.enqueue([
        { recipient: "b", idempotency_key: "k1" },
        { recipient: "c", idempotency_key: "k2" },
        { recipient: "d", idempotency_key: "k2" },
      ]);
      assert.deepEqual(again[0], { key: first!.key, isNew: false });
      assert.equal(again[1]!.isNew, true);
      assert.deepEqual(again[2], { key: again[1]!.key, isNew: false });
      assert.equal((await rowOf(fixture().database, "messages", first!.key)).recipient, "a");
      assert.deepEqual([...(await store.countByStatus())], [["pending", 2]]);
    });

    it("16 producers with the same keys insert each once", async () => {
      const rows = Array.from({ length: 20 }, (_unused, n) => ({
        recipient: `r${n}`,
        idempotency_key: `key-${n}`,
      }));
      const calls = await Promise.all(Array.from({ length: 16 }, () => store.enqueue(rows)));
      assert.equal(calls.flat().filter(({ isNew }) => isNew).length, 20);
      for (const [n, { key }] of calls[0]!.entries()) assert.ok(calls.every((call) => call[n]!.key === key));
    });

    it("within a transaction rows appear with it or not at all", async () => {
      const { database } = fixture();
      const attempt = database.transaction(async (transaction) => {
        await store.within(transaction).enqueue([{ recipient: "a" }]);
        throw new Error("changed my mind");
      });
      await assert.rejects(attempt, /changed my mind/);
      assert.deepEqual([...(await store.countByStatus())], []);
      await database.transaction((transaction) => store.within(transaction).enqueue([{ recipient: "a" }]));
      assert.deepEqual([...(await store.countByStatus())], [["pending", 1]]);
    });

    it("priorities: ranked words first, then numbers, then age", async () => {
      await store.enqueue([
        { recipient: "5", urgency: "other" },
        { recipient: "4" },
        { recipient: "3", priority: 9 },
        { recipient: "2", urgency: "high" },
        { recipient: "1", urgency: "urgent" },
      ]);
      const claims = await store.claim({ worker: "w", limit: 5 });
      assert.deepEqual(
        claims.map((claim) => claim.row.recipient),
        ["1", "2", "3", "4", "5"],
      );
    });

    it("a wake-up reaches a listener for every way rows become claimable", async () => {
      const { database } = fixture();
      let woken = 0;
      const unsubscribe = database.subscribe(sms.name, () => woken++);
      const texts = openQueue(database, sms);
      const since = async (work: () => Promise<unknown>) => {
        const before = woken;
        await work();
        return woken > before;
      };
      assert.ok(await since(() => texts.enqueue([{ recipient: "a" }])), "enqueue");
      const [claim] = await texts.claim({ worker: "w", limit: 1 });
      assert.ok(await since(() => texts.release([claim!])), "release");
      await texts.claim({ worker: "w", limit: 1 });
      fixture().clock.advance(60_001);
      assert.ok(await since(() => texts.rescueStale()), "rescue");
      unsubscribe();
    });

    it("children of a finished parent make it pending again", async () => {
      const { database } = fixture();
      await database.query("insert into books (id, status) values (1, 'completed')");
      await database.query("insert into sections (id, book_id, status) values (1, 1, 'completed')");
      await openQueue(database, chunks).enqueue([{ section_id: 1 }]);
      assert.equal((await rowOf(database, "sections", 1)).status, "pending");
      assert.equal((await rowOf(database, "books", 1)).status, "pending");
    });
  });
}
