import { LETTER, line, type PdfItem, type PdfPage, text } from "./make-pdf.ts";

/** What a document consists of; `typeset` lays it out on as many pages as it needs. */
export type PdfBlock =
  | { readonly heading: string; readonly level?: 1 | 2 | 3 }
  | { readonly paragraph: string }
  | { readonly bullets: readonly string[] }
  | { readonly table: readonly (readonly string[])[] }
  | { readonly break: "page" };

export interface PageStyle {
  /** The running head of each page, given its number. */
  readonly header?: (pageNumber: number) => string;
  readonly footer?: (pageNumber: number) => string;
  readonly columns?: 1 | 2;
}

const MARGIN = 72;
const GUTTER = 24;
const LEADING = 14;
const BODY_SIZE = 11;
const HEADING_SIZES = [20, 16, 13] as const;
/** Near enough to Helvetica: lines stay inside their column. */
const LETTER_WIDTH = 0.52;

export function typeset(blocks: readonly PdfBlock[], style: PageStyle = {}): PdfPage[] {
  const sheet = new Sheet(style);
  for (const block of blocks) {
    if ("heading" in block) {
      const size = HEADING_SIZES[(block.level ?? 1) - 1]!;
      sheet.space(size);
      sheet.lines([block.heading], { size, font: "bold" });
    } else if ("paragraph" in block) {
      sheet.lines(wrap(block.paragraph, sheet.columnWidth), { size: BODY_SIZE });
    } else if ("bullets" in block) {
      sheet.lines(
        block.bullets.map((bullet) => `• ${bullet}`),
        { size: BODY_SIZE, indent: 12 },
      );
    } else if ("table" in block) sheet.table(block.table);
    else sheet.nextPage();
    sheet.space(10);
  }
  return sheet.finish();
}

class Sheet {
  readonly columnWidth: number;
  readonly #style: PageStyle;
  readonly #pages: PdfItem[][] = [[]];
  #column = 0;
  #y = MARGIN;

  constructor(style: PageStyle) {
    this.#style = style;
    const columns = style.columns ?? 1;
    this.columnWidth = (LETTER.width - 2 * MARGIN - (columns - 1) * GUTTER) / columns;
  }

  space(height: number): void {
    if (this.#y > MARGIN) this.#y += height;
  }

  lines(words: readonly string[], as: { size: number; font?: "bold"; indent?: number }): void {
    for (const one of words) {
      this.#room(LEADING);
      this.#y += Math.max(LEADING, as.size * 1.2);
      this.#put(
        text(one, {
          x: this.#x + (as.indent ?? 0),
          y: this.#y,
          size: as.size,
          ...(as.font && { font: as.font }),
        }),
      );
    }
  }

  table(rows: readonly (readonly string[])[]): void {
    const width = this.columnWidth / Math.max(1, rows[0]?.length ?? 1);
    const height = 20;
    for (const [position, row] of rows.entries()) {
      this.#room(height);
      const [top, left] = [this.#y, this.#x];
      for (const [column, words] of row.entries()) {
        const font = position === 0 ? "bold" : "regular";
        this.#put(text(words, { x: left + column * width + 6, y: top + 14, size: 10, font }));
      }
      for (let edge = 0; edge <= row.length; edge++)
        this.#put(line([left + edge * width, top], [left + edge * width, top + height]));
      this.#put(line([left, top], [left + this.columnWidth, top]));
      this.#put(line([left, top + height], [left + this.columnWidth, top + height]));
      this.#y += height;
    }
  }

  nextPage(): void {
    this.#pages.push([]);
    this.#column = 0;
    this.#y = MARGIN;
  }

  finish(): PdfPage[] {
    return this.#pages.map((items, position) => {
      const { header, footer } = this.#style;
      return {
        items: [
          ...(header ? [text(header(position + 1), { x: MARGIN, y: 40, size: 9 })] : []),
          ...items,
          ...(footer ? [text(footer(position + 1), { x: MARGIN, y: LETTER.height - 34, size: 9 })] : []),
        ],
      };
    });
  }

  get #x(): number {
    return MARGIN + this.#column * (this.columnWidth + GUTTER);
  }

  #put(item: PdfItem): void {
    this.#pages.at(-1)!.push(item);
  }

  /** Goes on in the next column or on the next page when the height is not there. */
  #room(height: number): void {
    if (this.#y + height <= LETTER.height - MARGIN) return;
    if (this.#column + 1 < (this.#style.columns ?? 1)) {
      this.#column++;
      this.#y = MARGIN;
    } else this.nextPage();
  }
}

function wrap(words: string, width: number): string[] {
  const letters = Math.floor(width / (BODY_SIZE * LETTER_WIDTH));
  const lines = [""];
  for (const word of words.split(/\s+/)) {
    const current = lines.at(-1)!;
    if (current && current.length + 1 + word.length > letters) lines.push(word);
    else lines[lines.length - 1] = current ? `${current} ${word}` : word;
  }
  return lines;
}
