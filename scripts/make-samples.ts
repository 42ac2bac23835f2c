import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeDocx } from "../test/support/make-docx.ts";
import { makePdf, type PdfPage, scan } from "../test/support/make-pdf.ts";
import type { Gray } from "../test/support/png.ts";
import { drawPages, printedPage, wear } from "../test/support/scan.ts";
import { typeset } from "../test/support/typeset.ts";
import { FLOOD_REPORT } from "./samples/flood-report.ts";
import { HANDBOOK, HANDBOOK_TITLE } from "./samples/handbook.ts";
import { SURVEY, SURVEY_TITLE } from "./samples/survey.ts";

/** Writes the PDF and DOCX files of samples/. The same every time; the other files there are written by hand. */
const SAMPLES = join(import.meta.dirname, "../samples");
const SHADE_STEP = 17;

save("survey/geological-survey.pdf", makePdf({ title: SURVEY_TITLE, pages: surveyPages() }));
save("archive/flood-report-1952.pdf", makePdf({ pages: await scannedPages() }));
save("handbook/employee-handbook.docx", makeDocx({ title: HANDBOOK_TITLE, blocks: HANDBOOK }));

function save(file: string, bytes: Uint8Array): void {
  writeFileSync(join(SAMPLES, file), bytes);
  console.log(`samples/${file}: ${bytes.length} bytes`);
}

function surveyPages(): PdfPage[] {
  const pages: PdfPage[] = [];
  for (const { columns, blocks } of SURVEY) {
    const before = pages.length;
    const style = {
      columns,
      header: () => "Northmoor Geological Survey    Report NGS 24/117",
      footer: (page: number) => `Hollin Edge    Confidential    Page ${before + page}`,
    };
    pages.push(...typeset(blocks, style));
  }
  return pages;
}

/** Typewritten, laid on the glass by hand, and scanned at 150 dpi. */
async function scannedPages(): Promise<PdfPage[]> {
  const typed = FLOOD_REPORT.map((paragraphs) => printedPage(paragraphs, { font: "mono", size: 11 }));
  const pages = await drawPages(typed, 300);
  return pages.map((page, position) => {
    const skewDegrees = position % 2 === 0 ? 0.8 : -0.6;
    const worn = wear(page, { skewDegrees, shrink: 2, noise: 5, paper: 239, ink: 38, seed: position + 1 });
    const { width, height, pixels } = inFewShades(worn);
    return scan({ gray: pixels, width, height });
  });
}

/** Sixteen shades are enough for the eye and for OCR, and make a third of the bytes. */
function inFewShades(page: Gray): Gray {
  return { ...page, pixels: page.pixels.map((shade) => Math.round(shade / SHADE_STEP) * SHADE_STEP) };
}
