import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import fc from "fast-check";
import { openOpenAiEmbedder } from "../../src/adapters/embed/openai.ts";
import { LimitsByService, ModelLimits, type PerMinute, usedTokens } from "../../src/adapters/model-limits.ts";
import type { ServiceTime } from "../../src/adapters/model-pause.ts";
import { ModelService } from "../../src/adapters/model-service.ts";
import { manualClock, pause } from "../../src/clock.ts";
import { type ModelServer, startModelServer } from "../support/model-server.ts";

const never = new AbortController().signal;

describe("how much a service is asked in a minute", () => {
  let clock: ReturnType<typeof manualClock>;
  let pauses: number[];
  let time: ServiceTime;
  beforeEach(() => {
    clock = manualClock();
    pauses = [];
    time = {
      clock,
      sleep: async (ms) => {
        pauses.push(ms);
        clock.advance(ms);
      },
      random: () => 0.5,
    };
  });

  it("as many requests as are allowed go at once, the next when the first is a minute old", async () => {
    const limits = new ModelLimits({ requests: 3 }, time);
    for (let count = 0; count < 3; count++) {
      await limits.turn(1_000, never);
      clock.advance(5_000);
    }
    assert.deepEqual(pauses, []);
    await limits.turn(1_000, never);
    assert.deepEqual(pauses, [45_000]);
    await limits.turn(1_000, never);
    assert.deepEqual(pauses, [45_000, 5_000]);
  });

  it("tokens are counted as the service counted them, once it has said so", async () => {
    const limits = new ModelLimits({ tokens: 1_000 }, time);
    const first = await limits.turn(900, never);
    first.tokens = 100;
    await limits.turn(900, never);
    assert.deepEqual(pauses, []);
    await limits.turn(50, never);
    assert.deepEqual(pauses, [60_000]);
  });

  it("what is more than a whole minute's goes alone, and what comes after it waits", async () => {
    const limits = new ModelLimits({ tokens: 1_000 }, time);
    await limits.turn(10, never);
    clock.advance(10_000);
    await limits.turn(5_000, never);
    await limits.turn(10, never);
    assert.deepEqual(pauses, [50_000, 60_000]);
  });

  it("never more than is allowed in any minute, whatever is asked when", async () => {
    const asked = fc.array(fc.record({ tokens: fc.integer({ min: 0, max: 400 }), gapMs: fc.nat(30_000) }), {
      maxLength: 60,
    });
    await fc.assert(
      fc.asyncProperty(asked, fc.integer({ min: 1, max: 8 }), async (questions, requests) => {
        const limits = new ModelLimits({ requests, tokens: 1_000 }, time);
        const turns = [];
        for (const { tokens, gapMs } of questions) {
          clock.advance(gapMs);
          turns.push(await limits.turn(tokens, never));
        }
        for (const { atMs } of turns) {
          const minute = turns.filter((turn) => turn.atMs >= atMs && turn.atMs < atMs + 60_000);
          assert.ok(minute.length <= requests);
          assert.ok(minute.reduce((sum, { tokens }) => sum + tokens, 0) <= 1_000);
        }
      }),
      { numRuns: 50 },
    );
  });

  /** Pauses last until the test ends them. */
  const heldTime = () => {
    const { promise: over, resolve: end } = Promise.withResolvers<void>();
    const held: ServiceTime = {
      ...time,
      sleep: async (ms, signal) => {
        await Promise.race([over, new Promise((resolve) => signal.addEventListener("abort", resolve))]);
        if (!signal.aborted) clock.advance(ms);
      },
    };
    return { held, end };
  };

  it("a small question that would fit does not overtake a large one that waits", async () => {
    const { held, end } = heldTime();
    const limits = new ModelLimits({ tokens: 1_000 }, held);
    await limits.turn(600, never);
    const order: string[] = [];
    const waiting = [
      limits.turn(900, never).then(() => order.push("large")),
      limits.turn(100, never).then(() => order.push("small")),
    ];
    await pause(5);
    assert.deepEqual(order, []);
    end();
    await Promise.all(waiting);
    assert.deepEqual(order, ["large", "small"]);
  });

  it("turns come in the order of asking; whoever stops waiting holds nobody up", async () => {
    const { held, end } = heldTime();
    const limits = new ModelLimits({ requests: 1 }, held);
    await limits.turn(1, never);
    const order: string[] = [];
    const [first, second] = [new AbortController(), new AbortController()];
    const waiting = [
      limits.turn(1, first.signal),
      limits.turn(1, second.signal),
      limits.turn(1, never).then(() => order.push("third")),
      limits.turn(1, never).then(() => order.push("fourth")),
    ];
    await pause(5);
    // One of those that wait for their turn, then the one whose turn is next.
    second.abort(new Error("not wanted any more"));
    await assert.rejects(waiting[1]!, /not wanted any more/);
    first.abort(new Error("nor this"));
    await assert.rejects(waiting[0]!, /nor this/);
    end();
    await Promise.all(waiting.slice(2));
    assert.deepEqual(order, ["third", "fourth"]);
  });

  it("all that ask one service share its limits; another service has its own", () => {
    const limits = new LimitsByService({ requests: 5 });
    const url = "https://api.openai.com/v1";
    assert.equal(limits.of(url), limits.of("https://api.openai.com/v1/"));
    assert.notEqual(limits.of(url), limits.of("http://127.0.0.1:8000/v1"));
    assert.equal(new LimitsByService({}).of(url), undefined);
  });

  it("what services say they used is read in both spellings, and not believed when it is absurd", () => {
    assert.equal(usedTokens({ usage: { total_tokens: 12 } }), 12);
    assert.equal(usedTokens({ prompt_eval_count: 7, eval_count: 5 }), 12);
    for (const answer of [null, {}, { usage: null }, { usage: { total_tokens: "many" } }, { eval_count: -1 }])
      assert.equal(usedTokens(answer), undefined);
  });

  describe("when it is asked over HTTP", () => {
    let server: ModelServer;
    beforeEach(async () => {
      server = await startModelServer();
    });
    afterEach(() => server.close());
    const open = (perMinute: PerMinute, limits = new ModelLimits(perMinute, time)) => {
      const service = new ModelService({
        name: "the test service",
        url: server.openAiUrl,
        urlSetting: "OPENAI_BASE_URL",
        timeoutMs: 60_000,
        limits,
        time,
      });
      const ask = (more: { signal?: AbortSignal; isSplittable?: boolean; tokens?: number } = {}) =>
        service.ask({
          path: "/embeddings",
          body: { model: "text-embedding-3-small", input: ["slate"] },
          signal: never,
          isSplittable: false,
          whenMissing: "",
          ...more,
        });
      return { service, ask, limits };
    };

    it("a call waits for its turn, and two services' adapters wait for each other", async () => {
      const { service, ask, limits } = open({ requests: 2 });
      const other = open({}, limits);
      await ask();
      await other.ask();
      await ask();
      assert.deepEqual(pauses, [60_000]);
      assert.equal(server.requests.length, 3);
      service.close();
      other.service.close();
    });

    it("asking again after a 429 takes a turn of its own", async () => {
      const { service, ask } = open({ requests: 1 });
      server.misbehave({ kind: "status", status: 429, headers: { "retry-after": "7" } });
      await ask();
      assert.deepEqual(pauses, [7_000, 53_000]);
      service.close();
    });

    it("the answer's own count replaces the guess", async () => {
      const { service, ask } = open({ tokens: 1_000 });
      for (let count = 0; count < 5; count++) await ask({ tokens: 600 });
      assert.deepEqual(pauses, []);
      service.close();
    });

    it("a batch that is more than a minute's is to be split; one thing alone is asked", async () => {
      const { service, ask } = open({ tokens: 1_000 });
      await assert.rejects(ask({ tokens: 1_200, isSplittable: true }), {
        code: "model_failed",
        message: /1000 tokens a minute/,
      });
      await ask({ tokens: 1_200 });
      assert.equal(server.requests.length, 1);
      service.close();
    });

    it("a call that waits ends when it is aborted, and when the service is closed", async () => {
      const { service, ask } = open({}, new ModelLimits({ requests: 1 }, { ...time, sleep: pause }));
      await ask();
      const controller = new AbortController();
      const aborted = ask({ signal: controller.signal });
      const closed = ask();
      controller.abort(new Error("not wanted any more"));
      await assert.rejects(aborted, /not wanted any more/);
      service.close();
      await assert.rejects(closed, { code: "shutting_down" });
      assert.equal(server.requests.length, 1);
    });

    it("an embedder makes its batches small enough for a minute", async () => {
      const embedder = await openOpenAiEmbedder({
        baseUrl: server.openAiUrl,
        model: "text-embedding-3-small",
        timeoutMs: 60_000,
        limits: new ModelLimits({ tokens: 1_000 }, time),
        time,
      });
      const texts = Array.from({ length: 10 }, () => "slate ".repeat(300));
      assert.equal((await embedder.embed(texts, never)).vectors.length, 10);
      assert.ok(server.requests.length >= 4, `${server.requests.length} requests`);
      assert.ok(pauses.length >= 3);
      await embedder.close();
    });
  });
});
