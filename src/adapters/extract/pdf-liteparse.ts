import { LiteParse, type LiteParseConfig, type ParsedPage } from "@llamaindex/liteparse";
import { type PdfEngine, type PdfPageText, PICTURE_DPI } from "./pdf-engine.ts";

const SETTINGS: Partial<LiteParseConfig> = {
  outputFormat: "markdown",
  ocrEnabled: false,
  imageMode: "off",
  extractLinks: false,
  // Its own removal takes titles that repeat, and sees only the pages of one call.
  keepHeadersFooters: true,
  continueOnPageError: true,
  includeComplexity: true,
  extractContentBounds: true,
  maxPages: 1_000_000,
  quiet: true,
};
const POINTS_PER_INCH = 72;
/** So it writes a page without text. */
const EMPTY_FENCE = /^```\w*\n\s*```$/gm;
/** The lines around a table, taken for rules of the page. */
const EDGE_OF_TABLE = /(?<=\|\n\n)---(?:\n\n|$)|(?<=^|\n\n)---\n\n(?=\|)/g;

/** PDFium with layout analysis: reading order, headings, lists and tables. The path has to end in `.pdf`. */
export const liteparseEngine: PdfEngine = {
  name: "liteparse",
  async parse(path, pageNumbers) {
    const result = await new LiteParse({ ...SETTINGS, targetPages: pageNumbers.join(",") }).parse(path);
    return { pageCount: result.totalPages, pages: result.pages.map(pageOf) };
  },
  async draw(path, pageNumber, { pixelsMax }) {
    const { pages } = await new LiteParse({ ...SETTINGS, targetPages: `${pageNumber}` }).parse(path);
    const [page] = pages;
    if (!page) throw new Error(`page ${pageNumber} is missing or damaged`);
    const inches = (page.width / POINTS_PER_INCH) * (page.height / POINTS_PER_INCH);
    const dpi = Math.min(PICTURE_DPI, Math.floor(Math.sqrt(pixelsMax / inches)));
    const [picture] = await new LiteParse({ ...SETTINGS, dpi: Math.max(1, dpi) }).screenshot(path, [
      pageNumber,
    ]);
    if (!picture) throw new Error(`page ${pageNumber} cannot be drawn`);
    return picture.imageBuffer;
  },
};

function pageOf(page: ParsedPage): PdfPageText {
  const { complexity } = page;
  return {
    pageNumber: page.pageNum,
    height: page.height,
    markdown: page.markdown.replaceAll(EMPTY_FENCE, "").replaceAll(EDGE_OF_TABLE, ""),
    segments: page.textItems.map(({ text, y, height, fontName }) => ({
      text,
      top: y,
      bottom: y + height,
      isBold: /bold|black|heavy/i.test(fontName ?? ""),
    })),
    pictureShare: complexity?.fullPageImage ? 1 : (complexity?.imageCoverage ?? 0),
    isDrawing: page.contentBounds !== undefined && page.textItems.length === 0,
  };
}
