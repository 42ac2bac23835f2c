import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import { Gate } from "../src/gate.ts";

describe("a gate", () => {
  it("lets no more in than it has places, in the order in which they came, whoever fails", async () => {
    const visitor = fc.record({
      stays: fc.nat({ max: 4 }),
      fails: fc.boolean(),
      comesAfter: fc.nat({ max: 3 }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.array(visitor, { maxLength: 20 }),
        async (places, visitors) => {
          const gate = new Gate(places);
          const [came, entered]: number[][] = [[], []];
          let inside = 0;
          const results = await Promise.allSettled(
            visitors.map(async ({ stays, fails, comesAfter }, who) => {
              for (let turns = 0; turns < comesAfter; turns++) await turn();
              came!.push(who);
              return gate.through(async () => {
                entered!.push(who);
                assert.ok(++inside <= places);
                for (let turns = 0; turns < stays; turns++) await turn();
                inside--;
                if (fails) throw new Error("it fails");
                return who;
              });
            }),
          );
          assert.deepEqual(entered, came);
          for (const [who, result] of results.entries())
            assert.equal(
              result.status === "fulfilled" ? result.value : "failed",
              visitors[who]!.fails ? "failed" : who,
            );
        },
      ),
    );
  });

  it("runs up to a number of works, in the order they came, and one that fails makes room too", async () => {
    const calls = new Gate(3);
    const begun: number[] = [];
    let running = 0;
    let most = 0;
    const work = async (n: number) => {
      begun.push(n);
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      if (n % 4 === 0) throw new Error(`${n} fails`);
      return n;
    };
    const numbers = Array.from({ length: 20 }, (_, n) => n);
    const results = await Promise.allSettled(numbers.map((n) => calls.through(() => work(n))));
    assert.deepEqual(begun, numbers);
    assert.equal(most, 3);
    assert.equal(results.filter(({ status }) => status === "rejected").length, 5);
  });
});
