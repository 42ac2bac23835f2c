import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import sharp from "sharp";
import { openExtractor } from "../../../src/adapters/extract/local.ts";
import type { Extractor } from "../../../src/adapters/extract.ts";
import { LETTER, makePdf, type PdfPage, text } from "../../support/make-pdf.ts";
import { typeset } from "../../support/typeset.ts";
import { extract, Files, signal } from "./files.ts";

describe("layout of PDFs", { timeout: 60_000 }, () => {
  const files = new Files();
  let extractor: Extractor;
  before(() => {
    extractor = openExtractor({ processes: 1 });
  });
  after(async () => {
    await extractor.close();
    await files.remove();
  });
  const read = async (pages: readonly PdfPage[]) =>
    extract(extractor, await files.put("layout.pdf", makePdf({ pages })));

  test("headings, paragraphs, lists and tables become Markdown", async () => {
    const { text: markdown } = await read(
      typeset([
        { heading: "Fruit" },
        { paragraph: "Fruit grows on trees and bushes, and in the fields of the plains." },
        { heading: "Kinds", level: 2 },
        { bullets: ["apples keep long", "pears do not"] },
        {
          table: [
            ["Kind", "Price", "Weight"],
            ["Apple", "2.10", "180 g"],
            ["Pear", "2.60", "170 g"],
          ],
        },
        { paragraph: "Prices are those of the market in town, taken on a Saturday." },
      ]),
    );
    assert.match(markdown, /^# Fruit\n\nFruit grows on trees and bushes/);
    assert.match(markdown, /\n\n#+ Kinds\n\n- apples keep long\n- pears do not\n\n\| Kind/);
    assert.match(markdown, /\| Kind \| Price \| Weight \|\n\|[-| ]+\|\n\| Apple \| 2\.10 \| 180 g \|\n/);
    assert.match(
      markdown,
      /\| Pear \| 2\.60 \| 170 g \|\n\nPrices are those of the market in town, taken on a Saturday\.$/,
    );
  });

  test("columns are read one after the other, even if they were written line by line", async () => {
    const left = Array.from({ length: 30 }, (_, line) => `The left side says thing ${line}.`);
    const right = left.map((words) => words.replace("left", "right"));
    const items = left.flatMap((words, line) => [
      text(words, { x: 60, y: 80 + line * 14 }),
      text(right[line]!, { x: 330, y: 80 + line * 14 }),
    ]);
    const { text: markdown } = await read([{ items }]);
    assert.equal(markdown.replaceAll(/\s+/g, " "), [...left, ...right].join(" "));
  });

  test("odd and even pages may have headers of their own, and a header may have two ends", async () => {
    const pages = Array.from({ length: 12 }, (_, page): PdfPage => {
      const isEven = page % 2 === 1;
      return {
        items: [
          text(isEven ? "The History of Salt" : "J. Miller", { x: 72, y: 40, size: 9 }),
          text(`${page + 1}`, { x: 520, y: 40, size: 9 }),
          text(`Salt was worth its weight in chapter ${page + 1}.`, { x: 72, y: 120 }),
        ],
      };
    });
    const { text: markdown } = await read(pages);
    assert.doesNotMatch(markdown, /History|Miller/);
    assert.equal(markdown.match(/Salt was worth/g)?.length, 12);
    assert.doesNotMatch(markdown, /^\d+$/m);
  });

  test("the sample of a long document finds headers of its later parts", async () => {
    const pages = Array.from({ length: 60 }, (_, page): PdfPage => {
      const part = page < 30 ? "Part One" : "Part Two";
      return {
        items: [text(part, { x: 72, y: 40, size: 9 }), text(`Words of leaf ${page + 1}.`, { x: 72, y: 200 })],
      };
    });
    const { text: markdown } = await read(pages);
    assert.doesNotMatch(markdown, /Part/);
  });

  test("pages that lie on their side or on their head are read like others", async () => {
    for (const rotate of [90, 180, 270] as const) {
      const { text: markdown, pages } = await read([
        {
          rotate,
          items: [
            text("The first line of a page", { x: 72, y: 100 }),
            text("goes before its second one.", { x: 72, y: 114 }),
          ],
        },
      ]);
      assert.equal(markdown, "The first line of a page goes before its second one.", `${rotate}`);
      assert.equal(pages[0]!.needsOcr, false);
    }
  });

  test("a table that stands sideways is read after the text, a label in the margin is left out", async () => {
    const sideways = (words: string, x: number) => `BT /F0 10 Tf 0 1 -1 0 ${x} 100 Tm (${words}) Tj ET`;
    const rows = Array.from({ length: 6 }, (_, row) =>
      sideways(`Row ${row} of the wide table.`, 200 + row * 40),
    );
    const upright = "BT /F0 10 Tf 72 740 Td (Words above the table.) Tj ET";
    const whole = await readContent([upright, ...rows].join("\n"));
    assert.match(whole, /^Words above the table\.\s+Row 0 of the wide table\./);
    assert.match(whole, /Row 5 of the wide table\.$/);
    assert.equal(await readContent(`${upright} ${sideways("A label", 20)}`), "Words above the table.");
  });

  test("what was typed onto a page and into its fields is read, but no password", async () => {
    const field = (id: number, value: string, more = "") =>
      `${id} 0 obj\n<< /Type /Annot /Subtype /Widget /FT /Tx /T (${id}) /V (${value}) /Rect [72 600 300 620] ${more} >>\nendobj\n`;
    const source = makePdf({ pages: [{ items: [text("Name:", { x: 72, y: 90 })] }] })
      .toString("latin1")
      .replace("/Type /Catalog", "/Type /Catalog /AcroForm << /Fields [91 0 R 92 0 R] >>")
      .replace("/Type /Page ", "/Type /Page /Annots [90 0 R 91 0 R 92 0 R] ")
      .replace(
        "xref\n",
        `90 0 obj\n<< /Type /Annot /Subtype /FreeText /Contents (A remark) /Rect [72 500 300 520] >>\nendobj\n${field(91, "Ada Stone")}${field(92, "secret", "/Ff 8192")}xref\n`,
      );
    const file = await files.put("form.pdf", Buffer.from(source, "latin1"));
    assert.equal((await extract(extractor, file)).text, "Name:\n\nA remark\n\nAda Stone");
  });

  async function readContent(operators: string): Promise<string> {
    const stream = `<< /Length ${operators.length} >>\nstream\n${operators}\nendstream`;
    const source = makePdf({ pages: [{ items: [] }] }).toString("latin1");
    const changed = source.replace(/<< +\/Length[\s\S]*?endstream/, stream);
    return (await extract(extractor, await files.put("content.pdf", Buffer.from(changed, "latin1")))).text;
  }

  test("a page is drawn at 200 dpi and upright, and a huge one smaller", async () => {
    const sideways = { ...LETTER, rotate: 90 as const, items: [text("Turned", { x: 72, y: 72 })] };
    const huge = { width: 14_400, height: 14_400, items: [text("Huge", { x: 72, y: 72, size: 400 })] };
    const file = await files.put("drawn.pdf", makePdf({ pages: [{ items: [] }, sideways, huge] }));
    const sizes = [];
    for (const page of [1, 2, 3]) {
      const { format, width, height } = await sharp(await extractor.picture(file, page, signal)).metadata();
      sizes.push([format, width, height]);
    }
    assert.deepEqual(sizes.slice(0, 2), [
      ["png", 1700, 2200],
      ["png", 2200, 1700],
    ]);
    assert.ok((sizes[2]![1] as number) * (sizes[2]![2] as number) <= 50_000_000);
  });
});
