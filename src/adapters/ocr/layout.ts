import type { Recognised } from "../ocr.ts";

/** Raised whenever the same words may be put together differently. */
export const LAYOUT_VERSION = 1;

interface Word {
  readonly text: string;
  readonly confidence: number;
  readonly left: number;
  readonly right: number;
  readonly height: number;
}

interface Line {
  readonly words: readonly Word[];
}

interface Paragraph {
  readonly lines: readonly Line[];
  /** How far lines of its column may reach. */
  readonly edge: number;
}

/** A paragraph or an item of a list, on its way to text. */
interface Piece {
  readonly lines: readonly Line[];
  readonly edge: number;
  /** "-" or "3." */
  readonly marker: string | undefined;
}

/** Below, a paragraph is a photograph, a stamp or a stain, not writing. */
const LEGIBLE = 0.3;

/** Puts the engine's words (its TSV: one row a word, with the block, paragraph and line it belongs to) together. */
export function readLayout(tsv: string): Recognised {
  const paragraphs = readParagraphs(tsv).filter(isLegible);
  const words = paragraphs.flatMap(wordsOf);
  return { markdown: toMarkdown(paragraphs), confidence: meanConfidence(words) };
}

const ROW = { word: "5", block: "2" } as const;

function readParagraphs(tsv: string): Paragraph[] {
  const edges = new Map<string, number>();
  const paragraphs = new Map<string, { edge: number; lines: Map<string, Word[]> }>();
  for (const row of tsv.split("\n")) {
    const [level, , block, paragraph, line, , left, , width, height, confidence, text] = row.split("\t");
    const right = Number(left) + Number(width);
    if (level === ROW.block) edges.set(block!, right);
    if (level !== ROW.word || !text?.trim()) continue;
    const key = `${block}/${paragraph}`;
    const found = paragraphs.get(key) ?? { edge: edges.get(block!) ?? right, lines: new Map() };
    paragraphs.set(key, found);
    const words = found.lines.get(line!) ?? [];
    found.lines.set(line!, words);
    words.push({
      text: text.trim(),
      confidence: Number(confidence) / 100,
      left: Number(left),
      right,
      height: Number(height),
    });
  }
  return [...paragraphs.values()].map(({ edge, lines }) => ({
    edge,
    lines: [...lines.values()].map((words) => ({ words })),
  }));
}

function wordsOf(paragraph: Paragraph): Word[] {
  return paragraph.lines.flatMap((line) => line.words);
}

function isLegible(paragraph: Paragraph): boolean {
  const words = wordsOf(paragraph);
  return words.some((word) => /[\p{L}\p{N}]/u.test(word.text)) && meanConfidence(words) >= LEGIBLE;
}

/** Weighed by length, so that a page is not judged by its commas. */
function meanConfidence(words: readonly Word[]): number {
  const characters = words.reduce((sum, word) => sum + word.text.length, 0);
  if (characters === 0) return 0;
  return words.reduce((sum, word) => sum + word.confidence * word.text.length, 0) / characters;
}

function toMarkdown(paragraphs: readonly Paragraph[]): string {
  const bulletEdges = paragraphs
    .flatMap((paragraph) => paragraph.lines)
    .filter((line) => BULLET.test(line.words[0]!.text))
    .map((line) => line.words[0]!.left);
  let markdown = "";
  let last: Piece | undefined;
  for (const piece of paragraphs.flatMap((paragraph) => toPieces(paragraph, bulletEdges))) {
    const text = textOf(piece);
    if (!last) markdown = text;
    else if (piece.marker && last.marker) markdown += `\n${text}`;
    else if (!piece.marker && goesOn(markdown, text)) markdown = joinLines(markdown, text, " ");
    else markdown += `\n\n${text}`;
    last = piece;
  }
  return markdown;
}

/** A sentence that was torn apart by the end of a column. */
function goesOn(before: string, after: string): boolean {
  return /[\p{L},-]$/u.test(before) && /^\p{Ll}/u.test(after);
}

/** What the engine makes of the usual bullets. */
const BULLET = /^[•·▪■◦‣*+«»°¢©–-]$/u;
/** It may also be taken for one of these, but only among others. */
const BULLET_LETTER = /^[eo]$/;
const NUMBER = /^\(?(\d{1,3})[.)]$/;

function markerOf(line: Line, bulletEdges: readonly number[]): string | undefined {
  const [first, second] = line.words;
  if (!first || !second) return undefined;
  const number = NUMBER.exec(first.text)?.[1];
  if (number) return `${number}.`;
  const isAmongBullets = bulletEdges.some((edge) => Math.abs(edge - first.left) < second.height);
  return BULLET.test(first.text) || (BULLET_LETTER.test(first.text) && isAmongBullets) ? "-" : undefined;
}

/** Items of a list may come as one paragraph. A single number within it is more likely a sentence's. */
function toPieces({ lines, edge }: Paragraph, bulletEdges: readonly number[]): Piece[] {
  const markers = lines.map((line) => markerOf(line, bulletEdges));
  const isList = markers[0] !== undefined || markers.filter((marker) => marker).length > 1;
  const pieces: { lines: Line[]; edge: number; marker: string | undefined }[] = [];
  for (const [position, line] of lines.entries()) {
    const marker = isList ? markers[position] : undefined;
    const words = marker ? line.words.slice(1) : line.words;
    if (marker || position === 0) pieces.push({ lines: [{ words }], edge, marker });
    else pieces.at(-1)!.lines.push({ words });
  }
  return pieces;
}

function textOf({ lines, edge, marker }: Piece): string {
  let text = "";
  for (const [position, line] of lines.entries()) {
    const before = lines[position - 1];
    const next = escapeStart(joinWords(line.words));
    text = before ? joinLines(text, next, wasFull(before, line, edge) ? " " : "\n") : next;
  }
  return marker ? `${marker} ${text.replaceAll("\n", "\n  ")}` : text;
}

/** A line that had room for the first word of the next one was ended on purpose: an address, a short row of a table. */
function wasFull(line: Line, next: Line, edge: number): boolean {
  if (isRow(line) && isRow(next)) return false;
  const first = next.words[0]!;
  const last = line.words.at(-1)!;
  const space = first.height / 3;
  return last.right + space + (first.right - first.left) > edge - first.height;
}

/** Wider than the widest space of justified print. */
const GAP_OF_CELLS = 1.5;

function isRow({ words }: Line): boolean {
  const height = Math.max(...words.map((word) => word.height));
  return words.some((word, position) => {
    const before = words[position - 1];
    return before !== undefined && word.left - before.right > GAP_OF_CELLS * height;
  });
}

const HYPHEN_AT_END = /\p{L}[-‐]$/u;

function joinLines(before: string, after: string, glue: string): string {
  if (!HYPHEN_AT_END.test(before)) return `${before}${areUnspaced(before, after) ? "" : glue}${after}`;
  return `${/^\p{Ll}/u.test(after) ? before.slice(0, -1) : before}${after}`;
}

function joinWords(words: readonly Word[]): string {
  return words
    .map(({ text }) => text)
    .reduce((line, word) => `${line}${areUnspaced(line, word) ? "" : " "}${word}`);
}

const ENDS_UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}]$/u;
const STARTS_UNSPACED = /^[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}]/u;

/** Chinese and Japanese put no space between words. */
function areUnspaced(before: string, after: string): boolean {
  return ENDS_UNSPACED.test(before) && STARTS_UNSPACED.test(after);
}

/** What stands on the page is text, even where Markdown would see a heading or a quotation. */
function escapeStart(line: string): string {
  return line.replace(/^(#{1,6} |>)/, "\\$1");
}
