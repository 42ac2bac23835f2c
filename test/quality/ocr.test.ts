import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { openTesseract } from "../../src/adapters/ocr/tesseract.ts";
import type { Ocr } from "../../src/adapters/ocr.ts";
import { characterErrorRate } from "../support/error-rate.ts";
import type { PdfFont } from "../support/make-pdf.ts";
import { toPng } from "../support/png.ts";
import { drawPages, printedPage, type Wear, wear } from "../support/scan.ts";

const PARAGRAPHS = [
  "MINUTES OF THE MEETING OF 14 MARCH 1987",
  "Present were Mrs. Adela Quist (chair), Mr. J. P. Okonkwo, Dr. Ruth Fairweather and the harbour master, " +
    "Capt. Lindqvist. The minutes of the last meeting were read and, after two corrections on page 3, signed.",
  "The treasurer reported an income of £18,412.60 against costs of £16,977.05, which leaves a balance of " +
    '£1,435.55; the roof of the boathouse (estimate no. 72/B) will take most of it. "We have never begun a winter ' +
    'with less," he said, and asked that no further orders be placed before May.',
  "Dr. Fairweather described the damage to the sea wall: 46 metres of coping are loose, 12 of them at the slip, " +
    "and the joint between bays 7 and 8 opens by 9 mm at every spring tide. Should it fail, the lower store would " +
    "stand in water within the hour. She recommends grouting at once & a survey of the footings in June.",
  "It was resolved, by five votes to one, to accept the tender of Messrs. Haldane & Pike, provided that the work " +
    "is finished by 30 September and that the footpath stays open to the public on Saturdays and Sundays.",
];

interface Print {
  readonly font: PdfFont;
  readonly size: number;
}

const COMMON: readonly Print[] = [
  { font: "regular", size: 11 },
  { font: "serif", size: 12 },
];
const ALL: readonly Print[] = [...COMMON, { font: "mono", size: 10 }, { font: "regular", size: 9 }];

interface Scan {
  readonly name: string;
  readonly prints: readonly Print[];
  /** Finer than the scanner's sensor, which `wear` imitates by shrinking. */
  readonly drawDpi: number;
  readonly wear: Wear;
  readonly errorsMax: number;
}

const SCANS: readonly Scan[] = [
  { name: "a clean scan at 300 dpi", prints: COMMON, drawDpi: 300, wear: {}, errorsMax: 0.02 },
  { name: "a clean scan at 200 dpi", prints: ALL, drawDpi: 400, wear: { shrink: 2 }, errorsMax: 0.02 },
  {
    name: "a scan at 150 dpi, askew by 1°, gray and noisy",
    prints: ALL,
    drawDpi: 300,
    wear: { shrink: 2, skewDegrees: 1, noise: 14, paper: 232, ink: 48 },
    errorsMax: 0.06,
  },
  {
    name: "a scan at 200 dpi, askew by 4°",
    prints: COMMON,
    drawDpi: 400,
    wear: { shrink: 2, skewDegrees: -4, noise: 6 },
    errorsMax: 0.06,
  },
  {
    name: "a fax at 100 dpi, askew by 1°, gray and noisy",
    prints: COMMON,
    drawDpi: 300,
    wear: { shrink: 3, skewDegrees: 1, noise: 14, paper: 232, ink: 48 },
    errorsMax: 0.06,
  },
];

describe("the quality of OCR", () => {
  let ocr: Ocr;
  before(async () => {
    ocr = await openTesseract({ languages: ["eng"], threads: 2 });
  });
  after(() => ocr.close());

  for (const scan of SCANS)
    it(`${scan.name} is read with at most ${scan.errorsMax * 100} % wrong characters`, async (t) => {
      const pages = scan.prints.map((print) => printedPage(PARAGRAPHS, print));
      const pictures = (await drawPages(pages, scan.drawDpi)).map((page) => toPng(wear(page, scan.wear)));
      const read = await Promise.all(pictures.map((picture) => ocr.recognise(picture, t.signal)));
      const rates = read.map(({ markdown }) =>
        characterErrorRate({ expected: PARAGRAPHS.join(" "), read: markdown }),
      );
      for (const [position, { font, size }] of scan.prints.entries())
        t.diagnostic(
          `${font} ${size} pt: ${percent(rates[position]!)} wrong, confidence ${percent(read[position]!.confidence)}`,
        );
      const mean = rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
      t.diagnostic(`on average ${percent(mean)} wrong`);
      assert.ok(mean <= scan.errorsMax, `${percent(mean)} of the characters are wrong`);
    });
});

function percent(share: number): string {
  return `${(share * 100).toFixed(2)} %`;
}
