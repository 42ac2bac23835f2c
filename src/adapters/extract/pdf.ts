import { isQuarryError, messageOf, QuarryError } from "../../errors.ts";
import type { ExtractedPage, Inspection } from "../extract.ts";
import { findFurniture } from "./furniture.ts";
import type { ReaderLimits } from "./limits.ts";
import { withPdfCheck } from "./pdf-damage.ts";
import type { ParsedPdf, PdfEngine, PdfPageText } from "./pdf-engine.ts";
import { reasonOf } from "./reason.ts";
import { cleanText } from "./text.ts";
import { headingTitle } from "./titles.ts";
import { withoutFurniture } from "./without-furniture.ts";

/** Enough pages, in runs, to see what repeats: of a long document, the start, the middle and the end. */
const FIRST_PAGES = 8;
const LATER_RUNS = 2;
const RUN_PAGES = 6;

/** A page with less text and a picture all over it is a scan with a stamp on it. */
const LETTERS_OF_A_TEXT_PAGE = 50;
const SCAN_SHARE = 0.5;
/** Smaller than that it is a logo. */
const PICTURE_SHARE = 0.02;
const UNREADABLE_SHARE = 0.3;

/** Reads PDFs with the first engine that can. */
export class PdfReader {
  readonly #engines: readonly PdfEngine[];
  readonly #limits: ReaderLimits;

  constructor(engines: readonly PdfEngine[], limits: ReaderLimits) {
    this.#engines = engines;
    this.#limits = limits;
  }

  async inspect(path: string): Promise<Inspection> {
    const first = await this.#parse(path, range(1, FIRST_PAGES));
    const later = laterSample(first.pageCount);
    const more = later.length > 0 ? (await this.#parse(path, later)).pages : [];
    const sample = [...first.pages, ...more];
    const pageCount = await this.#countPages(path, first.pageCount, sample);
    this.#checkPageCount(pageCount);
    const furniture = findFurniture(sample);
    const [start] = first.pages;
    return {
      mediaType: "application/pdf",
      pageCount,
      title: start && headingTitle(withoutFurniture(start, furniture)),
      furniture,
    };
  }

  async read(
    path: string,
    request: { pages: readonly number[]; furniture: readonly string[] },
  ): Promise<ExtractedPage[]> {
    if (request.pages.length === 0) return [];
    const parsed = await this.#parse(path, request.pages);
    const found = new Map(parsed.pages.map((page) => [page.pageNumber, page]));
    return withPdfCheck(path, async (check) => {
      const pageCount = check?.pageCount ?? parsed.pageCount;
      const pages: ExtractedPage[] = [];
      for (const pageNumber of request.pages) {
        if (pageNumber < 1 || pageNumber > pageCount)
          throw new QuarryError("invalid_input", `has ${pageCount} pages; there is no page ${pageNumber}`);
        const page = found.get(pageNumber);
        // Perhaps it can still be drawn; if not, drawing it says what is wrong with this page, and with no other.
        const text = page ? pageText(page, request.furniture) : { pageNumber, markdown: "", needsOcr: true };
        const isBlank = text.markdown === "" && !text.needsOcr;
        const damage = await check?.text(pageNumber, { isBlank });
        if (damage === undefined) pages.push(text);
        else if (request.pages.length === 1) throw damaged(pageNumber, damage);
      }
      return pages;
    });
  }

  async picture(path: string, pageNumber: number): Promise<Uint8Array> {
    const damage = await withPdfCheck(path, async (check) => check?.picture(pageNumber));
    if (damage !== undefined) throw damaged(pageNumber, damage);
    return this.#withFirst((engine) => engine.draw(path, pageNumber, this.#limits));
  }

  async #parse(path: string, pageNumbers: readonly number[]): Promise<ParsedPdf> {
    const parsed = await this.#withFirst((engine) => engine.parse(path, pageNumbers));
    if (parsed.pageCount < 1) throw new QuarryError("file_unreadable", "is a PDF without pages");
    return parsed;
  }

