import model from "wink-eng-lite-web-model";
import winkNlp, { type ItemSentence, type ItsFunction } from "wink-nlp";
import { APART } from "./plain.ts";

const nlp = winkNlp(model, ["sbd", "pos"]);
const { its } = nlp;

export interface Word {
  readonly text: string;
  readonly lower: string;
  /** Part of speech, as Universal Dependencies call it. */
  readonly pos: string;
  readonly lemma: string;
  readonly start: number;
  readonly end: number;
}

export type Sentence = readonly Word[];

export function sentencesOf(prose: string): Sentence[] {
  let start = 0;
  return prose.split(APART).flatMap((part) => {
    const sentences = part.trim() === "" ? [] : read(part, start);
    start += part.length + APART.length;
    return sentences;
  });
}

function read(part: string, partStart: number): Sentence[] {
  const plain = withPlainLetters(part);
  const doc = nlp.readDoc(plain);
  const tokens = doc.tokens();
  const plainTexts = tokens.out(its.value) as string[];
  const parts = tokens.out(its.pos) as string[];
  // The types forget that a lemma may be asked of a token.
  const lemmas = tokens.out(its.lemma as ItsFunction<string>) as string[];
  let position = 0;
  const words = plainTexts.map((plainText, index): Word => {
    // Where a word stands is not told; they come in order and as they are written.
    const from = Math.max(plain.indexOf(plainText, position), position);
    position = from + plainText.length;
    const text = part.slice(from, position);
    const place = { start: partStart + from, end: partStart + position };
    return { text, lower: text.toLowerCase(), pos: parts[index]!, lemma: lemmas[index]!, ...place };
  });
  const sentences: Sentence[] = [];
  doc.sentences().each((sentence: ItemSentence) => {
    sentences.push(words.splice(0, sentence.tokens().length()));
  });
  return sentences;
}

const LATIN_BEYOND_WESTERN = /[\u0100-\u024f\u1e00-\u1eff]/g;

/**
 * The tokenizer cuts "Wałęsa" and "Erdoğan" at the letters it does not know. Without its accent it knows most, and
 * in place of the others any letter keeps the word whole. Each stays one character, so that positions are the same.
 */
function withPlainLetters(text: string): string {
  return text.replaceAll(LATIN_BEYOND_WESTERN, (letter) => {
    const [base] = letter.normalize("NFD");
    if (base !== letter) return base!;
    return letter === letter.toLowerCase() ? "x" : "X";
  });
}

/** What the model knows has an id below that of the first word it does not know. */
const KNOWN_BELOW = idOf("zzqxv");
const KNOWN_MAX = 50_000;
const known = new Map<string, boolean>();

/** Whether an English dictionary has the word, in lower case: then a capital at the start of a sentence says nothing. */
export function isCommon(word: string): boolean {
  const lower = word.toLowerCase();
  const before = known.get(lower);
  if (before !== undefined) return before;
  const isKnown = lower.split("-").every((part) => part === "" || idOf(part) < KNOWN_BELOW);
  if (known.size >= KNOWN_MAX) known.clear();
  known.set(lower, isKnown);
  return isKnown;
}

function idOf(word: string): number {
  const ids = nlp.readDoc(word).tokens().out(its.uniqueId) as number[];
  return Math.max(...ids, 0);
}
