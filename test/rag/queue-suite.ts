import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import fc from "fast-check";
import {
  type Claim,
  createWorker,
  defineLane,
  done,
  failed,
  isQuarryError,
  type Outcome,
  released,
  retry,
} from "../../src/index.ts";
import { costOf } from "../../src/rag/lines.ts";
import { JOB_LEVELS, type RagPayload } from "../../src/rag/queue.ts";
import { aMessage, LEASE_MS, type Place } from "./places.ts";

/** What the contract asks of a queue, wherever it is kept. Every implementation must pass it, unchanged. */
export function testRagQueue({ name, open }: { name: string; open(): Promise<Place> }): void {
  describe(`the queue of the RAG contract on ${name}`, () => {
    let place: Place;
    const store = () => place.queue.store;
    const submit = async (count = 1, more: Parameters<typeof aMessage>[1] = {}, options = {}) => {
      const ids: string[] = [];
      for (let n = 0; n < count; n++) {
        const message = aMessage(place, more);
        assert.equal(await place.queue.submit(message, options), "queued");
        ids.push(message.job_id);
      }
      return ids;
    };
    const claim = (limit = 10, worker = "w1") => store().claim({ worker, limit });
    const claimOne = async (worker = "w1") => {
      const [one] = await claim(1, worker);
      assert.ok(one, "nothing was there to claim");
      return one;
    };
    const settle = async (claimed: Claim<RagPayload>, outcome: Outcome) =>
      (await store().settle([{ claim: claimed, outcome }]))[0];
    const read = async (jobId: string) => {
      const job = await place.queue.read(jobId);
      assert.ok(job, `${jobId} is not known`);
      return job;
    };
    const isIn = async (jobId: string, expected: string) =>
      assert.deepEqual(await place.whereabouts(jobId), [expected]);

    before(async () => {
      place = await open();
    });
    after(() => place.close());
    beforeEach(() => place.reset());

    it("a submitted job is queued and can be asked about in the contract's words", async () => {
      const message = aMessage(place, { submitted_at: "2025-01-10T20:15:30.123456Z" });
      assert.equal(await place.queue.submit(message), "queued");
      const job = await read(message.job_id);
      const { job_id, rag_id, filename, status, submitted_at, retry_count, max_retries } = job;
      assert.deepEqual(
        { job_id, rag_id, filename, status, submitted_at, retry_count, max_retries },
        {
          ...{ job_id: message.job_id, rag_id: "policies_rag", filename: "a.pdf", status: "queued" },
          ...{ submitted_at: message.submitted_at, retry_count: 0, max_retries: 3 },
        },
      );
      assert.deepEqual(
        [job.started_at, job.completed_at, job.failed_at, job.duration_seconds, job.error, job.error_type],
        [null, null, null, null, null, null],
      );
      assert.deepEqual([job.chunks_created, job.embeddings_generated, job.tokens_used], [0, 0, 0]);
      assert.deepEqual(
        [job.source_path, job.source_type, job.submitted_by],
        [message.source_path, "pdf", "cli"],
      );
      await isIn(message.job_id, "queued");
    });

    it("is claimed with its message, a token and the number of the attempt", async () => {
      const [id] = await submit();
      const one = await claimOne("w7");
      assert.deepEqual([one.key, one.attempt, one.attemptsMax], [id, 1, 3]);
      assert.equal(one.row.job.job_id, id);
      assert.equal(JSON.parse(one.row.message).job_id, id);
      const job = await read(id!);
      assert.deepEqual([job.status, job.worker_id], ["processing", "w7"]);
      assert.notEqual(job.started_at, null);
      await isIn(id!, "processing");
      assert.deepEqual(await claim(), []);
    });

    it("is claimed by one worker only", async () => {
      const ids = await submit(20);
      const others = [place.queue, place.another(), place.another(), place.another()];
      const claims = await Promise.all(
        others.map(({ store: s }, n) => s.claim({ worker: `w${n}`, limit: 8 })),
      );
      assert.deepEqual(
        claims
          .flat()
          .map(({ key }) => key)
          .sort(),
        ids.sort(),
      );
    });

    it("first in, first out", async () => {
      const ids = await submit(30);
      assert.deepEqual(
        (await claim(30)).map(({ key }) => key),
        ids,
      );
    });

    it("reports grow while it runs, and stand when it is done", async () => {
      const [id] = await submit();
      const one = await claimOne();
      assert.equal(await place.queue.report(one, { chunks_created: 3 }), true);
      assert.equal((await read(id!)).chunks_created, 3);
      const more = {
        chunks_created: 21,
        embeddings_generated: 20,
        document_id: "d-1",
        moved_to: "/x/processed/a.pdf",
      };
      assert.equal(await place.queue.report(one, more), true);
      place.clock.advance(25_000);
      assert.equal(await settle(one, done({ embeddings_generated: 21, tokens_used: 5_432 })), "done");
      const job = await read(id!);
      assert.deepEqual(
        [job.status, job.chunks_created, job.embeddings_generated, job.tokens_used, job.duration_seconds],
        ["done", 21, 21, 5_432, 25],
      );
      assert.deepEqual([job.document_id, job.moved_to], ["d-1", "/x/processed/a.pdf"]);
      assert.notEqual(job.completed_at, null);
      assert.deepEqual([job.failed_at, job.error, job.worker_id], [null, null, "w1"]);
      await isIn(id!, "done");
      assert.deepEqual(await claim(), []);
    });

    it("an outcome may only write the declared results", async () => {
      await submit();
      const one = await claimOne();
      await assert.rejects(settle(one, done({ nonsense: 1 })), (error) =>
        isQuarryError(error, "invalid_input"),
      );
      assert.equal(await settle(one, done()), "done");
    });

    it("recoverable errors wait 5, 10, 30 seconds, and retry_count counts them", async () => {
      const [id] = await submit(1, { max_retries: 5 });
      for (const [index, waitMs] of [5_000, 10_000, 30_000, 30_000].entries()) {
        const one = await claimOne();
        assert.equal(one.attempt, index + 1);
        assert.equal(await settle(one, retry("the service is away")), "retrying");
        const job = await read(id!);
        assert.deepEqual(
          [job.status, job.retry_count, job.error],
          ["queued", index + 1, "the service is away"],
        );
        await isIn(id!, "delayed");
        assert.equal(await store().nextDueMs(), waitMs);
        place.clock.advance(waitMs - 1);
        assert.equal(await store().promoteDelayed(), 0);
        assert.deepEqual(await claim(), []);
        place.clock.advance(1);
        assert.equal(await store().promoteDelayed(), 1);
        await isIn(id!, "queued");
      }
      assert.equal(await store().nextDueMs(), undefined);
    });

    it("fails when retry_count reaches max_retries, and goes to the dead letters", async () => {
      const [id] = await submit();
      const verdicts = [];
      for (const reason of ["one", "two", "three"])
        verdicts.push(await settle(await claimOne(), retry(reason, 0)));
      assert.deepEqual(verdicts, ["retrying", "retrying", "failed"]);
      const job = await read(id!);
      assert.deepEqual(
        [job.status, job.retry_count, job.error, job.completed_at],
        ["failed", 3, "three", null],
      );
      assert.notEqual(job.failed_at, null);
      await isIn(id!, "failed");
      const { letters } = await place.queue.deadLetters();
      assert.deepEqual(
        letters.map(({ id, job_id, rag_id, reason }) => ({ id, job_id, rag_id, reason })),
        [{ id, job_id: id, rag_id: "policies_rag", reason: "three" }],
      );
      assert.equal(JSON.parse(letters[0]!.message).job_id, id);
    });

    it("non-recoverable errors fail at once, with what was reported about them", async () => {
      const [id] = await submit();
      const one = await claimOne();
      const record = {
        error_type: "ParseError",
        error_code: "ERR_PDF_INVALID",
        suggestions: ["Try again"],
        traceback: "…",
      };
      await place.queue.report(one, record);
      assert.equal(await settle(one, failed("PDF header corrupted or invalid")), "failed");
      const job = await read(id!);
      const { error_type, error_code, suggestions, traceback } = job;
      assert.deepEqual({ error_type, error_code, suggestions, traceback }, record);
      assert.deepEqual(
        [job.status, job.error, job.retry_count],
        ["failed", "PDF header corrupted or invalid", 1],
      );
    });

    it("what a failed try has left is not shown of one that succeeded", async () => {
      const [id] = await submit();
      const first = await claimOne();
      await place.queue.report(first, {
        error_type: "Timeout",
        error_code: "E",
        suggestions: ["s"],
        traceback: "t",
      });
      await settle(first, retry("slow", 0));
      await settle(await claimOne(), done());
      const job = await read(id!);
      assert.deepEqual(
        [job.error, job.error_type, job.error_code, job.suggestions, job.traceback, job.retry_count],
        [null, null, null, [], null, 1],
      );
    });

    it("every job is run once, also one that says that its retries are spent", async () => {
      await submit(1, { max_retries: 0 });
      const one = await claimOne();
      assert.equal(one.attemptsMax, 1);
      assert.equal(await settle(one, retry("x", 0)), "failed");
      await submit(1, { retry_count: 3, max_retries: 3 });
      const other = await claimOne();
      assert.deepEqual([other.attempt, other.attemptsMax], [4, 4]);
      assert.equal(await settle(other, retry("x", 0)), "failed");
    });

    it("a retry of a foreign worker goes on counting where it left off", async () => {
      const [id] = await submit(1, { retry_count: 2, max_retries: 3 });
      assert.equal((await claimOne()).attempt, 3);
      place.clock.advance(LEASE_MS + 1);
      assert.deepEqual(await store().rescueStale(), [{ key: id, isFailed: true }]);
    });

    it("what is given back costs no try and is the first again", async () => {
      const ids = await submit(3);
      const one = await claimOne();
      assert.equal(await store().release([one]), 1);
      const job = await read(ids[0]!);
      assert.deepEqual(
        [job.status, job.retry_count, job.started_at, job.worker_id],
        ["queued", 0, null, null],
      );
      const again = await claimOne();
      assert.deepEqual([again.key, again.attempt], [ids[0], 1]);
      assert.ok(again.token > one.token);
      assert.equal(await settle(again, released(3_000)), "released");
      await isIn(ids[0]!, "delayed");
      place.clock.advance(3_000);
      assert.equal(await store().promoteDelayed(), 1);
      assert.equal((await claimOne()).key, ids[0]);
    });

    it("renewing keeps a lease alive past its first end", async () => {
      const [id] = await submit();
      const one = await claimOne();
      for (let round = 0; round < 3; round++) {
        place.clock.advance(LEASE_MS - 1);
        assert.deepEqual([...(await store().extend([one]))], [id]);
        assert.deepEqual(await store().rescueStale(), []);
      }
      assert.deepEqual([...(await store().stillHeld([one]))], [id]);
    });

    it("a worker that died loses its job to any other process; that counts, and is said", async () => {
      const [id] = await submit();
      const dead = await claimOne("dead-worker");
      place.clock.advance(LEASE_MS + 1);
      assert.deepEqual(await place.another().store.rescueStale(), [{ key: id, isFailed: false }]);
      const job = await read(id!);
      assert.deepEqual([job.status, job.retry_count, job.worker_id], ["queued", 1, null]);
      assert.match(job.error!, /dead-worker stopped renewing its lease \(attempt 1 of 3\)/);
      const again = await claimOne();
      assert.equal(again.attempt, 2);
      assert.ok(again.token > dead.token);
    });

    it("a job that kills its workers ends with the dead letters", async () => {
      const [id] = await submit();
      for (const isFailed of [false, false, true]) {
        await claimOne();
        place.clock.advance(LEASE_MS + 1);
        assert.deepEqual(await store().rescueStale(), [{ key: id, isFailed }]);
      }
      assert.match((await place.queue.deadLetters()).letters[0]!.reason, /attempt 3 of 3/);
    });

    it("two reapers at once take each job once", async () => {
      const ids = await submit(40);
      await claim(40, "dead");
      place.clock.advance(LEASE_MS + 1);
      const reapers = [place.another(), place.another(), place.another()];
      const rescued = (await Promise.all(reapers.map(({ store: s }) => s.rescueStale({ limit: 40 })))).flat();
      assert.deepEqual(rescued.map(({ key }) => key).sort(), ids.sort());
      for (const id of ids) assert.equal((await read(id)).retry_count, 1);
    });

    it("jobs of a worker that is known to be gone need not wait for their leases", async () => {
      const [, kept] = await submit(2);
      const lost = await claimOne("gone");
      await claimOne("alive");
      assert.equal(await store().expireLeases(["gone", "nobody"]), 1);
      assert.deepEqual(
        (await store().rescueStale()).map(({ key }) => key),
        [lost.key],
      );
      await isIn(kept!, "processing");
      assert.equal(await store().expireLeases([]), 0);
    });

    it("a stale token can do nothing, whether the job waits, runs elsewhere or is done", async () => {
      const [id] = await submit();
      const zombie = await claimOne("zombie");
      const isRefused = async () => {
        for (const outcome of [done(), retry("x"), failed("x"), released()]) {
          assert.equal(await settle(zombie, outcome), "lost");
          assert.deepEqual(await store().settle([{ claim: zombie, outcome }], { isRepeat: true }), ["lost"]);
        }
        assert.equal((await store().extend([zombie])).size, 0);
        assert.equal((await store().stillHeld([zombie])).size, 0);
        assert.equal(await place.queue.report(zombie, { chunks_created: 99 }), false);
        assert.equal((await read(id!)).chunks_created, 0);
      };
      place.clock.advance(LEASE_MS + 1);
      await store().rescueStale();
      await isRefused();
      const owner = await claimOne("owner");
      await isRefused();
      assert.equal((await read(id!)).worker_id, "owner");
      assert.equal(await settle(owner, done()), "done");
      await isRefused();
      await isIn(id!, "done");
    });

    it("a settlement counts once; repeated, it is recognised as its own", async () => {
      await submit(3);
      const claims = await claim(3);
      const outcomes = [done(), retry("r", 5_000), failed("f")];
      const settlements = claims.map((one, n) => ({ claim: one, outcome: outcomes[n]! }));
      const verdicts = ["done", "retrying", "failed"];
      assert.deepEqual(await store().settle(settlements), verdicts);
      assert.deepEqual(await store().settle(settlements), ["lost", "lost", "lost"]);
      assert.deepEqual(await store().settle(settlements, { isRepeat: true }), verdicts);
      assert.equal((await place.queue.counts()).deadLetters, 1);
    });

    it("a stale and a fresh claim of one job in one call are told apart", async () => {
      const [id] = await submit();
      const stale = await claimOne("stale");
      place.clock.advance(LEASE_MS + 1);
      await store().rescueStale();
      const fresh = await claimOne("fresh");
      const verdicts = await store().settle([
        { claim: stale, outcome: failed("stale") },
        { claim: fresh, outcome: done() },
      ]);
      assert.deepEqual(verdicts, ["lost", "done"]);
      await isIn(id!, "done");
    });

    it("the same job again is one run while it is open, none when it is done, and a new one when it has failed", async () => {
      const message = aMessage(place);
      const again = () => place.queue.submit(message);
      assert.deepEqual([await again(), await again()], ["queued", "known"]);
      const one = await claimOne();
      assert.equal(await again(), "known");
      assert.deepEqual(await claim(), []);
      await settle(one, retry("later", 5_000));
      assert.equal(await again(), "known");
      assert.deepEqual(await claim(), []);
      place.clock.advance(5_000);
      await store().promoteDelayed();
      await settle(await claimOne(), failed("never"));
      assert.equal(await again(), "queued");
      const job = await read(message.job_id);
      assert.deepEqual([job.status, job.retry_count, job.error, job.failed_at], ["queued", 0, null, null]);
      const fresh = await claimOne();
      assert.equal(fresh.attempt, 1);
      await settle(fresh, done());
      assert.equal(await again(), "known");
      assert.deepEqual(await claim(), []);
      await isIn(message.job_id, "done");
    });

    it("unknown fields are kept and missing ones filled in", async () => {
      const {
        submitted_by: _by,
        options: _options,
        retry_count: _r,
        max_retries: _m,
        ...least
      } = aMessage(place);
      const text = JSON.stringify({
        ...least,
        extra: { deep: [1, null] },
        submitted_at: "2025-01-10T20:15:30.123456Z",
      });
      await place.push(text);
      const one = await claimOne();
      assert.equal(one.row.message, text);
      assert.deepEqual(one.row.job.options, {
        reindex: false,
        skip_validation: false,
        preserve_metadata: true,
      });
      const { submitted_by, retry_count, max_retries } = one.row.job;
      assert.deepEqual(
        { submitted_by, retry_count, max_retries },
        { submitted_by: "cli", retry_count: 0, max_retries: 3 },
      );
      await settle(one, failed("so that it is seen"));
      assert.equal((await place.queue.deadLetters()).letters[0]!.message, text);
    });

    it("a message of the wrong types fails with the reason and holds nobody up", async () => {
      const bad = aMessage(place, { rag_id: 7 as never });
      await place.push(JSON.stringify(bad));
      const good = aMessage(place);
      await place.push(JSON.stringify(good));
      const claims = [...(await claim()), ...(await claim())];
      assert.deepEqual(
        claims.map(({ key }) => key),
        [good.job_id],
      );
      const job = await read(bad.job_id);
      assert.deepEqual([job.status, job.error_code], ["failed", "ERR_MESSAGE_INVALID"]);
      assert.match(job.error!, /^malformed message: rag_id: /);
      const [letter] = (await place.queue.deadLetters()).letters;
      assert.equal(letter!.job_id, bad.job_id);
      assert.match(letter!.reason, /rag_id/);
    });

    it("high goes before normal before low", async () => {
      const [low] = await submit(1, {}, { priority: "low" });
      const [normal] = await submit(1, {}, { priority: "normal" });
      const [high] = await submit(1, {}, { priority: "high" });
      const order = (await claim(3)).map(({ key }) => key);
      assert.deepEqual(order, [high, normal, low]);
      assert.deepEqual(
        [(await read(high!)).priority, (await read(normal!)).priority, (await read(low!)).priority],
        ["high", "normal", "low"],
      );
    });

    it("lists of RAGs and the plain one are served in turn", async () => {
      const many = await submit(12);
      const own = await submit(3, { rag_id: "faq_rag" }, { own: true });
      const other = await submit(3, { rag_id: "policies_rag" }, { own: true });
      const order = (await claim(18)).map(({ key }) => String(key));
      for (const ids of [own, other, many]) {
        assert.deepEqual(
          order.filter((key) => ids.includes(key)),
          ids,
        );
      }
      const first = order.slice(0, 9);
      for (const ids of [own, other, many]) assert.equal(first.filter((key) => ids.includes(key)).length, 3);
    });

    it("a list is given for the RAG or for a priority, not for both", async () => {
      await assert.rejects(place.queue.submit(aMessage(place), { own: true, priority: "high" }), (error) =>
        isQuarryError(error, "invalid_input"),
      );
    });

    it("nobody starves: whoever waits gets its share, whatever the backlog", async () => {
      const line = fc.constantFrom("high", "", "normal", "policies_rag", "faq_rag", "low");
      const arrivals = fc.array(fc.record({ line, count: fc.integer({ min: 1, max: 40 }) }), {
        minLength: 1,
        maxLength: 6,
      });
      const scenario = fc.record({ first: arrivals, later: arrivals, step: fc.integer({ min: 1, max: 20 }) });
      await fc.assert(
        fc.asyncProperty(scenario, async ({ first, later, step }) => {
          await place.reset();
          const waiting = new Map<string, string[]>();
          const arrive = async (some: typeof first) => {
            for (const { line: to, count } of some) {
              const level = JOB_LEVELS.find((one) => one === to);
              const options = level ? { priority: level } : { own: to !== "" };
              const ids = await submit(count, { rag_id: to.endsWith("_rag") ? to : "policies_rag" }, options);
              waiting.set(to, [...(waiting.get(to) ?? []), ...ids]);
            }
          };
          await arrive(first);
          const sinceServed = new Map<string, number>();
          const serve = async () => {
            const claims = await claim(step);
            for (const { key } of claims) {
              const served = [...waiting].find(([, ids]) => ids.includes(String(key)))!;
              assert.equal(served[1].shift(), key, "not first in, first out");
              sinceServed.set(served[0], 0);
              for (const [to, ids] of waiting) {
                if (to === served[0] || ids.length === 0) continue;
                const passed = (sinceServed.get(to) ?? 0) + 1;
                sinceServed.set(to, passed);
                assert.ok(
                  passed <= patience(to, [...waiting.keys()]),
                  `${to || "plain"} was passed over ${passed} times`,
                );
              }
            }
            return claims.length;
          };
          await serve();
          await arrive(later);
          while ((await serve()) > 0);
          assert.deepEqual([...waiting.values()].flat(), []);
        }),
        { numRuns: 8 },
      );
    });

    it("counts say how long the line is, what runs, and that a worker is connected", async () => {
      const none = {
        length: 0,
        processing: 0,
        queued: 0,
        delayed: 0,
        deadLetters: 0,
        oldestDeadLetterAt: null,
      };
      const { lastHeartbeatMsAgo: _, ...empty } = await place.queue.counts();
      assert.deepEqual(empty, none);
      await submit(5);
      await submit(1, {}, { priority: "high" });
      const [one, two] = await claim(3);
      await settle(one!, retry("later", 5_000));
      await settle(two!, failed("never"));
      const { lastHeartbeatMsAgo: __, ...counts } = await place.queue.counts();
      const oldestDeadLetterAt = new Date(place.clock.now()).toISOString();
      assert.deepEqual(counts, {
        ...{ length: 5, processing: 1, queued: 4, delayed: 1, deadLetters: 1 },
        oldestDeadLetterAt,
      });
    });

    it("dead letters are listed newest first, in pages, and redriven or purged by id or all", async () => {
      const ids = await submit(5);
      for (const one of await claim(5)) {
        await settle(one, failed(`no ${one.key}`));
        place.clock.advance(1);
      }
      const pages: string[][] = [];
      for (let after: string | undefined; ; ) {
        const { letters, next } = await place.queue.deadLetters({ limit: 2, after });
        pages.push(letters.map(({ id }) => id));
        if (next === undefined) break;
        after = next;
      }
      assert.deepEqual(
        pages.map((page) => page.length),
        [2, 2, 1],
      );
      assert.deepEqual(pages.flat(), ids.toReversed());
      assert.equal(await place.queue.redrive({ ids: [ids[1]!, "nobody"] }), 1);
      const job = await read(ids[1]!);
      assert.deepEqual([job.status, job.retry_count, job.failed_at], ["queued", 0, null]);
      await isIn(ids[1]!, "queued");
      assert.equal(await place.queue.purge({ ids: [ids[0]!] }), 1);
      assert.equal(await place.queue.redrive("all"), 3);
      assert.deepEqual(
        (await claim(10)).map(({ key, attempt }) => [key, attempt]).sort(),
        ids
          .slice(1)
          .map((id) => [id, 1])
          .sort(),
      );
      assert.equal((await place.queue.counts()).deadLetters, 0);
      assert.equal(await place.queue.redrive("all"), 0);
      assert.equal(await place.queue.purge("all"), 0);
    });

    it("dead letters are listed by RAG and error code, in pages", async () => {
      const wanted: string[] = [];
      for (let n = 0; n < 12; n++) {
        const rag_id = n % 3 === 0 ? "faq_rag" : "policies_rag";
        const [id] = await submit(1, { rag_id });
        const one = await claimOne();
        await place.queue.report(one, { error_code: n % 2 === 0 ? "ERR_PDF_INVALID" : "ERR_FILE_EMPTY" });
        await settle(one, failed("no"));
        if (n % 3 !== 0 && n % 2 === 0) wanted.push(id!);
        place.clock.advance(1);
      }
      const which = { rag_id: "policies_rag", error_code: "ERR_PDF_INVALID" };
      const listed: string[] = [];
      for (let after: string | undefined; ; ) {
        const { letters, next } = await place.queue.deadLetters({ ...which, limit: 1, after });
        listed.push(...letters.map(({ id }) => id));
        for (const letter of letters)
          assert.deepEqual([letter.rag_id, letter.error_code], [which.rag_id, which.error_code]);
        if (next === undefined) break;
        after = next;
      }
      assert.deepEqual(listed, wanted.toReversed());
      assert.equal((await place.queue.deadLetters({ rag_id: "faq_rag" })).letters.length, 4);
      assert.deepEqual((await place.queue.deadLetters({ error_code: "ERR_TIMEOUT" })).letters, []);
    });

    it("dead letters are kept for their time, and not a moment less", async () => {
      const { failedMs } = store().queue.retention!;
      assert.equal(failedMs, 30 * 86_400_000);
      const [first] = await submit();
      await settle(await claimOne(), failed("the older one"));
      const olderAt = new Date(place.clock.now()).toISOString();
      place.clock.advance(60_000);
      const [second] = await submit();
      await settle(await claimOne(), failed("the younger one"));
      const prune = () => store().prune({ failedOlderThanMs: failedMs! });
      const letters = async () => (await place.queue.deadLetters()).letters.map(({ id }) => id);
      place.clock.advance(failedMs! - 60_001);
      assert.equal(await prune(), 0);
      assert.deepEqual(await letters(), [second, first]);
      const counts = await place.queue.counts();
      assert.deepEqual([counts.deadLetters, counts.oldestDeadLetterAt], [2, olderAt]);
      place.clock.advance(1);
      assert.equal(await prune(), 1);
      assert.deepEqual(await letters(), [second]);
      place.clock.advance(60_000);
      assert.equal(await prune(), 1);
      assert.deepEqual(await letters(), []);
      assert.equal((await place.queue.counts()).oldestDeadLetterAt, null);
    });

    it("a letter whose job came again by itself is not redriven", async () => {
      const message = aMessage(place);
      await place.queue.submit(message);
      await settle(await claimOne(), failed("never"));
      await place.queue.submit(message);
      assert.equal(await place.queue.redrive("all"), 0);
      assert.equal((await claim()).length, 1);
    });

    it("jobs are listed newest first, by RAG and status, in pages", async () => {
      const ids: string[] = [];
      for (let n = 0; n < 5; n++) {
        ids.push(...(await submit(1, { rag_id: n % 2 ? "faq_rag" : "policies_rag" })));
        place.clock.advance(1);
      }
      const one = await claimOne();
      await settle(one, done());
      const { jobs, next } = await place.queue.list({ limit: 3 });
      const rest = await place.queue.list({ limit: 3, after: next });
      assert.deepEqual(
        [...jobs, ...rest.jobs].map(({ job_id }) => job_id),
        ids.toReversed(),
      );
      assert.equal(rest.next, undefined);
      const named = async (options: object) =>
        (await place.queue.list(options)).jobs.map(({ job_id }) => job_id);
      assert.deepEqual(await named({ rag_id: "faq_rag" }), [ids[3], ids[1]]);
      assert.deepEqual(await named({ status: "done" }), [ids[0]]);
      assert.deepEqual(await named({ status: "queued", rag_id: "policies_rag" }), [ids[4], ids[2]]);
      for (const limit of [0, 1.5, 1_001])
        await assert.rejects(place.queue.list({ limit }), (error) => isQuarryError(error, "invalid_input"));
    });

    it("errors are cut and cleaned of what a database cannot store", async () => {
      const [id] = await submit();
      const one = await claimOne();
      await place.queue.report(one, { traceback: "a\u0000b", error_type: "x\ud800" });
      await settle(one, failed(`\u0000${"ü".repeat(20_000)}`));
      const job = await read(id!);
      assert.ok(Buffer.byteLength(job.error!) <= 8 * 1024 + 8);
      assert.deepEqual([job.traceback, job.error_type], ["ab", "x\ufffd"]);
    });

    it("refuses a claim of no jobs or of too many", async () => {
      for (const limit of [0, -1, 1.5, 10_001])
        await assert.rejects(claim(limit), (error) => isQuarryError(error, "invalid_input"));
    });

    it("a lane works through it, with prefetch, coalesced settlements and retries", async () => {
      const ids = await submit(300);
      const runs = new Map<string, number>();
      const { promise: isOver, resolve } = Promise.withResolvers<void>();
      let settled = 0;
      const { queue } = store();
      const handle = ({ key }: { key: string | number }) => {
        const run = (runs.get(String(key)) ?? 0) + 1;
        runs.set(String(key), run);
        if (run === 1 && ids.indexOf(String(key)) % 10 === 0) return retry("once more", 0);
        if (++settled === ids.length) resolve();
        return done({ chunks_created: run });
      };
      const lane = defineLane({ queue, store: store(), concurrency: 20, pollMs: 50, handle });
      const worker = createWorker({ database: place.database, lanes: [lane] }).start();
      await isOver;
      await worker.stop();
      for (const [index, id] of ids.entries()) {
        const job = await read(id);
        const tries = index % 10 === 0 ? 2 : 1;
        assert.deepEqual([job.status, job.chunks_created, job.retry_count], ["done", tries, tries - 1]);
      }
      assert.equal((await place.queue.counts()).length, 0);
    });

    it("a lane that is stopped gives back what it holds", async () => {
      const ids = await submit(50);
      const { promise: hasBegun, resolve } = Promise.withResolvers<void>();
      const { queue } = store();
      const handle = ({ signal }: { signal: AbortSignal }) => {
        resolve();
        return new Promise<undefined>((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
        });
      };
      const lane = defineLane({ queue, store: store(), concurrency: 5, handle });
      const worker = createWorker({ database: place.database, lanes: [lane], graceMs: 1 }).start();
      await hasBegun;
      await worker.hurry();
      for (const id of ids) {
        await isIn(id, "queued");
        assert.equal((await read(id)).retry_count, 0);
      }
    });
  });
}

/** How often others may go before a list while it waits: as often as their turns fit into two of its own. */
function patience(line: string, lines: readonly string[]): number {
  const others = lines.filter((other) => other !== line);
  return others.reduce((sum, other) => sum + 2 * Math.ceil(costOf(line) / costOf(other)) + 1, 1);
}
