import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { AtOnce } from "../../src/mcp/at-once.ts";

describe("calls at once", () => {
  it("run up to a number of them, in the order they came, and one that fails makes room too", async () => {
    const calls = new AtOnce(3);
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
    const results = await Promise.allSettled(numbers.map((n) => calls.run(() => work(n))));
    assert.deepEqual(begun, numbers);
    assert.equal(most, 3);
    assert.equal(results.filter(({ status }) => status === "rejected").length, 5);
  });
});
