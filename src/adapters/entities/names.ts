import { isListed, listedAs } from "./lists.ts";
import { isCommon, type Sentence, type Word } from "./sentences.ts";
import {
  EVENT_WORDS,
  HEADS_OF,
  JOINING,
  NEVER_NAMES,
  ORGANIZATION_WORDS,
  PLACE_WORDS,
  TITLES,
} from "./words.ts";

/** Words of a sentence that are one name, from the first to the last. */
export interface Span {
  readonly first: number;
  readonly last: number;
  /** "Dr." or "Judge" stands before it. */
  readonly hasTitle: boolean;
}

const NAME_WORDS_MAX = 8;
const NAME_CHARS_MAX = 120;
const CAPITALISED = /^\p{Lu}[\p{L}\p{M}\p{N}.'’&+-]*$/u;
/** "iPhone", "eBay" */
const INNER_CAPITAL = /^\p{Ll}{1,3}\p{Lu}[\p{L}\p{N}]*$/u;
const YEAR = /^(?:1[5-9]|20)\d\d$/;

/** The names in a sentence, in order. */
export function namesIn(sentence: Sentence): Span[] {
  const first = sentence.findIndex(({ text }) => /[\p{L}\p{N}]/u.test(text));
  const isTitleCase = isHeadline(sentence);
  const spans: Span[] = [];
  for (let index = Math.max(first, 0); index < sentence.length; index++) {
    if (!isNameWord(sentence[index])) continue;
    const span = trimTitle(sentence, { first: index, last: lastOf(sentence, index) });
    index = Math.max(index, span.last);
    const isAtStart = isTitleCase || span.first === first || isAfterMark(sentence[span.first - 1]);
    if (isName(sentence, span, { isAtStart })) spans.push(span);
  }
  return spans;
}

function isNameWord(word: Word | undefined): boolean {
  if (!word || NEVER_NAMES.has(word.lower.replace(/\.$/, ""))) return isTitle(word);
  return (CAPITALISED.test(word.text) && !isFunctionWord(word)) || INNER_CAPITAL.test(word.text);
}

/** "Note: …", "(See …": a new start, though not of a sentence. */
function isAfterMark(word: Word | undefined): boolean {
  return word !== undefined && /^[^\p{L}\p{N},;&'’-]+$/u.test(word.text);
}

function isTitle(word: Word | undefined): boolean {
  return word !== undefined && /^\p{Lu}/u.test(word.text) && TITLES.has(word.lower.replace(/\.$/, ""));
}

function isFunctionWord({ pos }: Word): boolean {
  return ["DET", "ADP", "PRON", "CCONJ", "SCONJ", "ADV", "AUX", "INTJ", "PART"].includes(pos);
}

/** How far a name goes: over names, and over small words that have a name on their other side. */
function lastOf(sentence: Sentence, first: number): number {
  let last = first;
  const end = Math.min(sentence.length, first + NAME_WORDS_MAX);
  for (let next = first + 1; next < end; ) {
    const width = joinWidth(sentence, next);
    if (width === 0 || !goesOn(sentence, last, next, width)) break;
    last = next + width - 1;
    next = last + 1;
  }
  return last;
}

/** "King's College", "Thirty Years' War" */
function isKind(word: string): boolean {
  return ORGANIZATION_WORDS.has(word) || EVENT_WORDS.has(word);
}

/** How many words from here on belong to a name that started before, the next of its own words included. */
function joinWidth(sentence: Sentence, index: number): number {
  const [word, next, afterNext] = sentence.slice(index, index + 3);
  if (isNameWord(word)) return 1;
  if (!word || !next) return word && isNumberOfName(word) ? 1 : 0;
  if (isNumberOfName(word)) return 1;
  const isHeadBefore = HEADS_OF.has(sentence[index - 1]!.lower);
  if (word.lower === "of" && isHeadBefore) {
    if (isNameWord(next)) return 2;
    return next.lower === "the" && isNameWord(afterNext) ? 3 : 0;
  }
  if (/^['’]s?$/.test(word.text)) return isKind(next.lower) && isNameWord(next) ? 2 : 0;
  const isBynamed = word.text === "the" && listedAs(sentence[index - 1]!.text) === "person";
  const isHyphen = word.text === "-" && next.start === word.start + 1;
  const isJoined = word.text === "&" || JOINING.has(word.text) || isBynamed || isHyphen;
  return isJoined && isNameWord(next) ? 2 : 0;
}

function isNumberOfName({ pos, text }: Word): boolean {
  return pos === "NUM" && /^\d{1,4}$/.test(text) && !YEAR.test(text);
}

/** Not over a gap in the text, nor into the title of the next person. */
function goesOn(sentence: Sentence, last: number, next: number, width: number): boolean {
  const isApart = sentence[next]!.start > sentence[last]!.end + 3;
  const hasTitleInside = width === 1 && isTitle(sentence[next]) && sentence[next + 1]?.pos === "PROPN";
  return !isApart && !hasTitleInside;
}

function trimTitle(sentence: Sentence, span: { first: number; last: number }): Span {
  let { first } = span;
  // "General Electric", "Prince Edward Island"
  const words = sentence.slice(span.first, span.last + 1);
  const isNobody = words.some(({ lower }) => ORGANIZATION_WORDS.has(lower) || PLACE_WORDS.has(lower));
  while (!isNobody && first < span.last && isTitle(sentence[first]) && isNameWord(sentence[first + 1]))
    first++;
  return { first, last: span.last, hasTitle: first > span.first };
}

function isName(sentence: Sentence, span: Span, { isAtStart }: { isAtStart: boolean }): boolean {
  const words = sentence.slice(span.first, span.last + 1);
  const length = words.at(-1)!.end - words[0]!.start;
  if (length < 2 || length > NAME_CHARS_MAX) return false;
  if (span.hasTitle) return true;
  if (words.length === 1 && isTitle(words[0])) return false;
  const isKnown = words.every(({ text, pos }) => pos === "NUM" || text === "-" || isPlain(text));
  const isDerived = isAtStart && words.length === 1 && /(?:ly|ing|ed)$/.test(words[0]!.text);
  if (!isKnown && !isDerived) return true;
  // All of its words are in the dictionary: the capital has to mean something.
  const isInstitution = words.length > 1 && words.some(({ lower }) => isInstitutionWord(lower));
  if (isAtStart) return isInstitution || isListed(words.map(({ text }) => text).join(" "));
  const isLabel = sentence[span.last + 1]?.text === ":";
  return words.length > 1 || (words[0]!.pos === "PROPN" && !isLabel);
}

/** "typescript" is in the dictionary, "TypeScript" is not. */
function isPlain(text: string): boolean {
  return isCommon(text) && !/\p{Ll}\p{Lu}|\d/u.test(text);
}

function isInstitutionWord(word: string): boolean {
  return ORGANIZATION_WORDS.has(word) || HEADS_OF.has(word);
}

const HEADLINE_SHARE = 0.6;

/** Most words have a capital and no verb is without, so a capital says little: a heading, or a line in capitals. */
function isHeadline(sentence: Sentence): boolean {
  const words = sentence.filter(({ text }) => /^\p{L}{4,}/u.test(text));
  const capitals = words.filter(({ text }) => /^\p{Lu}/u.test(text));
  const hasPlainVerb = sentence.some(
    ({ text, pos }) => ["VERB", "AUX"].includes(pos) && /^\p{Ll}/u.test(text),
  );
  return words.length >= 2 && !hasPlainVerb && capitals.length / words.length > HEADLINE_SHARE;
}
