import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Embedder } from "../../../src/adapters/embed.ts";

/** What every embedder owes its callers. */
export function testEmbedder(name: string, open: () => Promise<Embedder>): void {
  describe(`embedding with ${name}`, () => {
    let embedder: Embedder;
    const { signal } = new AbortController();
    before(async () => {
      embedder = await open();
    });
    after(() => embedder.close());

    it("gives each text a vector of unit length, in the order asked", async () => {
      const texts = Array.from(
        { length: 21 },
        (_, index) => `Text number ${index} ${"and more ".repeat(index)}`,
      );
      const { vectors } = await embedder.embed(texts, signal);
      assert.equal(vectors.length, texts.length);
      for (const vector of vectors) assertUnit(vector, embedder.dimensions);
      const [alone] = (await embedder.embed([texts[13]!], signal)).vectors;
      assert.ok(similarity(vectors[13]!, alone!) > 0.9999);
    });

    it("no texts give no vectors, and a text without words gets one all the same", async () => {
      assert.deepEqual(await embedder.embed([], signal), { vectors: [], tokens: 0 });
      const { vectors } = await embedder.embed(["", " \n", "\u0000", "\ud83d", "[SEP]"], signal);
      for (const vector of vectors) assertUnit(vector, embedder.dimensions);
    });

    it("what means the same is nearer than what does not", async () => {
      const [question] = (await embedder.embed(["How do I get my money back?"], signal, "question")).vectors;
      const { vectors } = await embedder.embed(
        [
          "Refunds are paid to the card you used within five days.",
          "The volcano erupted twice in the last century.",
        ],
        signal,
      );
      const [answer, other] = vectors;
      assert.ok(similarity(question!, answer!) > similarity(question!, other!) + 0.1);
    });

    it("a text longer than the window is read to its end", async () => {
      const times = (text: string, windows: number) =>
        text.repeat(Math.ceil((windows * embedder.tokensMax) / embedder.tokenizer.count(text)));
      const long = times("The harbour was rebuilt after the storm. ", 2.5);
      assert.ok(embedder.tokenizer.count(long) > 2 * embedder.tokensMax);
      const { vectors } = await embedder.embed(
        [long, `${long}${times("Penguins live on fish and krill. ", 1.25)}`],
        signal,
      );
      const [plain, withEnd] = vectors;
      assertUnit(plain!, embedder.dimensions);
      const [penguins] = (await embedder.embed(["penguins eating krill"], signal)).vectors;
      assert.ok(similarity(withEnd!, penguins!) > similarity(plain!, penguins!) + 0.05);
    });

    it("says what it read", async () => {
      const texts = ["Granite is quarried near the coast.", "Slate."];
      const { tokens } = await embedder.embed(texts, signal);
      assert.ok(tokens >= embedder.tokenizer.count(texts[0]!) + embedder.tokenizer.count(texts[1]!));
    });

    it("counts tokens", () => {
      assert.equal(embedder.tokenizer.count(""), 0);
      assert.ok(embedder.tokenizer.count("one two three") >= 3);
    });

    it("a call that is aborted ends at once and leaves the next one alone", async () => {
      const controller = new AbortController();
      const call = embedder.embed(Array(64).fill("Some words to embed."), controller.signal);
      controller.abort(new Error("not wanted any more"));
      await assert.rejects(call, /not wanted any more/);
      await assert.rejects(embedder.embed(["x"], controller.signal), /not wanted any more/);
      assert.equal((await embedder.embed(["x"], signal)).vectors.length, 1);
    });

    it("a closed one refuses", async () => {
      const other = await open();
      await other.embed(["x"], signal);
      await other.close();
      await assert.rejects(other.embed(["x"], signal), { code: "shutting_down" });
    });
  });
}

function similarity(one: Float32Array, other: Float32Array): number {
  return one.reduce((sum, value, index) => sum + value * other[index]!, 0);
}

function assertUnit(vector: Float32Array, dimensions: number): void {
  assert.ok(vector instanceof Float32Array);
  assert.equal(vector.length, dimensions);
  assert.ok(Math.abs(Math.hypot(...vector) - 1) < 1e-4);
}
