export interface Snippet {
  readonly snippet: string;
  readonly highlights: readonly (readonly [start: number, end: number])[];
}

const SNIPPET_LENGTH = 240;
/** Endings that do not make another word of it, longest first. */
const ENDINGS = /(?:ations?|ingly|ings?|edly|ies|ied|ers?|est|ed|es|ly|s)$/;
const STEM_LENGTH_MIN = 3;
const WORD = /[\p{L}\p{N}]+(?:['’][\p{L}]+)?/gu;

/** The stretch of a passage where most words of the query stand together, as plain text, and where they are in it. */
export function snippetOf(content: string, query: string): Snippet {
  const text = plainText(content);
  const wanted = new Set(
    [...query.matchAll(WORD)].map(([word]) => stemOf(word)).filter((stem) => stem.length > 2),
  );
  const matches = [...text.matchAll(WORD)]
    .filter(([word]) => wanted.has(stemOf(word)))
    .map((match) => ({ start: match.index, end: match.index + match[0].length, stem: stemOf(match[0]) }));
  const [from, to] = window(text, bestStart(matches));
  const before = from > 0 ? "… " : "";
  const after = to < text.length ? " …" : "";
  const shift = before.length - from;
  return {
    snippet: before + text.slice(from, to) + after,
    highlights: matches
      .filter(({ start, end }) => start >= from && end <= to)
      .map(({ start, end }) => [start + shift, end + shift] as const),
  };
}

interface Match {
  readonly start: number;
  readonly end: number;
  readonly stem: string;
}

/** Different words count more than one word often. */
function bestStart(matches: readonly Match[]): number {
  let best = { start: 0, score: 0 };
  for (const [index, first] of matches.entries()) {
    const inside = matches.slice(index).filter(({ end }) => end - first.start <= SNIPPET_LENGTH - 40);
    const score = new Set(inside.map(({ stem }) => stem)).size + inside.length / 100;
    if (score > best.score) best = { start: first.start, score };
  }
  return best.start;
}

/** Begins a little before the first word found, at the beginning of a word, and ends at the end of one. */
function window(text: string, start: number): [number, number] {
  let from = Math.max(0, Math.min(start - 40, text.length - SNIPPET_LENGTH));
  if (from > 0) from = text.indexOf(" ", from) + 1;
  let to = Math.min(text.length, from + SNIPPET_LENGTH);
  if (to < text.length) {
    const space = text.lastIndexOf(" ", to);
    if (space > from) to = space;
  }
  return [from, to];
}

/** Without the marks of Markdown; offsets are counted in this text. */
function plainText(markdown: string): string {
  return markdown
    .replaceAll(/!?\[([^\]]{0,500})\]\([^)]{0,2000}\)/g, "$1")
    .replaceAll(/^\s{0,3}(?:#{1,6}\s|>\s?|[-*+]\s|```\S*)/gm, "")
    .replaceAll(/^\s*\|?[\s:|-]{3,}\|?\s*$/gm, " ")
    .replaceAll(/[*_`|]+/g, " ")
    .replaceAll(/\s+/g, " ")
    .trim();
}

function stemOf(word: string): string {
  const plain = word
    .normalize("NFKD")
    .replaceAll(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/['’].*$/, "");
  const stem = plain.replace(ENDINGS, "");
  return stem.length >= STEM_LENGTH_MIN ? stem.replace(/e$/, "") : plain;
}
