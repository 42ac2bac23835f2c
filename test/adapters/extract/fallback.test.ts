import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { after, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { DEFAULT_LIMITS } from "../../../src/adapters/extract/limits.ts";
import { openExtractor } from "../../../src/adapters/extract/local.ts";
import type { PdfEngine } from "../../../src/adapters/extract/pdf-engine.ts";
import { openReader } from "../../../src/adapters/extract/reader.ts";
import { isQuarryError } from "../../../src/errors.ts";
import { makePdf, scan, text } from "../../support/make-pdf.ts";
import { Files, signal } from "./files.ts";

describe("when the native PDF engine does not help", { timeout: 60_000 }, () => {
  const files = new Files();
  after(() => files.remove());
  const setup = { ...DEFAULT_LIMITS, pdfEngine: "liteparse" as const };
  const letter = makePdf({ pages: [{ items: [text("Dear reader, all is well.", { x: 72, y: 90 })] }] });

  test("a machine without its binary reads text and scans all the same", async () => {
    const reader = await openReader(setup, () => Promise.reject(new Error("Failed to load native module")));
    const file = await files.put("letter.pdf", letter);
    assert.equal((await reader.inspect(file)).pageCount, 1);
    const pages = await reader.read({ file, pages: [1], furniture: [] });
    assert.deepEqual(pages, [{ pageNumber: 1, markdown: "Dear reader, all is well.", needsOcr: false }]);
    const pixels = { gray: new Uint8Array(600).fill(99), width: 20, height: 30 };
    const picture = await reader.picture({
      file: await files.put("scan.pdf", makePdf({ pages: [scan(pixels)] })),
      pageNumber: 1,
    });
    assert.equal(Buffer.from(picture).readUInt32BE(16), 20);
    await assert.rejects(reader.picture({ file, pageNumber: 1 }), (error: unknown) => {
      assert.ok(isQuarryError(error, "file_unsupported"));
      assert.match(error.message, /cannot be drawn: that needs @llamaindex\/liteparse/);
      return true;
    });
  });

  test("a font that does not tell its letters leaves the page to OCR", async () => {
    const reader = await openReader({ ...setup, pdfEngine: "unpdf" });
    const letters = "01".repeat(20).concat("02".repeat(20));
    const source = letter
      .toString("latin1")
      .replace(
        /<< \/Type \/Font \/Subtype \/Type1 \/BaseFont \/Helvetica [^>]*>>/,
        "<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H /DescendantFonts [90 0 R] >>",
      )
      .replace(/\(Dear[^)]*\)/, `<${letters}>`)
      .replace(
        "xref\n",
        "90 0 obj\n<< /Type /Font /Subtype /CIDFontType2 /BaseFont /X /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>\nendobj\nxref\n",
      );
    const file = await files.put("strange.pdf", Buffer.from(source, "latin1"));
    const pages = await reader.read({ file, pages: [1], furniture: [] });
    assert.deepEqual(pages, [{ pageNumber: 1, markdown: "", needsOcr: true }]);
  });

  test("a file that it refuses goes to the other engine, and its own words are kept when both refuse", async () => {
    const refusing: PdfEngine = {
      name: "liteparse",
      parse: () => Promise.reject(new Error("PDF error: strange object")),
      draw: () => Promise.reject(new Error("PDF error: strange object")),
    };
    const reader = await openReader(setup, async () => refusing);
    assert.equal((await reader.inspect(await files.put("letter.pdf", letter))).pageCount, 1);
    await assert.rejects(
      reader.inspect(await files.put("no.pdf", letter.subarray(0, 200))),
      /strange object/,
    );
  });

  test("a file that it dies of is read by the other engine", async () => {
    const extractor = openExtractor({ processes: 1 });
    const file = await files.put("letter.pdf", letter);
    const inspecting = extractor.inspect(file, signal);
    process.kill(await firstChild(), "SIGSEGV");
    assert.equal((await inspecting).pageCount, 1);
    await extractor.close();
  });

  test("no links to files are left behind", () => {
    assert.deepEqual(
      readdirSync(tmpdir()).filter((name) => name.startsWith(`quarry-pdf-${process.pid}-`)),
      [],
    );
  });
});

async function firstChild(): Promise<number> {
  for (;;) {
    const [pid] = readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").split(" ");
    if (pid) return Number(pid);
    await sleep(5);
  }
}
