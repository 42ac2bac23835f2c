import { type Block, trimmed } from "./blocks.ts";

/**
 * How well a page may be cut before a piece, from "never if it can be helped" to "here of all places".
 * Headings go on from there: the higher their level, the better.
 */
export const CUT = {
  glued: 0,
  character: 2,
  word: 4,
  line: 6,
  leadIn: 7,
  sentence: 8,
  row: 10,
  item: 12,
  block: 14,
} as const;
const CUT_HEADING_LEAST = 16;
const CUT_HEADING_STEP = 2;

/** What chunks are packed from: a block, or a part of one that is too large for a chunk. */
export interface Piece {
  readonly start: number;
  readonly end: number;
  /** How well the page may be cut before it. */
  readonly cut: number;
  /** What it is, which says how to take it apart. */
  readonly kind: Block["kind"] | "row" | "line" | "sentence" | "word";
  readonly block: Block;
}

export function piecesOf(blocks: readonly Block[], source: string): Piece[] {
  return blocks.map((block, index) => {
    const { start, end, kind } = block;
    return { start, end, kind, block, cut: cutBetween(blocks[index - 1], block, source) };
  });
}

export function isHeadingCut(cut: number): boolean {
  return cut >= CUT_HEADING_LEAST;
}

function cutBetween(before: Block | undefined, block: Block, source: string): number {
  // Nothing to cut before the first, and a heading goes with what it heads.
  if (!before || before.kind === "heading") return CUT.glued;
  if (block.kind === "heading") return CUT_HEADING_LEAST + CUT_HEADING_STEP * (6 - block.depth);
  // "…as follows:" goes with the start of what follows.
  return source[before.end - 1] === ":" ? CUT.leadIn : CUT.block;
}

/** The same text in smaller pieces; the piece itself when it has but one. */
export function takeApart(piece: Piece, source: string): readonly Piece[] {
  switch (piece.kind) {
    case "list":
      return cutAt(piece, source, listCuts(piece));
    case "table":
      return cutAt(piece, source, tableCuts(piece, source));
    case "code":
    case "html":
      return cutAt(piece, source, lineCuts(piece, source));
    case "heading":
    case "text":
      return cutAt(piece, source, sentenceCuts(piece, source));
    case "row":
    case "line":
    case "sentence":
      return cutAt(piece, source, wordCuts(piece, source));
    case "word":
      return cutAt(piece, source, characterCuts(piece, source));
    default:
      return piece.kind satisfies never;
  }
}

interface Place {
  readonly start: number;
  readonly cut: number;
  readonly kind: Piece["kind"];
}

/** A piece can be taken apart at finer grain when it has no places of its own grain. */
const FINER: Partial<Record<Piece["kind"], Piece["kind"]>> = {
  list: "text",
  table: "text",
  code: "line",
  html: "line",
  heading: "sentence",
  text: "sentence",
  row: "word",
  line: "word",
  sentence: "word",
};

function cutAt(piece: Piece, source: string, places: readonly Place[]): readonly Piece[] {
  const parts = places.flatMap((place, index): Piece[] => {
    const bounds = trimmed(source, place.start, places[index + 1]?.start ?? piece.end);
    return bounds ? [{ ...piece, ...bounds, cut: place.cut, kind: place.kind }] : [];
  });
  const finer = FINER[piece.kind];
  if (parts.length < 2) return finer ? takeApart({ ...piece, kind: finer }, source) : [piece];
  return parts.map((part, index) => (index === 0 ? { ...part, cut: piece.cut } : part));
}

function listCuts({ block }: Piece): Place[] {
  return block.itemStarts.map((start) => ({ start, cut: CUT.item, kind: "text" }));
}

/** The header, which stays with the first row if there is room for both, and each row. */
function tableCuts(piece: Piece, source: string): Place[] {
  const [header, , ...rows] = lineStarts(piece, source);
  return [header!, ...rows].map((start, index) => ({
    start,
    cut: index === 1 ? CUT.glued : CUT.row,
    kind: "row",
  }));
}

/** A blank line is a better place than another; the fences stay with the lines they enclose. */
function lineCuts(piece: Piece, source: string): Place[] {
  const starts = lineStarts(piece, source).filter((start) => trimmed(source, start, nextLine(source, start)));
  return starts.map((start, index) => {
    const isAfterBlank = index > 0 && nextLine(source, starts[index - 1]!) !== start;
    const isFenced = piece.kind === "code" && (index === 1 || index === starts.length - 1);
    return { start, cut: isFenced ? CUT.glued : isAfterBlank ? CUT.row : CUT.line, kind: "line" };
  });
}

function lineStarts(piece: Piece, source: string): number[] {
  const starts: number[] = [];
  for (let start = piece.start; start < piece.end; start = nextLine(source, start)) starts.push(start);
  return starts;
}

function nextLine(source: string, from: number): number {
  const end = source.indexOf("\n", from);
  return end < 0 ? source.length : end + 1;
}

const SENTENCES = new Intl.Segmenter(undefined, { granularity: "sentence" });
const GRAPHEMES = new Intl.Segmenter(undefined, { granularity: "grapheme" });
const SENTENCE_END = /[\p{Sentence_Terminal}:;][\p{Pe}\p{Pf}"'*_]*\s*$/u;

/** The segmenter also ends a "sentence" at every line; where none ends there, the place is worse. */
function sentenceCuts(piece: Piece, source: string): Place[] {
  let before = "";
  return [...SENTENCES.segment(source.slice(piece.start, piece.end))].map(({ index, segment }) => {
    const cut = SENTENCE_END.test(before) ? CUT.sentence : CUT.line;
    before = segment;
    return { start: piece.start + index, cut, kind: "sentence" };
  });
}

function wordCuts(piece: Piece, source: string): Place[] {
  return [...source.slice(piece.start, piece.end).matchAll(/\S+/g)].map(({ index }) => ({
    start: piece.start + index,
    cut: CUT.word,
    kind: "word",
  }));
}

const PARTS_OF_A_WORD = 8;

/** Text without spaces is cut into equal parts, between characters as one sees them if there are several. */
function characterCuts(piece: Piece, source: string): Place[] {
  const word = source.slice(piece.start, piece.end);
  const graphemes = GRAPHEMES.segment(word);
  const length = Math.max(1, Math.ceil(word.length / PARTS_OF_A_WORD));
  const wanted = Array.from({ length: PARTS_OF_A_WORD }, (_, part) => part * length).filter(
    (at) => at < word.length,
  );
  const seen = new Set(wanted.map((at) => graphemes.containing(at)!.index));
  const starts = seen.size > 1 ? seen : new Set(wanted.map((at) => codePointStart(word, at)));
  return [...starts].map((start) => ({ start: piece.start + start, cut: CUT.character, kind: "word" }));
}

function codePointStart(text: string, at: number): number {
  const isInside = (text.codePointAt(at - 1) ?? 0) > 0xffff;
  return isInside ? at - 1 : at;
}
