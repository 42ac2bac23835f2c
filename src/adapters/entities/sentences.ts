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
  const doc = nlp.readDoc(part);
  const tokens = doc.tokens();
  const texts = tokens.out(its.value) as string[];
  const parts = tokens.out(its.pos) as string[];
  // The types forget that a lemma may be asked of a token.
  const lemmas = tokens.out(its.lemma as ItsFunction<string>) as string[];
  let position = 0;
  const words = texts.map((text, index): Word => {
    // Where a word stands is not told; they come in order and as they are written.
    const from = Math.max(part.indexOf(text, position), position);
    position = from + text.length;
    const place = { start: partStart + from, end: partStart + position };
    return { text, lower: text.toLowerCase(), pos: parts[index]!, lemma: lemmas[index]!, ...place };
  });
  const sentences: Sentence[] = [];
  doc.sentences().each((sentence: ItemSentence) => {
    sentences.push(words.splice(0, sentence.tokens().length()));
  });
  return sentences;
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
