import { type Block, blocksOf, closes, isBlank } from "./markdown-blocks.ts";
import { plainHeading } from "./titles.ts";

/** Flowing text has no pages of its own; it is cut into parts of about this size. */
export const PAGE_CHARACTERS = 16_000;

export interface FlowPage {
  readonly markdown: string;
  /** What stands open from the pages before, by level: the first is a heading of level 1, empty where there is none. */
  readonly headings: readonly string[];
}

/**
 * Cuts at headings where possible, else between blocks, and inside a block only when it is longer than a page. The
 * pages together are the text; only a cut fence or table repeats its frame. Equal text gives equal pages.
 */
export function cutPages(markdown: string, charactersMax = PAGE_CHARACTERS): FlowPage[] {
  const blocks = blocksOf(markdown).flatMap((block) =>
    block.text.length <= charactersMax ? [block] : piecesOf(block, charactersMax),
  );
  const pages: Block[][] = [];
  let page: Block[] = [];
  let size = 0;
  for (const block of blocks) {
    if (size + block.text.length > charactersMax && page.length > 0) {
      const kept = cutPoint(page, { next: block, charactersMax });
      pages.push(page.slice(0, kept));
      page = page.slice(kept);
      size = sizeOf(page.map(({ text }) => text));
      // What was carried over may still be too much together with a long block.
      if (size + block.text.length > charactersMax) {
        if (page.length > 0) pages.push(page);
        page = [];
        size = 0;
      }
    }
    page.push(block);
    size += block.text.length;
  }
  if (page.length > 0 || pages.length === 0) pages.push(page);
  return withHeadings(pages);
}

function withHeadings(pages: readonly (readonly Block[])[]): FlowPage[] {
  let open: readonly string[] = [];
  return pages.map((blocks) => {
    const headings = open;
    for (const { level, text } of blocks)
      if (level !== undefined)
        open = [...Array.from({ length: level - 1 }, (_, above) => open[above] ?? ""), plainHeading(text)];
    return { markdown: blocks.map(({ text }) => text).join(""), headings };
  });
}

/** How many blocks stay on a full page: up to the last of the highest headings in its second half. */
function cutPoint(page: readonly Block[], full: { next: Block; charactersMax: number }): number {
  let best = page.length;
  let bestLevel = full.next.level ?? Number.POSITIVE_INFINITY;
  let start = sizeOf(page.map(({ text }) => text));
  for (let position = page.length - 1; position > 0; position--) {
    start -= page[position]!.text.length;
    if (start < full.charactersMax / 2) break;
    const level = page[position]!.level ?? Number.POSITIVE_INFINITY;
    if (level < bestLevel) {
      best = position;
      bestLevel = level;
    }
  }
  return best;
}

/** A block that is too long, cut between lines, and at a blank line where one is near. */
function piecesOf(block: Block, charactersMax: number): Block[] {
  const { head, foot } = frameThatFits(block, charactersMax);
  const room = charactersMax - head.length - foot.length - 1;
  const pieces: string[][] = [[]];
  let size = 0;
  for (const line of bodyOf(block.text, { head, foot }).flatMap((line) => partsOf(line, room))) {
    if (size + line.length > room) {
      const carried = pieces.at(-1)!.splice(lastGap(pieces.at(-1)!));
      size = sizeOf(carried);
      pieces.push(carried);
      if (size + line.length > room) {
        pieces.push([]);
        size = 0;
      }
    }
    pieces.at(-1)!.push(line);
    size += line.length;
  }
  return pieces
    .map((piece) => piece.join(""))
    .filter((text) => text !== "")
    .map((text) => ({ text: `${head}${text}${foot && !text.endsWith("\n") ? "\n" : ""}${foot}` }));
}

/** The lines between head and foot. */
function bodyOf(text: string, frame: { head: string; foot: string }): string[] {
  const body = text.slice(frame.head.length).split(/(?<=\n)/);
  if (!frame.foot) return body;
  while (body.length > 0 && isBlank(body.at(-1)!)) body.pop();
  if (body.length > 0 && closes(body.at(-1)!, frame.foot.trim())) body.pop();
  return body;
}

function sizeOf(lines: readonly string[]): number {
  return lines.reduce((sum, { length }) => sum + length, 0);
}

/** A head that would fill a good part of each page is not repeated. */
function frameThatFits(block: Block, charactersMax: number): { head: string; foot: string } {
  const { frame } = block;
  return frame && frame.head.length + frame.foot.length < charactersMax / 4 ? frame : { head: "", foot: "" };
}

/** Behind the last blank line in the second half, or the end. */
function lastGap(piece: readonly string[]): number {
  for (let position = piece.length - 1; position > piece.length / 2; position--)
    if (isBlank(piece[position]!)) return position + 1;
  return piece.length;
}

function partsOf(line: string, charactersMax: number): string[] {
  const parts: string[] = [];
  let start = 0;
  while (line.length - start > charactersMax) {
    const space = line.lastIndexOf(" ", start + charactersMax - 1);
    let end = space > start + charactersMax / 2 ? space + 1 : start + charactersMax;
    if (isLowSurrogate(line.charCodeAt(end))) end--;
    parts.push(line.slice(start, end));
    start = end;
  }
  parts.push(line.slice(start));
  return parts;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}