  /** A document whose last page is not there may have miscounted; the other engine counts in its own way. */
  async #countPages(path: string, claimed: number, sample: readonly PdfPageText[]): Promise<number> {
    const sure = await withPdfCheck(path, async (check) => check?.pageCount);
    if (sure !== undefined) return sure;
    const counts = [claimed];
    if (sample.at(-1)?.pageNumber !== claimed)
      for (const engine of this.#engines.slice(1))
        counts.push(
          await engine.parse(path, []).then(
            ({ pageCount }) => pageCount,
            () => claimed,
          ),
        );
    return Math.max(sample.at(-1)?.pageNumber ?? 1, Math.min(...counts));
  }

  #checkPageCount(pageCount: number): void {
    if (pageCount > this.#limits.pagesMax)
      throw new QuarryError(
        "file_too_large",
        `has ${pageCount} pages; at most ${this.#limits.pagesMax} are read. Split it, or raise QUARRY_PAGES_MAX`,
      );
  }

  async #withFirst<T>(work: (engine: PdfEngine) => Promise<T>): Promise<T> {
    let failure: unknown;
    for (const engine of this.#engines) {
      try {
        return await work(engine);
      } catch (error) {
        // The one that is asked first knows best what is wrong.
        failure ??= error;
        if (isLocked(error)) break;
      }
    }
    throw explained(failure);
  }
}

function explained(failure: unknown): QuarryError {
  if (isQuarryError(failure)) return failure;
  if (isLocked(failure))
    return new QuarryError(
      "file_encrypted",
      "is protected by a password; save it without one and hand it in again",
      { cause: failure },
    );
  return new QuarryError(
    "file_unreadable",
    `is not a readable PDF: ${reasonOf(failure)}. Open it in a viewer and save it again, or hand in another copy`,
    {
      cause: failure,
    },
  );
}

function damaged(pageNumber: number, what: string): QuarryError {
  return new QuarryError(
    "file_unreadable",
    `is damaged on page ${pageNumber}: ${what}. Hand in another copy of it`,
  );
}

function isLocked(error: unknown): boolean {
  return /password/i.test(messageOf(error));
}

function laterSample(pageCount: number): number[] {
  const sample = new Set<number>();
  for (let run = 1; run <= LATER_RUNS; run++) {
    const start = Math.floor(((pageCount - RUN_PAGES) * run) / LATER_RUNS) + 1;
    for (const page of range(start, start + RUN_PAGES - 1))
      if (page > FIRST_PAGES && page <= pageCount) sample.add(page);
  }
  return [...sample].sort((a, b) => a - b);
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, position) => first + position);
}

function pageText(page: PdfPageText, furniture: readonly string[]): ExtractedPage {
  const { pageNumber, typedOn } = page;
  const printed = printedText(page, furniture);
  // What somebody typed onto a scan does not say what the scan says.
  const markdown = [printed.markdown, cleanText(typedOn)].filter((part) => part !== "").join("\n\n");
  return { pageNumber, markdown, needsOcr: printed.needsOcr };
}

function printedText(
  page: PdfPageText,
  furniture: readonly string[],
): Pick<ExtractedPage, "markdown" | "needsOcr"> {
  const { pictureShare } = page;
  if (isGarbled(page.markdown)) return { markdown: "", needsOcr: true };
  const markdown = cleanText(withoutFurniture(page, furniture));
  const letters = markdown.match(/[\p{L}\p{N}]/gu)?.length ?? 0;
  if (letters === 0) return { markdown: "", needsOcr: pictureShare >= PICTURE_SHARE || page.isDrawing };
  return { markdown, needsOcr: letters < LETTERS_OF_A_TEXT_PAGE && pictureShare >= SCAN_SHARE };
}

/** Fonts without a table of their letters give code points that mean nothing, control characters among them. */
function isGarbled(text: string): boolean {
  const visible = text.match(/\S/gu)?.length ?? 0;
  const unreadable = text.match(/(?!\s)[\ufffd\p{Co}\p{Cn}\p{Cc}]/gu)?.length ?? 0;
  return visible > 0 && unreadable / visible > UNREADABLE_SHARE;
}
