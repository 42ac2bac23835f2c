import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { basename, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { FLOOD_REPORT } from "../../scripts/samples/flood-report.ts";
import { openExtractor } from "../../src/adapters/extract/local.ts";
import type { Extractor } from "../../src/adapters/extract.ts";
import { openTesseract } from "../../src/adapters/ocr/tesseract.ts";
import type { Ocr } from "../../src/adapters/ocr.ts";
import { characterErrorRate } from "../support/error-rate.ts";
import { PASSAGE_QUESTIONS, PASSAGES } from "./corpus.ts";
import { SAMPLE_QUESTIONS, saysPassage } from "./questions.ts";

const SAMPLES = join(import.meta.dirname, "../../samples");

describe("the sample documents", () => {
  let extractor: Extractor;
  let ocr: Ocr;
  /** Pages by file. */
  const texts = new Map<string, readonly string[]>();
  const scanned = new Set<string>();

  before(async () => {
    extractor = openExtractor({ processes: 1 });
    ocr = await openTesseract({ languages: ["eng"], threads: 2 });
    for (const file of globSync("**/*.*", { cwd: SAMPLES })) texts.set(file, await read(file));
  });
  after(async () => {
    await extractor.close();
    await ocr.close();
  });

  async function read(name: string): Promise<string[]> {
    const { signal } = new AbortController();
    const file = { path: join(SAMPLES, name), filename: basename(name) };
    const { pageCount, furniture } = await extractor.inspect(file, signal);
    const numbers = Array.from({ length: pageCount }, (_, position) => position + 1);
    const pages = await extractor.read(file, { pages: numbers, furniture }, signal);
    return Promise.all(
      pages.map(async ({ pageNumber, markdown, needsOcr }) => {
        if (!needsOcr) return markdown;
        scanned.add(name);
        return (await ocr.recognise(await extractor.picture(file, pageNumber, signal), signal)).markdown;
      }),
    );
  }

  it("answer each question in one file and in no other", () => {
    for (const { question, expect } of SAMPLE_QUESTIONS) {
      const files = [...texts].filter(([, pages]) => pages.some((page) => saysPassage(page, expect.passage)));
      assert.deepEqual(
        files.map(([file]) => file),
        [expect.file],
        question,
      );
    }
  });

  it("are asked for words, for meaning and for names", () => {
    const kinds = Object.groupBy(SAMPLE_QUESTIONS, ({ by }) => by);
    for (const questions of Object.values(kinds)) assert.ok(questions.length >= 10);
    assert.equal(new Set(SAMPLE_QUESTIONS.map(({ question }) => question)).size, SAMPLE_QUESTIONS.length);
  });

  it("hold a scan that only OCR can read, and it is read well", (t) => {
    const file = "archive/flood-report-1952.pdf";
    assert.deepEqual([...scanned], [file]);
    const rate = characterErrorRate({
      expected: FLOOD_REPORT.flat().join(" "),
      read: texts.get(file)!.join(" "),
    });
    t.diagnostic(`${(rate * 100).toFixed(2)} % of the characters are wrong`);
    assert.ok(rate <= 0.02);
  });
});

describe("the passages for measuring retrieval", () => {
  it("are many, and each question has its passage", () => {
    assert.ok(PASSAGES.length >= 120);
    assert.ok(PASSAGE_QUESTIONS.length >= 60);
    assert.equal(new Set(PASSAGES.map(({ text }) => text)).size, PASSAGES.length);
    const ids = new Set(PASSAGES.map(({ id }) => id));
    for (const { passageId } of PASSAGE_QUESTIONS) assert.ok(ids.has(passageId), passageId);
  });
});
