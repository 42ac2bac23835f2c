import { readFileSync, statSync } from "node:fs";
import { extractImages, getDocumentProxy, getResolvedPDFJS } from "unpdf";
import { QuarryError } from "../../errors.ts";
import type { PdfEngine, PdfPageText } from "./pdf-engine.ts";
import { markdownOf, type Run, type TextLine, textLines } from "./pdf-lines.ts";
import { encodePng } from "./png.ts";
import { rememberByFile } from "./remember.ts";

/** With less text than this on it, a page is searched for pictures; that decodes them and is slow. */
const LETTERS_OF_A_TEXT_PAGE = 100;
const TITLE_BYTES_MAX = 128 * 2 ** 20;

type Document = Awaited<ReturnType<typeof getDocumentProxy>>;
type Page = Awaited<ReturnType<Document["getPage"]>>;

const open = rememberByFile(
  1,
  (path) => getDocumentProxy(new Uint8Array(readFileSync(path)), { verbosity: 0 }),
  (document) => void document.destroy(),
);

/**
 * PDF.js: plain JavaScript, so it runs where the native engine does not. Text comes in the order in which it was
 * written; headings are told by their size.
 */
export const unpdfEngine: PdfEngine = {
  name: "unpdf",
  async parse(path, pageNumbers) {
    const document = await open(path);
    const pages: PdfPageText[] = [];
    for (const pageNumber of pageNumbers) {
      if (pageNumber > document.numPages) continue;
      const page = await document.getPage(pageNumber).catch(() => undefined);
      const text = page && (await pageOf(page, pageNumber).catch(() => undefined));
      if (text) pages.push(text);
      page?.cleanup();
    }
    return { pageCount: document.numPages, pages };
  },

  /** It cannot draw; but the one picture on the page of a scan is the page. */
  async draw(path, pageNumber, { pixelsMax }) {
    const images = await extractImages(await open(path), pageNumber);
    const [largest] = images.sort((a, b) => b.width * b.height - a.width * a.height);
    if (!largest || largest.width * largest.height > pixelsMax)
      throw new QuarryError(
        "file_unsupported",
        `page ${pageNumber} cannot be drawn: that needs @llamaindex/liteparse, which cannot read this file here`,
      );
    return encodePng(largest);
  },
};

/** The document's own title, as its author's program wrote it. Not worth reading hundreds of megabytes for. */
export async function pdfTitle(path: string): Promise<string | undefined> {
  if (statSync(path).size > TITLE_BYTES_MAX) return undefined;
  const { info } = await (await open(path)).getMetadata();
  const title = (info as { Title?: unknown }).Title;
  return typeof title === "string" ? title : undefined;
}

async function pageOf(page: Page, pageNumber: number): Promise<PdfPageText> {
  const viewport = page.getViewport({ scale: 1 });
  const { items } = await page.getTextContent();
  const runs: Run[] = [];
  for (const item of items) {
    if (!("str" in item) || item.str.trim() === "") continue;
    const [, , c, d, e, f] = item.transform as [number, number, number, number, number, number];
    const [x, y] = viewport.convertToViewportPoint(e, f) as [number, number];
    runs.push({ text: item.str, x, y, width: item.width, size: Math.hypot(c, d) || 1 });
  }
  const lines = textLines(runs);
  const letters = lines.reduce((sum, { text }) => sum + text.length, 0);
  const painted =
    letters < LETTERS_OF_A_TEXT_PAGE ? await paintedOn(page) : { pictures: false, drawing: false };
  return {
    pageNumber,
    height: viewport.height,
    markdown: markdownOf(lines),
    typedOn: "",
    segments: lines.map(segmentOf),
    pictureShare: painted.pictures ? 1 : 0,
    isDrawing: lines.length === 0 && (painted.pictures || painted.drawing),
  };
}

function segmentOf({ text, y, size }: TextLine): PdfPageText["segments"][number] {
  return { text, top: y - size, bottom: y, isBold: false };
}

async function paintedOn(page: Page): Promise<{ pictures: boolean; drawing: boolean }> {
  const { OPS } = await getResolvedPDFJS();
  const { fnArray } = await page.getOperatorList();
  const uses = (...operations: number[]) => fnArray.some((operation) => operations.includes(operation));
  return {
    pictures: uses(
      OPS.paintImageXObject,
      OPS.paintInlineImageXObject,
      OPS.paintImageMaskXObject,
      OPS.paintImageXObjectRepeat,
    ),
    drawing: uses(OPS.constructPath, OPS.shadingFill),
  };
}
