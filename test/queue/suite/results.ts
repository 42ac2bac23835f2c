import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import fc from "fast-check";
import { fromStored } from "../../../src/embeddings/vectors.ts";
import { type Claim, done, isQuarryError, openQueue, type QueueStore } from "../../../src/index.ts";
import { type Fixture, type MailPayload, mail, rowOf } from "../fixture.ts";

interface Given {
  readonly bytes?: Uint8Array | null;
  readonly weights?: Float32Array | null;
  readonly priority?: number;
  readonly receipt?: unknown;
}

const given: fc.Arbitrary<Given> = fc.record(
  {
    bytes: fc.option(fc.uint8Array({ maxLength: 20 })),
    weights: fc.option(fc.float32Array({ maxLength: 20, noNaN: true })),
    priority: fc.integer({ min: 0, max: 10 }),
    receipt: fc.option(
      fc.record({ at: fc.integer(), by: fc.string({ unit: "grapheme" }) }, { noNullPrototype: true }),
      { nil: null },
    ),
  },
  { requiredKeys: [] },
);

const BEFORE = { bytes: Uint8Array.from([7]), priority: 3, receipt: null };

export function testResults(fixture: () => Fixture): void {
  describe("results of a settlement", () => {
    let store: QueueStore<MailPayload>;
    beforeEach(async () => {
      await fixture().reset();
      store = openQueue(fixture().database, mail);
    });

    const claims = async (count: number): Promise<Claim<MailPayload>[]> => {
      await store.enqueue(Array.from({ length: count }, () => ({ recipient: "r", ...BEFORE })));
      return store.claim({ worker: "w", limit: count });
    };

    const stored = async ({ key }: Claim<MailPayload>): Promise<Given> => {
      const { bytes, weights, priority, receipt } = await rowOf(fixture().database, "messages", key);
      return {
        bytes: bytes === null ? null : Uint8Array.from(bytes as Uint8Array),
        weights: fromStored(weights) ?? null,
        priority: Number(priority),
        receipt: typeof receipt === "string" ? JSON.parse(receipt) : receipt,
      };
    };

    it("each row gets its own bytes and floats; what it does not give stays as it was, null clears it", async () => {
      const property = fc.asyncProperty(fc.array(given, { minLength: 1, maxLength: 12 }), async (results) => {
        const held = await claims(results.length);
        const settlements = held.map((claim, index) => ({ claim, outcome: done({ ...results[index] }) }));
        const verdicts = await store.settle(settlements);
        assert.deepEqual(
          verdicts,
          results.map(() => "done"),
        );
        for (const [index, claim] of held.entries())
          assert.deepEqual(await stored(claim), {
            ...BEFORE,
            weights: null,
            receipt: null,
            ...results[index],
          });
      });
      await fc.assert(property, { numRuns: 25 });
    });

    it("a row that was lost shifts nobody else's values", async () => {
      const held = await claims(3);
      const lost = { ...held[1]!, token: held[1]!.token + 1 };
      const results = [1, 2, 3].map((n) => ({
        bytes: new Uint8Array(n).fill(n),
        weights: new Float32Array(4 - n).fill(n / 8),
      }));
      const settlements = [held[0]!, lost, held[2]!].map((claim, index) => ({
        claim,
        outcome: done(results[index]),
      }));
      assert.deepEqual(await store.settle(settlements), ["done", "lost", "done"]);
      assert.deepEqual(await stored(held[0]!), { ...BEFORE, ...results[0] });
      assert.deepEqual(await stored(held[1]!), { ...BEFORE, weights: null });
      assert.deepEqual(await stored(held[2]!), { ...BEFORE, ...results[2] });
    });

    it("a view into a larger buffer is stored as what it shows", async () => {
      const [claim] = await claims(1);
      const bytes = Uint8Array.from([0, 1, 2, 3]).subarray(1, 3);
      const weights = Float32Array.from([0.5, 1.5, 2.5]).subarray(1);
      await store.settle([{ claim: claim!, outcome: done({ bytes, weights }) }]);
      assert.deepEqual(await stored(claim!), {
        ...BEFORE,
        bytes: Uint8Array.from([1, 2]),
        weights: Float32Array.from([1.5, 2.5]),
      });
    });

    it("what is neither bytes nor floats is refused and the row stays held", async () => {
      const [claim] = await claims(1);
      for (const result of [
        { bytes: "text" },
        { bytes: [1] },
        { weights: [0.5] },
        { weights: new Uint8Array(4) },
      ])
        await assert.rejects(store.settle([{ claim: claim!, outcome: done(result) }]), (error) =>
          isQuarryError(error, "invalid_input"),
        );
      assert.deepEqual(await store.stillHeld([claim!]), new Set([claim!.key]));
    });
  });
}
