import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { isUuid, uuidOf, uuidv7 } from "../src/ids.ts";

const FAR_AHEAD = Date.UTC(2100, 0);

describe("ids", () => {
  it("are UUIDs of version 7 that begin with their time", () => {
    const id = uuidv7(FAR_AHEAD);
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.equal(Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16), FAR_AHEAD);
  });

  it("sort in the order they were made, whatever the clock does, and no two are alike", () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 50 }), { minLength: 2, maxLength: 50 }), (steps) => {
        const made = steps.flatMap((step) =>
          Array.from({ length: 200 }, () => uuidv7(FAR_AHEAD + 1_000 + step)),
        );
        assert.deepEqual(made, made.toSorted());
        assert.equal(new Set(made).size, made.length);
      }),
      { numRuns: 50 },
    );
  });

  it("differ in their random part, also in one millisecond", () => {
    const tails = Array.from({ length: 1_000 }, () => uuidv7(FAR_AHEAD).slice(19));
    assert.equal(new Set(tails).size, tails.length);
  });

  it("of parts are the same for the same parts, and told apart by where one part ends", () => {
    assert.equal(uuidOf("a", "b"), uuidOf("a", "b"));
    assert.notEqual(uuidOf("a", "b"), uuidOf("ab"));
    assert.ok(isUuid(uuidOf("a")) && !isUuid("a"));
  });
});
