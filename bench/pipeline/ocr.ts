import { writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { basename, join } from "node:path";
import { FLOOD_REPORT } from "../../scripts/samples/flood-report.ts";
import { openExtractor } from "../../src/adapters/extract/local.ts";
import { openTesseract } from "../../src/adapters/ocr/tesseract.ts";
import { makePdf, scan } from "../../test/support/make-pdf.ts";
import { drawPages, printedPage } from "../../test/support/scan.ts";
import { compareRates, type Figure, median } from "../figures.ts";
import { progress } from "../progress.ts";
import { SCAN } from "./corpus.ts";
import { eachOf } from "./plain-batches.ts";
import { openQuarryContender } from "./quarry.ts";
import type { Scene } from "./scene.ts";

/** A scanned document: how fast pages are read that are only pictures, and what Quarry adds to that. */
export async function scannedPages({ folder, scale }: Scene): Promise<Figure[]> {
  const path = scale.isScanWhole ? SCAN : await writeShortScan(join(folder, "scan.pdf"));
  const ours: number[] = [];
  const plain: number[] = [];
  for (let round = 1; round <= scale.scanRounds; round++) {
    ours.push(await withQuarry(join(folder, `scan-${round}`), path));
    plain.push(await byHand(path));
    progress(`pages/s: quarry ${ours.at(-1)!.toFixed(3)}, by hand ${plain.at(-1)!.toFixed(3)}`);
  }
  return [
    compareRates({
      measure: "scan to index",
      unit: "pages/s",
      quarry: median(ours),
      peer: "OCR alone",
      peerValue: median(plain),
      goal: null,
      note: "the same parts draw and recognise the pages; nothing is embedded or stored",
    }),
  ];
}

async function writeShortScan(path: string): Promise<string> {
  const page = printedPage(FLOOD_REPORT[0]!.slice(0, 5), { font: "mono", size: 11 });
  const pages = (await drawPages([page], 150)).map(({ pixels, width, height }) =>
    scan({ gray: pixels, width, height }),
  );
  await writeFile(path, makePdf({ pages }));
  return path;
}

async function withQuarry(folder: string, path: string): Promise<number> {
  const quarry = await openQuarryContender({ name: "quarry", folder, upTo: "vector" });
  try {
    const startedAt = performance.now();
    await quarry.take([path]);
    const { pages } = await quarry.amounts();
    return (pages / (performance.now() - startedAt)) * 1_000;
  } finally {
    await quarry.close();
  }
}

async function byHand(path: string): Promise<number> {
  const threads = Math.max(1, availableParallelism() - 1);
  const extractor = openExtractor();
  const ocr = await openTesseract({ languages: ["eng"], threads });
  const signal = new AbortController().signal;
  try {
    const startedAt = performance.now();
    const file = { path, filename: basename(path) };
    const { pageCount } = await extractor.inspect(file, signal);
    const pages = Array.from({ length: pageCount }, (_, position) => position + 1);
    await eachOf(pages, threads, async (page) => {
      await ocr.recognise(await extractor.picture(file, page, signal), signal);
    });
    return (pageCount / (performance.now() - startedAt)) * 1_000;
  } finally {
    await extractor.close();
    await ocr.close();
  }
}
