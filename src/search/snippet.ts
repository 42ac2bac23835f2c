import { closes, fenceOf } from "../adapters/extract/markdown-blocks.ts";
import type { Span } from "./highlight.ts";

export interface Snippet {
  readonly snippet: string;
  /** In the snippet. */
  readonly highlights: readonly Span[];
}

const SNIPPET_LENGTH = 240;
/** How much is shown before the first word found. */
const LEAD_LENGTH = 40;
/** How far a cut may be moved to fall between words. */
const CUT_REACH = 30;
const SPANS_MAX = 500;
const TEXT_LENGTH_MAX = 20_000;

/** The stretch of a text where most of the words found stand together. */
export function snippetOf(text: string, found: readonly Span[]): Snippet {
  const spans = found.slice(0, SPANS_MAX);
  const first = spans[bestFirst(text, spans)]?.[0] ?? 0;
  const from = cutAfter(text, Math.max(0, Math.min(first - LEAD_LENGTH, text.length - SNIPPET_LENGTH)));
  const to = cutBefore(text, from + SNIPPET_LENGTH);
  const before = from > 0 ? "… " : "";
  const after = to < text.length ? " …" : "";
  const shift = before.length - from;
  return {
    snippet: before + text.slice(from, to) + after,
    highlights: spans
      .filter(([start, end]) => start >= from && end <= to)
      .map(([start, end]): Span => [start + shift, end + shift]),
  };
}

/** Different words count more than one word often. */
function bestFirst(text: string, spans: readonly Span[]): number {
  let best = { index: 0, score: 0 };
  for (const [index, [start]] of spans.entries()) {
    const words = new Set<string>();
    let score = 0;
    for (let next = index; next < spans.length; next++) {
      const [from, to] = spans[next]!;
      if (to - start > SNIPPET_LENGTH - LEAD_LENGTH) break;
      words.add(text.slice(from, to).toLowerCase());
      score = words.size + (next - index) / SPANS_MAX;
    }
    if (score > best.score) best = { index, score };
  }
  return best.index;
}

function cutAfter(text: string, position: number): number {
  if (position === 0) return 0;
  const space = text.indexOf(" ", position);
  return space >= 0 && space - position <= CUT_REACH ? space + 1 : wholeCharacter(text, position);
}

function cutBefore(text: string, position: number): number {
  if (position >= text.length) return text.length;
  const space = text.lastIndexOf(" ", position);
  return position - space <= CUT_REACH ? space : wholeCharacter(text, position);
}

const CHARACTERS = new Intl.Segmenter("en", { granularity: "grapheme" });

/** Not inside what is seen as one character: a letter with its accents, an emoji of several parts. */
function wholeCharacter(text: string, position: number): number {
  return CHARACTERS.segment(text).containing(position)?.index ?? position;
}

/** Markdown without its marks, in one line. What is left of it is text: whoever shows it as HTML has to escape it. */
export function plainText(markdown: string): string {
  return (
    plainLines(markdown.slice(0, TEXT_LENGTH_MAX).split("\n"))
      .join(" ")
      // Control characters and invisible borders would be taken for the marks of a highlight.
      .replaceAll(/[\p{Cc}\u200b]/gu, " ")
      .replaceAll(/ {2,}/g, " ")
      .trim()
      .toWellFormed()
  );
}

/** In code nothing is a mark but its fences. */
function plainLines(lines: readonly string[]): string[] {
  const plain: string[] = [];
  let fence: string | undefined;
  for (const line of lines) {
    if (fence === undefined) {
      fence = fenceOf(line.trim());
      if (fence === undefined) plain.push(plainLine(line));
    } else if (closes(line, fence)) fence = undefined;
    else plain.push(line.trim());
  }
  return plain;
}

const CODE_IN_TEXT = /(?<![\\`])(`{1,3})(?!`)([^`]+)\1(?!`)/g;
const ESCAPED = /\\([\\`*_{}[\]()#+\-.!|>])/g;

function plainLine(line: string): string {
  const text = line.trim();
  if (/^[|:\- ]+$/.test(text)) return "";
  return text
    .replace(/^(?:#{1,6} |> ?|[-*+] )+/, "")
    .replaceAll(CODE_IN_TEXT, (_, __, code: string) => code.replaceAll(/[\\`*_{}[\]()#+\-.!|>]/g, "\\$&"))
    .replaceAll(/!?\[([^[\]]{0,500})\]\([^()]{0,2000}\)/g, "$1")
    .replaceAll(
      /(?<![\p{L}\p{N}\\])[*_]{1,3}(?=[^\s*_])|(?<=[^\s*_\\]|\\[*_])[*_]{1,3}(?![\p{L}\p{N}])/gu,
      "",
    )
    .replaceAll(/(?<!\\)`/g, "")
    .replace(/^\| ?| ?(?<!\\)\|$/g, "")
    .replaceAll(ESCAPED, "$1");
}
