import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { openTokenizer } from "../../../src/adapters/embed/tokenizer.ts";
import { averaged, halvedWindow, windowsOf } from "../../../src/adapters/embed/windows.ts";

const texts = fc
  .array(
    fc.oneof(
      fc.lorem({ maxCount: 30 }),
      fc.string({ unit: "grapheme", maxLength: 60 }),
      fc.constantFrom("漢字".repeat(80), "😀".repeat(60), " \n\n\t ".repeat(40), "a".repeat(300), ".\n\n"),
    ),
    { maxLength: 12 },
  )
  .map((parts) => `x${parts.join("")}`.toWellFormed());

describe("windows of a text", () => {
  for (const model of ["all-minilm", "text-embedding-3-small"])
    it(`${model}: hold all that is said, in order, and none holds too much`, async () => {
      const tokenizer = await openTokenizer(model);
      fc.assert(
        fc.property(texts, fc.integer({ min: 20, max: 60 }), (text, tokensMax) => {
          const windows = windowsOf(text, tokensMax, tokenizer);
          for (const window of windows) {
            assert.ok(tokenizer.count(window.text) <= tokensMax);
            assert.ok(window.text.isWellFormed());
          }
          const said = (part: string) => part.replaceAll(/\s+/g, "");
          assert.equal(said(windows.map((window) => window.text).join("")), said(text));
        }),
        { numRuns: 300 },
      );
    });

  it("can be halved, and no character is", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 }), (text) => {
        const halves = halvedWindow({ text, tokens: 9 });
        for (const half of halves) assert.ok(half.text.isWellFormed());
        assert.equal(
          halves
            .map((half) => half.text)
            .join("")
            .trim(),
          text.trim(),
        );
      }),
    );
  });

  it("weigh as many tokens as they have", () => {
    const windows = [
      { text: "long", tokens: 30 },
      { text: "short", tokens: 10 },
    ];
    const vectors = [Float32Array.of(1, 0), Float32Array.of(0, 1)];
    assert.deepEqual(averaged(windows, vectors, 2), Float32Array.of(30, 10));
  });
});
