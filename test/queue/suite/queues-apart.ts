import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import {
  defineQueue,
  done,
  failed,
  isQuarryError,
  openQueue,
  prepareQueue,
  type QueueDeclaration,
  retry,
} from "../../../src/index.ts";
import { type Fixture, mail, pageOcr, pageVector, rowOf, sms, steps } from "../fixture.ts";

const smsRemoved = defineQueue({ ...(sms as QueueDeclaration), results: [], whenDone: "remove" });
const stepsRemoved = defineQueue({ ...(steps as QueueDeclaration), results: [], whenDone: "remove" });

const BARE = {
  name: "bare",
  table: "bare",
  key: { column: "id", type: "integer" },
  columns: {
    status: "status",
    token: "lease_token",
    lease: "lease_until",
    runAfter: "run_after",
    attempts: "attempts",
    error: "error",
  },
} as const;

export function testQueuesApart(fixture: () => Fixture): void {
  describe("several queues on one table", () => {
    beforeEach(() => fixture().reset());

    it("see only their own rows", async () => {
      const { database, clock } = fixture();
      const [mails, texts] = [openQueue(database, mail), openQueue(database, sms)];
      await mails.enqueue([{ recipient: "m1" }, { recipient: "m2" }]);
      const [text] = await texts.enqueue([{ recipient: "s1" }]);
      assert.deepEqual([...(await texts.countByStatus())], [["pending", 1]]);
      assert.equal((await texts.list()).rows.length, 1);
      const [claim] = await texts.claim({ worker: "w", limit: 10 });
      assert.equal(claim!.row.recipient, "s1");
      clock.advance(60_001);
      assert.deepEqual(await mails.rescueStale(), []);
      assert.deepEqual((await mails.cancel([text!.key])).get(text!.key), "not_found");
      assert.equal((await mails.claim({ worker: "w", limit: 10 })).length, 2);
      assert.equal((await texts.rescueStale()).length, 1);
    });

    it("a claim of one queue cannot be settled in another", async () => {
      const { database } = fixture();
      const [mails, texts] = [openQueue(database, mail), openQueue(database, sms)];
      await mails.enqueue([{ recipient: "m1" }]);
      const [claim] = await mails.claim({ worker: "w", limit: 1 });
      assert.deepEqual(await texts.settle([{ claim: claim!, outcome: done() }]), ["lost"]);
      assert.equal((await texts.extend([claim!])).size, 0);
      assert.deepEqual(await mails.settle([{ claim: claim!, outcome: done() }]), ["done"]);
    });

    it("rows can be removed as they complete, by their holder only", async () => {
      const { database, clock } = fixture();
      for (const keyed of [smsRemoved, stepsRemoved]) {
        const store = openQueue<object>(database, keyed);
        const rows =
          keyed === stepsRemoved
            ? [1, 2, 3].map((n) => ({ entity_type: "w", entity_id: `e${n}` }))
            : [{}, {}, {}];
        await store.enqueue(rows);
        const claims = await store.claim({ worker: "w", limit: 2 });
        assert.deepEqual(await store.settle([{ claim: claims[0]!, outcome: done() }]), ["done"]);
        clock.advance(60_001);
        await store.rescueStale();
        assert.deepEqual(await store.settle([{ claim: claims[1]!, outcome: done() }]), ["lost"]);
        const again = await store.claim({ worker: "w", limit: 3 });
        assert.equal(again.length, 2);
        assert.deepEqual(await store.settle(again.map((claim) => ({ claim, outcome: done() }))), [
          "done",
          "done",
        ]);
        assert.deepEqual([...(await store.countByStatus())], []);
      }
    });

    it("an index that the declaration counts on must be there", async () => {
      const { database } = fixture();
      const declaration = steps as QueueDeclaration;
      const leased = defineQueue({ ...declaration, lease: { index: "nope" } });
      const grouped = defineQueue({ ...declaration, group: { ...steps.group!, index: "nope" } });
      for (const [queue, where] of [
        [leased, "lease.index"],
        [grouped, "group.index"],
      ] as const)
        await assert.rejects(prepareQueue(database, queue), (error) => {
          const expected = `there is no index nope on steps; create it, or leave out ${where}`;
          return isQuarryError(error, "schema_mismatch") && error.message.includes(expected);
        });
      const quote = 'x" drop';
      for (const declared of [{ lease: { index: quote } }, { results: ["note", "note"] }])
        assert.throws(
          () => defineQueue({ ...declaration, ...declared }),
          (error) => isQuarryError(error, "invalid_declaration"),
        );
    });

    it("six columns are enough", async () => {
      const { database, clock } = fixture();
      for (const statuses of [{}, { cancelled: "cancelled", retrying: "retrying" }]) {
        const bare = defineQueue({ ...BARE, statuses });
        await prepareQueue(database, bare);
        const store = openQueue(database, bare);
        const [a, b, c, d] = (await store.enqueue([{}, {}, {}, {}])).map(({ key }) => key);
        const claims = await store.claim({ worker: "w", limit: 3 });
        assert.deepEqual(
          claims.map(({ key }) => key),
          [a, b, c],
        );
        assert.equal((await store.extend(claims)).size, 3);
        const outcomes = [done(), retry("again", 1_000), failed("never")];
        const settlements = claims.map((claim, index) => ({ claim, outcome: outcomes[index]! }));
        assert.deepEqual(await store.settle(settlements), ["done", "retrying", "failed"]);
        clock.advance(1_000);
        assert.equal(await store.promoteDelayed(), 1);
        assert.deepEqual(await store.retry([c!]), [c]);
        const again = await store.claim({ worker: "w", limit: 3 });
        assert.equal(again.length, 3);
        await store.release([again[0]!]);
        clock.advance(60_001);
        assert.equal((await store.rescueStale()).length, 2);
        assert.deepEqual([...(await store.cancel([b!, d!])).values()], ["cancelled", "cancelled"]);
        await database.query("delete from bare");
      }
    });

    it("a row that cannot be read fails alone", async () => {
      const { database } = fixture();
      const mails = openQueue(database, mail);
      await mails.enqueue([
        { recipient: "a", payload: "just a text" },
        { recipient: "b", payload: { n: 1 } },
        { payload: null },
      ]);
      const claims = await mails.claim({ worker: "w", limit: 3 });
      assert.deepEqual(
        claims.map(({ row }) => row.payload),
        ["just a text", { n: 1 }, null],
      );
      await mails.release(claims);
      if (database.dialect.name === "sqlite") {
        await database.query("update messages set payload = '{broken' where recipient = 'a'");
        assert.equal((await mails.claim({ worker: "w", limit: 3 })).length, 2);
        const { rows } = await mails.list({ status: "failed" });
        assert.match(String(rows[0]!.row.error_message), /the row cannot be read/);
      }
    });

    it("a gate keeps a phase shut until the one before is completed", async () => {
      const { database } = fixture();
      const [ocr, vector] = [openQueue(database, pageOcr), openQueue(database, pageVector)];
      await database.query("insert into documents (id) values (1)");
      const [page] = await ocr.enqueue([{ document_id: 1 }]);
      assert.deepEqual(await vector.claim({ worker: "w", limit: 1 }), []);
      const [claim] = await ocr.claim({ worker: "w", limit: 1 });
      assert.deepEqual(await vector.claim({ worker: "w", limit: 1 }), []);
      await ocr.settle([{ claim: claim!, outcome: done({ page_file_path: "p_nohf.md" }) }]);
      const [next] = await vector.claim({ worker: "w", limit: 1 });
      assert.equal(next!.key, page!.key);
      assert.equal((await rowOf(database, "pages", page!.key)).page_file_path, "p_nohf.md");
    });

    it("the gate is also a check of the table", async () => {
      const { database } = fixture();
      await database.query("insert into documents (id) values (1)");
      const [page] = await openQueue(database, pageOcr).enqueue([{ document_id: 1 }]);
      await assert.rejects(
        database.query(`update pages set vector_status = 'processing' where id = '${page!.key}'`),
        (error) => isQuarryError(error, "constraint_violated"),
      );
    });

    it("phases of one row have tokens, leases and attempts of their own", async () => {
      const { database, clock } = fixture();
      const [ocr, vector] = [openQueue(database, pageOcr), openQueue(database, pageVector)];
      await database.query("insert into documents (id) values (1)");
      const [page] = await ocr.enqueue([{ document_id: 1 }]);
      const [first] = await ocr.claim({ worker: "w", limit: 1 });
      await ocr.settle([{ claim: first!, outcome: retry("x", 0) }]);
      const [second] = await ocr.claim({ worker: "w", limit: 1 });
      await ocr.settle([{ claim: second!, outcome: done() }]);
      await vector.claim({ worker: "w2", limit: 1 });
      clock.advance(60_001);
      assert.deepEqual(await ocr.rescueStale(), []);
      assert.equal((await vector.rescueStale()).length, 1);
      const row = await rowOf(database, "pages", page!.key);
      assert.deepEqual(
        [row.ocr_status, row.ocr_retry_count, row.vector_status, row.vector_retry_count],
        ["completed", 1, "pending", 1],
      );
    });

    it("what failed is tried again before anything new, those with fewer failures first", async () => {
      const { database } = fixture();
      const ocr = openQueue(database, pageOcr);
      await database.query("insert into documents (id) values (1)");
      await ocr.enqueue([1, 2, 3, 4].map((page_number) => ({ document_id: 1, page_number })));
      const fail = async (count: number) => {
        const claims = await ocr.claim({ worker: "w", limit: count });
        await ocr.settle(claims.map((claim) => ({ claim, outcome: retry("x", 0) })));
      };
      await fail(2);
      await fail(1);
      const claims = await ocr.claim({ worker: "w", limit: 4 });
      assert.deepEqual(
        claims.map((claim) => claim.row.page_number),
        [2, 1, 3, 4],
      );
    });
  });
}
