import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readLayout } from "../../../src/adapters/ocr/layout.ts";

const LETTER = 10;
const HEIGHT = 16;

interface Block {
  /** Each a list of lines. Several spaces are as wide as they look. */
  readonly paragraphs: readonly (readonly string[])[];
  readonly confidence?: number;
}

/** What the engine would say of such a page, all letters being equally wide. */
function tsv(...blocks: readonly Block[]): string {
  const rows: (readonly (string | number)[])[] = [];
  for (const [block, { paragraphs, confidence = 95 }] of blocks.entries()) {
    const width = Math.max(...paragraphs.flat().map((line) => line.length)) * LETTER;
    rows.push([2, 1, block, 0, 0, 0, 100, 0, width, 500, -1, ""]);
    for (const [paragraph, lines] of paragraphs.entries())
      for (const [line, words] of lines.entries())
        for (const { 0: text, index } of words.matchAll(/\S+/g)) {
          const left = 100 + index * LETTER;
          const place = [left, line * 20, text.length * LETTER, HEIGHT];
          rows.push([5, 1, block, paragraph, line, index, ...place, confidence, text]);
        }
  }
  return rows.map((row) => row.join("\t")).join("\n");
}

function markdownOf(...paragraphs: readonly (readonly string[])[]): string {
  return readLayout(tsv({ paragraphs })).markdown;
}

describe("the layout of recognised text", () => {
  it("joins the lines of a paragraph and keeps paragraphs apart", () => {
    assert.equal(
      markdownOf(["The old bridge was", "closed in autumn."], ["It reopened in May", "with a toll."]),
      "The old bridge was closed in autumn.\n\nIt reopened in May with a toll.",
    );
  });

  it("undoes hyphenation, but keeps the hyphen of a name", () => {
    assert.equal(
      markdownOf(["They repaired the weigh-", "bridge and the Saint-", "Omer road."]),
      "They repaired the weighbridge and the Saint-Omer road.",
    );
  });

  it("keeps lines that were ended on purpose", () => {
    assert.equal(
      markdownOf(["Harbour Office", "3 Quay", "A very long line shows how wide it is."]),
      "Harbour Office\n3 Quay\nA very long line shows how wide it is.",
    );
  });

  it("keeps the rows of a table apart", () => {
    assert.equal(
      markdownOf([
        "Bench      Blocks     Tonnes",
        "North face     42        510",
        "South face     17        204",
      ]),
      "Bench Blocks Tonnes\nNorth face 42 510\nSouth face 17 204",
    );
  });

  it("makes lists of items, whatever the bullets were taken for", () => {
    assert.equal(
      markdownOf(["Bring:"], ["« a rope of twenty", "metres"], ["e two lamps"], ["* bread"], ["Then wait."]),
      "Bring:\n\n- a rope of twenty metres\n- two lamps\n- bread\n\nThen wait.",
    );
    assert.equal(
      markdownOf(["1. Open the valve.", "2. Read the gauge and", "note it.", "3) Close."]),
      "1. Open the valve.\n2. Read the gauge and note it.\n3. Close.",
    );
  });

  it("takes a letter or a number for what it is where there is no list", () => {
    assert.equal(markdownOf(["e is a number, too,"], ["Built in the year"]).includes("- "), false);
    assert.equal(
      markdownOf(["The survey ended in", "12. It was late."]),
      "The survey ended in 12. It was late.",
    );
  });

  it("goes on with a sentence that the end of a column tore apart", () => {
    const first = { paragraphs: [["Work on the lower", "gallery was stop-"]] };
    const second = { paragraphs: [["ped by a flood and"], ["never taken up again."]] };
    assert.equal(
      readLayout(tsv(first, second)).markdown,
      "Work on the lower gallery was stopped by a flood and never taken up again.",
    );
  });

  it("leaves out what nobody could read, and says how sure it is of the rest", () => {
    const page = tsv(
      { paragraphs: [["Clear print."]], confidence: 90 },
      { paragraphs: [["%j a8 Vu"]], confidence: 12 },
      { paragraphs: [["— ~ |"]], confidence: 80 },
    );
    const { markdown, confidence } = readLayout(page);
    assert.equal(markdown, "Clear print.");
    assert.equal(confidence.toFixed(6), "0.900000");
    assert.deepEqual(readLayout(""), { markdown: "", confidence: 0 });
  });

  it("lets nothing on the page become Markdown by chance", () => {
    assert.equal(markdownOf(["# 12 is the pump"], ["> 4 bar"]), "\\# 12 is the pump\n\n\\> 4 bar");
  });

  it("puts no space between Chinese words", () => {
    assert.equal(markdownOf(["采石场 位于 north 山谷", "东面 A1"]), "采石场位于 north 山谷东面 A1");
  });
});
