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
});
