import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { done, failed, isQuarryError, released, retry } from "../../../src/index.ts";
import type { Fixture } from "../fixture.ts";
import { Probe, SHAPES } from "./shapes.ts";

/** What every queue must do, whatever its words, its leases and its way of counting. */
export function testLifecycle(fixture: () => Fixture): void {
  for (const shape of SHAPES) {
    describe(`the life of a row in ${shape.queue.name}`, () => {
      let p: Probe;
      const words = shape.queue.statuses;
      const retryWord = words.retrying;

      beforeEach(async () => {
        await fixture().reset();
        p = new Probe(fixture(), shape);
      });

      it("is pending when enqueued, without lease, attempts or error", async () => {
        const [key] = await p.enqueue();
        const view = await p.view(key!);
        assert.equal(view.status, words.pending);
        assert.deepEqual(
          [view.attempts, view.error, view.lease, view.worker, view.finishedAt],
          [0, null, null, null, null],
        );
      });

      it("is claimed with its payload, a token and the number of the attempt", async () => {
        const [key] = await p.enqueue();
        const before = (await p.view(key!)).token;
        const claim = await p.claimOne();
        assert.deepEqual([claim.key, claim.token, claim.attempt, claim.attemptsMax], [key, before + 1, 1, 3]);
        assert.deepEqual(Object.keys(claim.row).sort(), [...shape.queue.reads].sort());
        const view = await p.view(key!);
        assert.equal(view.status, words.running);
        assert.equal(view.worker, "w1");
        assert.equal(view.token, claim.token);
        assert.notEqual(view.lease, null);
        assert.equal(view.attempts, p.attempts({ failures: 0, isTrying: true }));
      });

      it("is claimed by one worker only", async () => {
        await p.enqueue(5);
        const claims = await Promise.all(["a", "b", "c", "d"].map((worker) => p.claim(3, worker)));
        const keys = claims.flat().map((claim) => claim.key);
        assert.equal(keys.length, 5);
        assert.equal(new Set(keys).size, 5);
      });

      it("a claim takes no more than asked for, and nothing from an empty queue", async () => {
        assert.deepEqual(await p.claim(10), []);
        await p.enqueue(5);
        assert.equal((await p.claim(3)).length, 3);
        assert.equal((await p.claim(3)).length, 2);
        assert.equal((await p.claim(3)).length, 0);
      });

      it("rows enqueued together are claimed in that order", async () => {
        const keys = await p.enqueue(20);
        assert.deepEqual(
          (await p.claim(20)).map((claim) => claim.key),
          keys,
        );
      });

      it("older rows come first", async () => {
        const first = await p.enqueue(2);
        p.tick(5);
        const second = await p.enqueue(2);
        assert.deepEqual(
          (await p.claim(4)).map((claim) => claim.key),
          [...first, ...second],
        );
      });

      it("refuses a claim of no rows or of too many", async () => {
        for (const limit of [0, -1, 1.5, 10_001, Number.NaN]) {
          await assert.rejects(p.claim(limit), (error) => isQuarryError(error, "invalid_input"));
        }
      });

      it("done is the end: no lease, no error, never claimed again", async () => {
        const [key] = await p.enqueue();
        const claim = await p.claimOne();
        assert.deepEqual(await p.store.settle([{ claim, outcome: done() }]), ["done"]);
        const view = await p.view(key!);
        assert.equal(view.status, words.done);
        assert.deepEqual([view.lease, view.error, view.runAfter], [null, null, null]);
        assert.notEqual(view.finishedAt, null);
        assert.equal(view.attempts, p.attempts({ failures: 0, isTrying: true }));
        p.tick(10 * 60_000);
        assert.deepEqual(await p.store.rescueStale(), []);
        assert.deepEqual(await p.claim(10), []);
      });

      it("a retry without delay can be claimed at once, by its next number", async () => {
        const [key] = await p.enqueue();
        const claim = await p.claimOne();
        assert.deepEqual(await p.store.settle([{ claim, outcome: retry("no luck", 0) }]), ["retrying"]);
        const view = await p.view(key!);
        assert.equal(view.status, retryWord);
        assert.equal(view.error, "no luck");
        assert.equal(view.attempts, 1);
        assert.deepEqual([view.lease, view.worker, view.finishedAt], [null, null, null]);
        const again = await p.claimOne("w2");
        assert.deepEqual([again.key, again.attempt, again.token], [key, 2, claim.token + 1]);
      });

      it("a delayed retry stays away until it is due and was promoted", async () => {
        const [key] = await p.enqueue();
        await p.store.settle([{ claim: await p.claimOne(), outcome: retry("later", 2_000) }]);
        assert.deepEqual(await p.claim(1), []);
        assert.equal(await p.store.nextDueMs(), 2_000);
        p.tick(1_999);
        assert.equal(await p.store.promoteDelayed(), 0);
        assert.deepEqual(await p.claim(1), []);
        p.tick(1);
        assert.equal(await p.store.nextDueMs(), 0);
        assert.equal(await p.store.promoteDelayed(), 1);
        assert.equal(await p.store.nextDueMs(), undefined);
        assert.equal((await p.claimOne()).key, key);
      });

      it("without a delay of its own a retry takes the queue's: 5 s, then 10 s", async () => {
        await p.enqueue();
        await p.store.settle([{ claim: await p.claimOne(), outcome: retry("first") }]);
        assert.equal(await p.store.nextDueMs(), 5_000);
        p.tick(5_000);
        await p.store.promoteDelayed();
        await p.store.settle([{ claim: await p.claimOne(), outcome: retry("second") }]);
        assert.equal(await p.store.nextDueMs(), 10_000);
      });

      it("the last attempt that fails is the end, with its reason", async () => {
        const [key] = await p.enqueue();
        const verdicts = [];
        for (const reason of ["one", "two", "three"]) {
          verdicts.push(
            ...(await p.store.settle([{ claim: await p.claimOne(), outcome: retry(reason, 0) }])),
          );
        }
        assert.deepEqual(verdicts, ["retrying", "retrying", "failed"]);
        const view = await p.view(key!);
        assert.deepEqual([view.status, view.attempts, view.error], [words.failed, 3, "three"]);
        assert.notEqual(view.finishedAt, null);
        p.tick(3_600_000);
        await p.store.promoteDelayed();
        assert.deepEqual(await p.claim(1), []);
      });

      it("failed is the end at once, whatever attempts are left", async () => {
        const [key] = await p.enqueue();
        assert.deepEqual(await p.store.settle([{ claim: await p.claimOne(), outcome: failed("never") }]), [
          "failed",
        ]);
        const view = await p.view(key!);
        assert.deepEqual([view.status, view.error, view.lease], [words.failed, "never", null]);
        assert.deepEqual(await p.claim(1), []);
      });

      it("a release costs no attempt", async () => {
        const [key] = await p.enqueue();
        const claim = await p.claimOne();
        assert.equal(await p.store.release([claim]), 1);
        const view = await p.view(key!);
        assert.deepEqual(
          [view.status, view.attempts, view.lease, view.worker],
          [words.pending, 0, null, null],
        );
        const again = await p.claimOne();
        assert.deepEqual([again.attempt, again.token], [1, claim.token + 1]);
      });

      it("a release with a delay waits for it", async () => {
        await p.enqueue();
        await p.store.settle([{ claim: await p.claimOne(), outcome: released(3_000) }]);
        assert.deepEqual(await p.claim(1), []);
        p.tick(3_000);
        assert.equal(await p.store.promoteDelayed(), 1);
        assert.equal((await p.claimOne()).attempt, 1);
      });

      it("renewing keeps a lease alive past its first end", async () => {
        const [key] = await p.enqueue();
        const claim = await p.claimOne();
        for (let round = 0; round < 3; round++) {
          p.tick(50_000);
          assert.deepEqual([...(await p.store.extend([claim]))], [key]);
          assert.deepEqual(await p.store.rescueStale(), []);
        }
        assert.deepEqual(await p.store.settle([{ claim, outcome: done() }]), ["done"]);
      });

      it("a worker that fell silent loses its row; that costs an attempt and says so", async () => {
        const [key] = await p.enqueue();
        await p.claimOne("gone-worker");
        p.tick(60_001);
        assert.deepEqual(await p.store.rescueStale(), [{ key, isFailed: false }]);
        const view = await p.view(key!);
        assert.deepEqual(
          [view.status, view.attempts, view.lease, view.worker],
          [words.pending, 1, null, null],
        );
        assert.match(view.error!, /gone-worker stopped renewing its lease \(attempt 1 of 3\)/);
        assert.equal((await p.claimOne()).attempt, 2);
      });

      it("a row that kills its workers ends as failed", async () => {
        const [key] = await p.enqueue();
        for (const isFailed of [false, false, true]) {
          await p.claimOne();
          p.tick(60_001);
          assert.deepEqual(await p.store.rescueStale(), [{ key, isFailed }]);
        }
        const view = await p.view(key!);
        assert.deepEqual([view.status, view.attempts], [words.failed, 3]);
        assert.match(view.error!, /attempt 3 of 3/);
        assert.deepEqual(await p.claim(1), []);
      });

      it("rescue takes expired leases only, and as many as asked for", async () => {
        await p.enqueue(4);
        const old = await p.claim(3);
        p.tick(40_000);
        const [young] = await p.claim(1);
        p.tick(20_001);
        const first = await p.store.rescueStale({ limit: 2 });
        const rest = await p.store.rescueStale({ limit: 2 });
        const rescued = [...first, ...rest].map((row) => row.key);
        assert.equal(first.length, 2);
        assert.deepEqual(new Set(rescued), new Set(old.map((claim) => claim.key)));
        assert.equal((await p.view(young!.key)).status, words.running);
      });

      const { column } = shape.queue.lease;
      if (column !== undefined)
        it("a row may have a longer lease of its own", async () => {
          const [row] = await p.shape.rows(p.fixture, 1);
          await p.store.enqueue([{ ...row, [column]: 120_000 }, { ...row, [column]: 1_000 }, { ...row }]);
          const [long, ...others] = await p.claim(3);
          p.tick(60_001);
          const first = (await p.store.rescueStale()).map((rescued) => rescued.key);
          assert.deepEqual(new Set(first), new Set(others.map((claim) => claim.key)));
          await p.store.extend([long!]);
          p.tick(119_000);
          assert.deepEqual(await p.store.rescueStale(), []);
          p.tick(1_001);
          assert.deepEqual(await p.store.rescueStale(), [{ key: long!.key, isFailed: false }]);
        });

      it("rows of a worker that is known to be gone need not wait for their leases", async () => {
        await p.enqueue(2);
        const lost = await p.claimOne("gone");
        const kept = await p.claimOne("alive");
        const isNamed = p.store.queue.columns.worker !== undefined;
        assert.equal(await p.store.expireLeases(["gone", "nobody"]), isNamed ? 1 : 0);
        const rescued = (await p.store.rescueStale()).map((row) => row.key);
        assert.deepEqual(rescued, isNamed ? [lost.key] : []);
        assert.deepEqual(await p.store.extend([kept]), new Set([kept.key]));
        assert.equal(await p.store.expireLeases([]), 0);
      });

      it("a claim is found by its key and token, while it stands", async () => {
        await p.enqueue(2);
        const mine = await p.claimOne("w");
        const other = await p.claimOne("w");
        const tickets = [mine, { ...other, token: other.token - 1 }].map(({ key, token }) => ({
          key,
          token,
        }));
        const found = await p.store.findHeld(tickets);
        assert.deepEqual([...found.keys()], [mine.key]);
        const { attempt, attemptsMax, token } = found.get(mine.key)!;
        assert.deepEqual([attempt, attemptsMax, token], [mine.attempt, mine.attemptsMax, mine.token]);
        await p.store.release([mine]);
        assert.equal((await p.store.findHeld(tickets)).size, 0);
      });

      it("a zombie can neither settle nor renew after its row was rescued", async () => {
        const [key] = await p.enqueue();
        const zombie = await p.claimOne("zombie");
        p.tick(60_001);
        await p.store.rescueStale();
        for (const outcome of [done(), retry("x"), failed("x"), released()]) {
          assert.deepEqual(await p.store.settle([{ claim: zombie, outcome }]), ["lost"]);
          assert.deepEqual(await p.store.settle([{ claim: zombie, outcome }], { isRepeat: true }), ["lost"]);
        }
        assert.equal((await p.store.extend([zombie])).size, 0);
        assert.equal((await p.view(key!)).status, words.pending);
      });

      it("a zombie can neither settle nor renew while another worker has the row", async () => {
        const [key] = await p.enqueue();
        const zombie = await p.claimOne("zombie");
        p.tick(60_001);
        await p.store.rescueStale();
        const owner = await p.claimOne("owner");
        assert.ok(owner.token > zombie.token);
        for (const outcome of [done(), retry("x"), failed("x"), released()]) {
          assert.deepEqual(await p.store.settle([{ claim: zombie, outcome }]), ["lost"]);
        }
        assert.equal((await p.store.extend([zombie])).size, 0);
        const view = await p.view(key!);
        assert.deepEqual([view.status, view.worker], [words.running, "owner"]);
        assert.deepEqual(await p.store.settle([{ claim: owner, outcome: done() }]), ["done"]);
      });

      it("a stale and a fresh claim of one row in one call are told apart, in either order", async () => {
        for (const isStaleFirst of [true, false]) {
          const [key] = await p.enqueue();
          const stale = await p.claimOne("stale");
          p.tick(60_001);
          await p.store.rescueStale();
          const fresh = await p.claimOne("fresh");
          const pair = [
            { claim: stale, outcome: failed("stale") },
            { claim: fresh, outcome: done() },
          ];
          const verdicts = await p.store.settle(isStaleFirst ? pair : pair.toReversed());
          assert.deepEqual(verdicts, isStaleFirst ? ["lost", "done"] : ["done", "lost"]);
          assert.equal((await p.view(key!)).status, words.done);
        }
      });

      it("a settlement counts once; repeated, it is recognised as its own", async () => {
        await p.enqueue();
        const claim = await p.claimOne();
        assert.deepEqual(await p.store.settle([{ claim, outcome: done() }]), ["done"]);
        assert.deepEqual(await p.store.settle([{ claim, outcome: done() }]), ["lost"]);
        assert.deepEqual(await p.store.settle([{ claim, outcome: done() }], { isRepeat: true }), ["done"]);
      });

      it("mixed outcomes are settled together and answered in order", async () => {
        await p.enqueue(5);
        const claims = await p.claim(5);
        const outcomes = [retry("r", 0), done(), failed("f"), released(), done()];
        const verdicts = await p.store.settle(claims.map((claim, i) => ({ claim, outcome: outcomes[i]! })));
        assert.deepEqual(verdicts, ["retrying", "done", "failed", "released", "done"]);
        const statuses = await Promise.all(claims.map(async ({ key }) => (await p.view(key)).status));
        assert.deepEqual(statuses, [retryWord, words.done, words.failed, words.pending, words.done]);
      });

      it("an outcome writes the declared result columns and no others", async () => {
        const [key] = await p.enqueue();
        const claim = await p.claimOne();
        const column = shape.queue.results[0]!;
        const value =
          shape.queue.kinds[column] === "json" ? { id: 7, ok: true } : "text with 'quotes' and ümlauts";
        await assert.rejects(p.store.settle([{ claim, outcome: done({ nonsense: 1 }) }]), (error) =>
          isQuarryError(error, "invalid_input"),
        );
        assert.deepEqual(await p.store.settle([{ claim, outcome: done({ [column]: value }) }]), ["done"]);
        assert.deepEqual((await p.view(key!)).row[column], value);
      });

      it("characters that a database cannot store are taken out of results and errors", async () => {
        const [first, second] = await p.enqueue(2);
        const [a, b] = await p.claim(2);
        const column = shape.queue.results[0]!;
        const text = "a\u0000b\ud800c";
        const value = shape.queue.kinds[column] === "json" ? { text } : text;
        await p.store.settle([
          { claim: a!, outcome: done({ [column]: value }) },
          { claim: b!, outcome: failed(text) },
        ]);
        const stored = (await p.view(first!)).row[column];
        assert.deepEqual(typeof stored === "object" ? stored : { text: stored }, { text: "ab\ufffdc" });
        assert.equal((await p.view(second!)).error, "ab\ufffdc");
      });

      it("a very long error is cut", async () => {
        const [key] = await p.enqueue();
        await p.store.settle([{ claim: await p.claimOne(), outcome: failed("ü".repeat(100_000)) }]);
        const { error } = await p.view(key!);
        assert.ok(Buffer.byteLength(error!) <= 8 * 1024 + 8);
        assert.ok(error!.endsWith("ü …"));
      });

      it("what goes along with a settlement is written with it", async () => {
        const [key] = await p.enqueue();
        const claim = await p.claimOne();
        const also = async (transaction: { query(sql: string): Promise<unknown> }) => {
          await transaction.query("insert into books (status) values ('failed')");
        };
        assert.deepEqual(await p.store.settle([{ claim, outcome: { kind: "done", also } }]), ["done"]);
        const books = await fixture().database.query(
          "select count(*) as n from books where status = 'failed'",
        );
        assert.equal(Number(books[0]!.n), 1);
        assert.equal((await p.view(key!)).status, words.done);
      });

      it("what goes along with a settlement is undone with it", async () => {
        const [key] = await p.enqueue();
        const claim = await p.claimOne();
        const also = async (transaction: { query(sql: string): Promise<unknown> }) => {
          await transaction.query("insert into books (status) values ('failed')");
          throw new Error("the effect failed");
        };
        await assert.rejects(
          p.store.settle([{ claim, outcome: { kind: "done", also } }]),
          /the effect failed/,
        );
        const books = await fixture().database.query(
          "select count(*) as n from books where status = 'failed'",
        );
        assert.equal(Number(books[0]!.n), 0);
        assert.equal((await p.view(key!)).status, words.running);
      });

      it("an effect that fails undoes its own settlement alone, and is told when all have ended", async () => {
        await p.enqueue(3);
        const claims = await p.claim(3);
        let ended = 0;
        const slow = async () => {
          await sleep(5);
          ended++;
        };
        const fails = async () => {
          throw new Error("the effect failed");
        };
        const settling = p.store.settle(
          [fails, slow, slow].map((also, i) => ({ claim: claims[i]!, outcome: { kind: "done", also } })),
        );
        await assert.rejects(settling, /the effect failed/);
        assert.equal(ended, 2);
        const statuses = await Promise.all(claims.map(async ({ key }) => (await p.view(key)).status));
        assert.deepEqual(statuses, [words.running, words.done, words.done]);
        const again = claims.map((claim) => ({ claim, outcome: done() }));
        assert.deepEqual(await p.store.settle(again, { isRepeat: true }), ["done", "done", "done"]);
      });

      it("a worker that lost its lease writes nothing along", async () => {
        await p.enqueue();
        const zombie = await p.claimOne();
        p.tick(60_001);
        await p.store.rescueStale();
        let calls = 0;
        const also = async () => {
          calls++;
        };
        assert.deepEqual(await p.store.settle([{ claim: zombie, outcome: { kind: "done", also } }]), [
          "lost",
        ]);
        assert.equal(calls, 0);
      });

      it("cancel: waiting goes, running is taken away, finished is too late", async () => {
        const keys = await p.enqueue(3);
        const [running, finished] = await p.claim(2);
        await p.store.settle([{ claim: finished!, outcome: done() }]);
        const unknown = shape.queue.key.type === "integer" ? 999_999 : "00000000-0000-7000-8000-000000000000";
        const verdicts = await p.store.cancel([keys[2]!, running!.key, finished!.key, unknown]);
        assert.deepEqual([...verdicts.values()], ["cancelled", "aborted", "too_late", "not_found"]);
        for (const key of [keys[2]!, running!.key]) {
          assert.equal(await p.exists(key), words.cancelled !== undefined);
          if (words.cancelled) assert.equal((await p.view(key)).status, words.cancelled);
        }
        assert.equal((await p.store.extend([running!])).size, 0);
        assert.deepEqual(await p.store.settle([{ claim: running!, outcome: done() }]), ["lost"]);
        assert.deepEqual(await p.store.settle([{ claim: running!, outcome: done() }], { isRepeat: true }), [
          "lost",
        ]);
        assert.deepEqual(await p.claim(5), []);
        assert.equal((await p.view(finished!.key)).status, words.done);
      });

      it("cancel takes a delayed retry away, but not one that failed for good", async () => {
        await p.enqueue(2);
        const [delayed, over] = await p.claim(2);
        await p.store.settle([
          { claim: delayed!, outcome: retry("later", 60_000) },
          { claim: over!, outcome: failed("over") },
        ]);
        const verdicts = await p.store.cancel([delayed!.key, over!.key]);
        assert.deepEqual([...verdicts.values()], ["cancelled", "too_late"]);
      });

      it("a manual retry starts the counters anew and keeps the last error to be read", async () => {
        const [key] = await p.enqueue();
        for (let i = 0; i < 3; i++) {
          await p.store.settle([{ claim: await p.claimOne(), outcome: retry("bad luck", 0) }]);
        }
        assert.deepEqual(await p.store.retry([key!]), [key]);
        const view = await p.view(key!);
        assert.deepEqual([view.status, view.attempts, view.error], [words.pending, 0, "bad luck"]);
        assert.equal(view.finishedAt, null);
        const claim = await p.claimOne();
        assert.equal(claim.attempt, 1);
        assert.deepEqual(await p.store.settle([{ claim, outcome: done() }]), ["done"]);
        assert.equal((await p.view(key!)).error, null);
      });

      it("a row whose limit was lowered under it can be retried and cancelled", async () => {
        const { max } = shape.queue.attempts;
        if (typeof max === "number") return;
        const [a, b] = await p.enqueue(2);
        await fixture().database.query(`update ${shape.queue.table} set ${max} = 0`);
        assert.deepEqual(await p.claim(2), []);
        assert.deepEqual(await p.store.retry([a!]), [a]);
        assert.deepEqual([...(await p.store.cancel([b!])).values()], ["cancelled"]);
      });

      it("a manual retry runs a delayed row now", async () => {
        const [key] = await p.enqueue();
        await p.store.settle([{ claim: await p.claimOne(), outcome: retry("later", 3_600_000) }]);
        assert.deepEqual(await p.store.retry([key!]), [key]);
        assert.equal((await p.claimOne()).key, key);
      });

      it("a manual retry leaves waiting and running rows alone, and finished ones unless asked", async () => {
        const keys = await p.enqueue(3);
        const [finished, running] = await p.claim(2);
        await p.store.settle([{ claim: finished!, outcome: done() }]);
        assert.deepEqual(await p.store.retry(keys), []);
        assert.equal((await p.view(running!.key)).token, running!.token);
        assert.deepEqual(await p.store.retry(keys, { includeDone: true }), [finished!.key]);
        assert.deepEqual(await p.store.settle([{ claim: running!, outcome: done() }]), ["done"]);
      });

      it("retries by filter reach every row that matches, over several pages", async () => {
        await p.enqueue(30);
        const claims = await p.claim(30);
        const outcomes = claims.map((claim, i) => ({ claim, outcome: i % 3 === 0 ? done() : failed("x") }));
        await p.store.settle(outcomes);
        assert.equal(await p.store.retryWhere({ status: words.failed }), 20);
        assert.equal((await p.claim(30)).length, 20);
      });

      it("counts by status agree with what was done", async () => {
        await p.enqueue(6);
        const claims = await p.claim(4);
        await p.store.settle([
          { claim: claims[0]!, outcome: done() },
          { claim: claims[1]!, outcome: failed("x") },
        ]);
        const counts = await p.store.countByStatus();
        assert.deepEqual(
          [words.pending, words.running, words.done, words.failed].map((word) => counts.get(word)),
          [2, 2, 1, 1],
        );
        assert.deepEqual([...(await p.store.countByStatus({ status: words.done }))], [[words.done, 1]]);
      });

      it("pages of a list cover every row once, in both directions", async () => {
        const keys: unknown[] = [];
        for (let i = 0; i < 4; i++) {
          keys.push(...(await p.enqueue(5)));
          p.tick(i % 2);
        }
        for (const order of ["oldest", "newest"] as const) {
          const seen: unknown[] = [];
          let after: string | undefined;
          do {
            const page = await p.store.list({ limit: 3, order, ...(after !== undefined && { after }) });
            seen.push(...page.rows.map((row) => row.key));
            after = page.next;
          } while (after !== undefined);
          assert.deepEqual(seen, order === "oldest" ? keys : keys.toReversed());
        }
      });

      it("lists filter by status and by declared columns, and refuse others", async () => {
        const keys = await p.enqueue(4);
        const [claim] = await p.claim(1);
        const running = await p.store.list({ status: words.running });
        assert.deepEqual(
          running.rows.map((row) => row.key),
          [claim!.key],
        );
        const both = await p.store.list({ status: [words.running, words.pending] });
        assert.equal(both.rows.length, 4);
        const one = await p.store.list({ where: { [shape.queue.key.column]: keys[2]! } });
        assert.deepEqual(
          one.rows.map((row) => row.key),
          [keys[2]],
        );
        await assert.rejects(p.store.list({ where: { "id; drop table": 1 } }), (e) =>
          isQuarryError(e, "invalid_input"),
        );
        await assert.rejects(p.store.list({ after: "nonsense" }), (e) => isQuarryError(e, "invalid_input"));
        await assert.rejects(p.store.list({ limit: 0 }), (e) => isQuarryError(e, "invalid_input"));
      });

      it("old finished rows are pruned; waiting, running and young ones stay", async () => {
        await p.enqueue(5);
        const [a, b, running] = await p.claim(3);
        await p.store.settle([
          { claim: a!, outcome: done() },
          { claim: b!, outcome: failed("x") },
        ]);
        p.tick(10_000);
        const [young] = await p.claim(1);
        await p.store.settle([{ claim: young!, outcome: done() }]);
        assert.equal(await p.store.prune({ doneOlderThanMs: 5_000 }), 1);
        assert.equal(await p.exists(a!.key), false);
        assert.equal(await p.store.prune({ doneOlderThanMs: 5_000, failedOlderThanMs: 5_000 }), 1);
        assert.equal(await p.exists(b!.key), false);
        assert.equal(await p.exists(running!.key), true);
        assert.equal(await p.exists(young!.key), true);
        // Its age is 0: the clock did not move since it finished.
        assert.equal(await p.store.prune({ doneOlderThanMs: 0 }), 1);
        assert.equal(await p.exists(young!.key), false);
      });

      it("a key that comes back after its row was deleted is fenced against the old row's worker", async () => {
        const [key] = await p.enqueue();
        const zombie = await p.claimOne("zombie");
        await fixture().database.query(`delete from ${shape.queue.table}`);
        const [row] = await p.shape.rows(fixture(), 1);
        await p.store.enqueue([{ ...row, [shape.queue.key.column]: key }]);
        await p.claimOne("owner");
        assert.equal((await p.store.extend([zombie])).size, 0);
        assert.deepEqual(await p.store.settle([{ claim: zombie, outcome: done() }]), ["lost"]);
        assert.equal((await p.view(key!)).worker, "owner");
      });

      it("tokens only rise, through every kind of transition", async () => {
        const [key] = await p.enqueue();
        const tokens = [(await p.view(key!)).token];
        const note = async () => tokens.push((await p.view(key!)).token);
        await p.store.release([await p.claimOne()]);
        await note();
        await p.claimOne();
        p.tick(60_001);
        await p.store.rescueStale();
        await note();
        await p.store.settle([{ claim: await p.claimOne(), outcome: retry("x", 0) }]);
        await note();
        await p.store.settle([{ claim: await p.claimOne(), outcome: failed("x") }]);
        await note();
        await p.store.retry([key!]);
        await note();
        await p.store.settle([{ claim: await p.claimOne(), outcome: done() }]);
        await note();
        assert.deepEqual(
          tokens,
          [...tokens].sort((x, y) => x - y),
        );
        assert.equal(new Set(tokens).size, tokens.length);
      });
    });
  }
}
