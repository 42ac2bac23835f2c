import { createHash } from "node:crypto";
import { QuarryError } from "../errors.ts";
import { type Block, blocksOf, clip } from "./blocks.ts";
import { type Frame, frameOf } from "./frames.ts";
import { CHARS_PER_TOKEN_MAX, pack, type Run, weightOf } from "./packing.ts";
import { isHeadingCut, type Piece, piecesOf } from "./pieces.ts";

export interface ChunkingOptions {
  /** Of the document. */
  readonly title?: string | null | undefined;
  /** What the embedder's window holds. No embedded text has more. */
  readonly tokensMax: number;
  /** What blocks are packed together to; one block may go to `tokensMax`. The same unless told. */
  readonly tokensTarget?: number;
  /** How much of the text before a chunk is embedded with it, if there is room. */
  readonly overlapTokens: number;
  readonly countTokens: (text: string) => number;
  /** Headings still open from earlier pages: what `headingsAfter` said there. */
  readonly headingsBefore?: readonly string[];
}

export interface Chunk {
  /**
   * What is shown: a slice of the page, word for word. A part of a table has the header of the table before it, a
   * part of fenced code stands between fences.
   */
  readonly content: string;
  /** What is embedded before it: the end of the chunk before. */
  readonly overlap: string;
  /** The headings above all of it, outermost first. */
  readonly headingPath: readonly string[];
  /** Where the slice stands in the page, in UTF-16 units. */
  readonly start: number;
  readonly end: number;
  /** Of what is embedded. */
  readonly tokenCount: number;
}

export interface ChunkedPage {
  readonly chunks: readonly Chunk[];
  /** Headings open at the end of the page, by level; empty where a level has none. */
  readonly headingsAfter: readonly string[];
}

const TOKENS_MAX_LEAST = 128;
/** Title and headings together. */
const CONTEXT_SHARE = 1 / 4;
/** A table's header is repeated as it is up to the first, shortened up to the second, and left out beyond. */
const HEAD_SHARE = 1 / 4;
const HEAD_SHARE_MAX = 1 / 2;
/** Less than this is not worth a chunk of its own if it has neighbours. */
const MIN_SHARE = 1 / 4;

/**
 * Cuts a page into chunks along its headings, paragraphs, lists, tables and code. Together the chunks hold all of
 * its text, each word once but for what tables and code repeat.
 */
export function chunkPage(markdown: string, options: ChunkingOptions): ChunkedPage {
  if (options.tokensMax < TOKENS_MAX_LEAST)
    throw new QuarryError("invalid_input", `chunks need ${TOKENS_MAX_LEAST} tokens or more to be of use`);
  const page = new Page(markdown, options);
  const { blocks, headingsAfter } = blocksOf(markdown, options.headingsBefore ?? []);
  const runs = pack(piecesOf(blocks, markdown), {
    source: markdown,
    countTokens: options.countTokens,
    fits: (run) => page.fits(run),
    roomFor: (piece) => page.roomFor(piece),
    tokensMin: page.tokensTarget * MIN_SHARE,
  });
  return { chunks: runs.map((run, index) => page.chunk(run, runs[index - 1])), headingsAfter };
}

type Parts = Pick<Chunk, "content" | "overlap" | "headingPath">;

class Page {
  readonly #markdown: string;
  readonly #options: ChunkingOptions;
  readonly #paths = new Map<string, readonly string[]>();
  readonly #frames = new Map<Block, Frame | undefined>();
  readonly tokensTarget: number;

  constructor(markdown: string, options: ChunkingOptions) {
    this.#markdown = markdown;
    this.#options = options;
    this.tokensTarget = Math.min(options.tokensTarget ?? options.tokensMax, options.tokensMax);
  }

