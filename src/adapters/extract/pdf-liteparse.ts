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
  extractAnnotations: true,
  extractFormFields: true,
  maxPages: 1_000_000,
  quiet: true,
};
const POINTS_PER_INCH = 72;
/** So it writes a page without text. */
const EMPTY_FENCE = /^```\w*\n\s*```$/gm;
/** The lines around a table, taken for rules of the page. */
const EDGE_OF_TABLE = /(?<=\|\n\n)---(?:\n\n|$)|(?<=^|\n\n)---\n\n(?=\|)/g;

/** Sideways, as landscape tables stand on upright pages. Less is a label of a diagram or a stamp in the margin. */
const SIDEWAYS_LETTERS_MIN = 100;

const ANGLES = [0, 90, 180, 270] as const;
type Angle = (typeof ANGLES)[number];

/** PDFium with layout analysis: reading order, headings, lists and tables. The path has to end in `.pdf`. */
export const liteparseEngine: PdfEngine = {
  name: "liteparse",
  async parse(path, pageNumbers) {
    const { totalPages, pages } = await parseAt(0, path, pageNumbers);
    const views = new Map(pages.map((page) => [page.pageNum, anglesOf(page)]));
    const seen = new Map(pages.map((page) => [`${page.pageNum} 0`, page]));
    for (const angle of ANGLES.slice(1)) {
      const turned = pages.map(({ pageNum }) => pageNum).filter((page) => views.get(page)!.includes(angle));
      if (turned.length === 0) continue;
      for (const page of (await parseAt(angle, path, turned)).pages)
        seen.set(`${page.pageNum} ${angle}`, page);
    }
    return {
      pageCount: totalPages,
      pages: pages.map((page) =>
        pageOf(
          page,
          views.get(page.pageNum)!.flatMap((angle) => seen.get(`${page.pageNum} ${angle}`) ?? []),
        ),
      ),
    };
  },
  async draw(path, pageNumber, { pixelsMax }) {
    const { pages } = await parseAt(0, path, [pageNumber]);
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

/** Text that stands at another angle is missing from the Markdown, or in the wrong order. */
function parseAt(angle: Angle, path: string, pageNumbers: readonly number[]) {
  return new LiteParse({
    ...SETTINGS,
    targetPages: pageNumbers.join(","),
    pageOrientationCorrections: angle === 0 ? [] : pageNumbers.map((page) => ({ page, angle })),
  }).parse(path);
}

/**
 * From which sides the page has to be looked at. Headers stand upright, also above a table that lies on its side, so
 * that view comes first where there is one.
 */
function anglesOf(page: ParsedPage): Angle[] {
  const letters = { 0: 0, 90: 0, 180: 0, 270: 0 };
  for (const item of page.textItems) letters[angleOf(item)] += item.text.length;
  const upright = letters[180] > letters[0] ? 180 : 0;
  const least = letters[upright] > 0 ? SIDEWAYS_LETTERS_MIN : 1;
  const sideways = ([90, 270] as const).filter((angle) => letters[angle] >= least);
  return letters[upright] > 0 || sideways.length === 0 ? [upright, ...sideways] : sideways;
}

function angleOf({ rotation = 0 }: ParsedPage["textItems"][number]): Angle {
  return ANGLES[(Math.round(rotation / 90) + ANGLES.length) % ANGLES.length] ?? 0;
}

/** `views` are the same page from its different sides. */
function pageOf(page: ParsedPage, views: readonly ParsedPage[]): PdfPageText {
  const { complexity } = page;
  const main = views[0] ?? page;
  return {
    pageNumber: page.pageNum,
    height: main.height,
    markdown: joined(views.map(({ markdown }) => plainMarkdown(markdown))),
    typedOn: joined(typedOn(page)),
    segments: main.textItems
      .filter((item) => angleOf(item) === 0)
      .map(({ text, y, height, fontName }) => ({
        text,
        top: y,
        bottom: y + height,
        isBold: /bold|black|heavy/i.test(fontName ?? ""),
      })),
    pictureShare: complexity?.fullPageImage ? 1 : (complexity?.imageCoverage ?? 0),
    isDrawing: page.contentBounds !== undefined && page.textItems.length === 0,
  };
}

function plainMarkdown(markdown: string): string {
  return markdown.replaceAll(EMPTY_FENCE, "").replaceAll(EDGE_OF_TABLE, "");
}

function joined(parts: readonly string[]): string {
  return parts.filter((part) => part.trim() !== "").join("\n\n");
}

/** As PDF numbers the flags of a field. */
const PASSWORD_FLAG = 1 << 13;

function typedOn(page: ParsedPage): string[] {
  const remarks = page.annotations?.filter(({ subtype }) => subtype === "freetext") ?? [];
  const fields = (page.formFields ?? []).filter(
    ({ type, fieldFlags }) => type === "text" && (fieldFlags & PASSWORD_FLAG) === 0,
  );
  const withoutSpaces = (words: string) => words.replaceAll(/\s+/g, "");
  // A field that shows its value has it in the text of the page too.
  const text = withoutSpaces(page.text);
  return [...remarks.map(({ contents = "" }) => contents), ...fields.map(({ value = "" }) => value)].filter(
    (words) => !text.includes(withoutSpaces(words)),
  );
}
