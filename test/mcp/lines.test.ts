import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { linesOf } from "../../src/mcp/lines.ts";

async function* inPieces(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  let at = 0;
  for (let turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length]!;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

describe("lines", () => {
  it("are the same however their bytes arrive, and too long ones are passed over", async () => {
    const lines = fc.array(
      fc.string({ unit: "grapheme", maxLength: 40 }).map((text) => text.replaceAll("\n", " ")),
    );
    const sizes = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 5 });
    const check = fc.asyncProperty(lines, sizes, fc.boolean(), async (texts, pieces, isEnded) => {
      const bytesMax = 30;
      const bytes = Buffer.from(texts.join("\n") + (isEnded && texts.length > 0 ? "\n" : ""));
      const got: string[] = [];
      for await (const line of linesOf(inPieces(bytes, pieces), { bytesMax })) {
        got.push(line === "too long" ? line : Buffer.from(line).toString());
      }
      const wanted = texts.map((text) => (Buffer.byteLength(text) > bytesMax ? "too long" : text));
      // An empty last line without its end is no line.
      if (!isEnded && wanted.at(-1) === "") wanted.pop();
      assert.deepEqual(got, wanted);
    });
    await fc.assert(check, { numRuns: 300 });
  });
});