  fits(run: Run): boolean {
    const { tokensMax } = this.#options;
    const { start, end } = this.#bounds(run);
    if (end - start > tokensMax * CHARS_PER_TOKEN_MAX) return false;
    const tokens = run.reduce((sum, piece) => sum + piece.tokens, 0);
    const isTooMuch = tokens > (isOneBlock(run) ? tokensMax : this.tokensTarget);
    // The tokens of a row are one more than it has alone, where a line break is one.
    if (isTooMuch && run.length > 1) return false;
    return this.#isWithin(this.#parts(run));
  }

  chunk(run: Run, before: Run | undefined): Chunk {
    const alone = this.#parts(run);
    const room = Math.min(this.#options.overlapTokens, this.#options.tokensMax - this.#count(alone));
    const overlap = this.#endOf(before, run, room);
    const withOverlap = { ...alone, overlap };
    const tokenCount = this.#count(withOverlap);
    // Tokens of two texts may be more than those of each: the tokenizer has the last word.
    if (tokenCount <= this.#options.tokensMax) return { ...withOverlap, ...this.#bounds(run), tokenCount };
    return { ...alone, ...this.#bounds(run), tokenCount: this.#count(alone) };
  }

  /** How many tokens of the page a chunk holds that starts with this piece. */
  roomFor(piece: Piece): number {
    const [content = ""] = this.#headsFor(piece);
    const headingPath = this.#pathOf([piece]);
    return this.#options.tokensMax - this.#count({ content, overlap: "", headingPath });
  }

  #parts(run: Run): Parts {
    const first = run[0]!;
    const heads = this.#headsFor(first);
    const headingPath = this.#pathOf(run);
    const partsWith = (head: string) => ({ content: this.#framed(run, head), overlap: "", headingPath });
    const preferred = partsWith(heads[0] ?? "");
    if (run.length > 1 || first.kind !== "row") return preferred;
    // A row that has no room beside the header is shown with a shorter one or none, rather than cut.
    const ways = [...heads, ""].map(partsWith);
    return ways.find((parts) => this.#isWithin(parts)) ?? preferred;
  }

  #framed(run: Run, head: string): string {
    const { start, end } = this.#bounds(run);
    const last = run.at(-1)!;
    const frame = this.#frameOf(last.block);
    const isCutOff = frame && last.end > frame.bodyStart && last.end < last.block.end;
    return [head, this.#markdown.slice(start, end), isCutOff ? frame.foot : ""].filter(Boolean).join("\n");
  }

  /** What may stand before a run that starts with this piece, the best first. */
  #headsFor({ block, start }: Piece): readonly string[] {
    const frame = this.#frameOf(block);
    return frame && start >= frame.bodyStart ? frame.heads : [];
  }

  #frameOf(block: Block): Frame | undefined {
    if (!this.#frames.has(block)) {
      const frame = frameOf(block, this.#markdown);
      this.#frames.set(block, frame && { ...frame, heads: this.#headsWithinBudget(frame.heads) });
    }
    return this.#frames.get(block);
  }

  #headsWithinBudget(heads: readonly string[]): readonly string[] {
    const within = (share: number) =>
      heads.filter((head) => weightOf(head, this.#options.countTokens(head)) <= this.tokensTarget * share);
    const small = within(HEAD_SHARE);
    return small.length > 0 ? small : within(HEAD_SHARE_MAX).slice(-1);
  }

  #isWithin(parts: Parts): boolean {
    const { tokensMax } = this.#options;
    return parts.content.length <= tokensMax * CHARS_PER_TOKEN_MAX && this.#count(parts) <= tokensMax;
  }

  #count(parts: Parts): number {
    return this.#options.countTokens(embeddedText({ ...parts, title: this.#options.title }));
  }

  /** With the indentation of its first line: in code and lists it means something. */
  #bounds(run: Run): { start: number; end: number } {
    let { start } = run[0]!;
    while (start > 0 && /[ \t]/.test(this.#markdown[start - 1]!)) start--;
    const isWholeLine = start === 0 || /[\r\n]/.test(this.#markdown[start - 1]!);
    return { start: isWholeLine ? start : run[0]!.start, end: run.at(-1)!.end };
  }

  /** Headings take part in the path of what they head; only where they stand alone do they count for themselves. */
  #pathOf(run: readonly Piece[]): readonly string[] {
    const texts = run.filter(({ kind }) => kind !== "heading");
    const paths = new Set((texts.length > 0 ? texts : run).map(({ block }) => block.path));
    const shared = [...paths].reduce((some, path) => some.slice(0, agreement(some, path)));
    const name = JSON.stringify(shared);
    const known = this.#paths.get(name) ?? this.#withinBudget(shared);
    this.#paths.set(name, known);
    return known;
  }

  /** The innermost headings say most. */
  #withinBudget(path: readonly string[]): readonly string[] {
    const { title, tokensMax, countTokens } = this.#options;
    const kept = [...path];
    while (kept.length > 0 && countTokens(contextOf(title, kept)) > tokensMax * CONTEXT_SHARE) kept.shift();
    return kept;
  }

  /** The last words before a run that goes on with the same section, whole sentences if one fits. */
  #endOf(before: Run | undefined, run: Run, room: number): string {
    const last = before?.at(-1);
    const isProse = [last, run[0]].every(
      (piece) => piece?.block.kind === "text" || piece?.block.kind === "list",
    );
    if (!last || !isProse || room <= 0 || isHeadingCut(run[0]!.cut)) return "";
    const text = this.#markdown.slice(last.start, last.end).slice(-room * CHARS_PER_TOKEN_MAX);
    return this.#lastOf(text, SENTENCE, room) || this.#lastOf(text, WORD, room);
  }

  /** As many of the last segments as there is room for; the first one is left out, it may have lost its start. */
  #lastOf(text: string, segmenter: Intl.Segmenter, room: number): string {
    const starts = [...segmenter.segment(text)].map(({ index }) => index).slice(1);
    const fitting = starts.find((start) => this.#options.countTokens(text.slice(start)) <= room);
    return fitting === undefined ? "" : text.slice(fitting).trim();
  }
}

const SENTENCE = new Intl.Segmenter(undefined, { granularity: "sentence" });
const WORD = new Intl.Segmenter(undefined, { granularity: "word" });

function isOneBlock(run: Run): boolean {
  const texts = run.filter(({ kind }) => kind !== "heading");
  return texts.every(({ block }) => block === texts[0]!.block);
}

function agreement(one: readonly string[], other: readonly string[]): number {
  const length = one.findIndex((heading, level) => heading !== other[level]);
  return length < 0 ? one.length : length;
}

/** So that a title, however long, leaves most of the window to the text. */
const TITLE_CHARS_MAX = 64;

/** What is embedded and indexed. What is shown is the content alone. */
export function embeddedText(parts: {
  readonly title?: string | null | undefined;
  readonly headingPath: readonly string[];
  readonly overlap: string;
  readonly content: string;
}): string {
  const context = contextOf(parts.title, parts.headingPath);
  return [context, parts.overlap, parts.content].filter(Boolean).join("\n");
}

/** Where in the document a text stands, for a reader who sees nothing else of it. */
function contextOf(title: string | null | undefined, headingPath: readonly string[]): string {
  const name = clip((title ?? "").replace(/\s+/g, " ").trim(), TITLE_CHARS_MAX);
  const isRepeated = name === headingPath[0];
  return [...(name && !isRepeated ? [name] : []), ...headingPath].join(" > ");
}

export function contentHash(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/**
 * An id says what a chunk is, not where it stands: an edit elsewhere in the source leaves it as it is. Equal
 * chunks are told apart by their order.
 */
export function chunkIds(
  sourceKey: string,
  chunks: readonly { readonly headingPath: readonly string[]; readonly content: string }[],
): string[] {
  const seen = new Map<string, number>();
  return chunks.map(({ headingPath, content }) => {
    const what = JSON.stringify([sourceKey, headingPath, content]);
    const occurrence = seen.get(what) ?? 0;
    seen.set(what, occurrence + 1);
    return contentHash(`${what}#${occurrence}`);
  });
}
