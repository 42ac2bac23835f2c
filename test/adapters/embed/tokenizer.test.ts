import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { openTokenizer, readWordPieces } from "../../../src/adapters/embed/tokenizer.ts";

describe("tokenizers", () => {
  it("count word pieces as the model's own tokenizer does", async () => {
    const [tokenizer, whole] = await Promise.all([openTokenizer("all-MiniLM-L6-v2-q8"), readWordPieces()]);
    const texts = fc.oneof(
      fc.string({ unit: "binary", maxLength: 200 }),
      fc.string({ unit: "grapheme", maxLength: 200 }),
      fc.lorem({ maxCount: 60 }),
      fc.constantFrom(
        "日本語 の文章、漢字かな。",
        "[CLS] a[SEP]b",
        "naïve café",
        "don't stop—now…",
        "a".repeat(300),
      ),
    );
    fc.assert(
      fc.property(fc.array(texts, { maxLength: 4 }), (parts) => {
        const text = parts.join("");
        assert.equal(tokenizer.count(text), whole.encode(text, { add_special_tokens: false }).ids.length);
      }),
      { numRuns: 500 },
    );
  });

  it("count as OpenAI's models do, and take no text for a command", async () => {
    const tokenizer = await openTokenizer("text-embedding-3-small");
    assert.equal(tokenizer.count("hello world"), 2);
    assert.ok(tokenizer.count("a <|endoftext|> b") > 3);
  });

  for (const model of ["all-MiniLM-L6-v2-q8", "text-embedding-3-small"]) {
    it(`${model}: a word or a space without end does not stop it`, async () => {
      const tokenizer = await openTokenizer(model);
      for (const text of [
        "a".repeat(300_000),
        " ".repeat(300_000),
        "\n".repeat(300_000),
        "漢".repeat(100_000),
      ])
        assert.ok(tokenizer.count(text) >= 0);
    });
  }
});
