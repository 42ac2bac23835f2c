import { listedAs } from "./lists.ts";
import type { Span } from "./names.ts";
import { isCommon, type Sentence, type Word } from "./sentences.ts";
import {
  EVENT_WORDS,
  ORGANIZATION_NOUNS,
  ORGANIZATION_VERBS,
  ORGANIZATION_WORDS,
  PERSON_VERBS,
  PLACE_PREPOSITIONS,
  PLACE_WORDS,
  PRODUCT_WORDS,
} from "./words.ts";

export interface Typed {
  readonly type: "person" | "organization" | "place" | "product" | "event" | "concept";
  readonly confidence: number;
}

/** What kind of thing a name is of, by what is surest first: its title, its own words, lists of names, its surroundings. */
export function typeOf(name: string, sentence: Sentence, span: Span): Typed {
  if (span.hasTitle) return { type: "person", confidence: 0.95 };
  const words = sentence.slice(span.first, span.last + 1);
  return byOwnWords(words) ?? byLists(name) ?? bySurroundings(sentence, span) ?? byShape(name, words);
}

/** "Battle of …" tells by its first word, "… Company" by its last; a hospital on a mount is a hospital. */
function byOwnWords(words: readonly Word[]): Typed | undefined {
  if (words.length < 2) return undefined;
  const ends = [words[0]!.lower, words.at(-1)!.lower.replace(/\.$/, "")];
  const has = (list: ReadonlySet<string>) => ends.some((word) => list.has(word));
  if (/^(?:king|queen|duke|duchess|earl|prince|princess|lord|bishop)$/.test(ends[0]!))
    return { type: "person", confidence: 0.8 };
  if (has(EVENT_WORDS)) return { type: "event", confidence: 0.85 };
  const isOrganization = words.some(({ lower }) => ORGANIZATION_WORDS.has(lower.replace(/\.$/, "")));
  if (isOrganization || words.some(({ text }) => text === "&"))
    return { type: "organization", confidence: 0.9 };
  if (has(PLACE_WORDS)) return { type: "place", confidence: 0.85 };
  if (PRODUCT_WORDS.has(ends[1]!)) return { type: "product", confidence: 0.7 };
  return undefined;
}

const INNER_CAPITAL = /\p{Ll}\p{Lu}/u;

/** "DataView" only ends like a place; firms do write themselves like that. */
function byLists(name: string): Typed | undefined {
  const kind = listedAs(name);
  if (INNER_CAPITAL.test(name) && kind !== "organization" && !name.includes(" ")) return undefined;
  return kind && { type: kind, confidence: 0.85 };
}

function bySurroundings(sentence: Sentence, { first, last }: Span): Typed | undefined {
  const [beforeLast, before] = [sentence[first - 2], sentence[first - 1]];
  const [after, afterNext] = [sentence[last + 1], sentence[last + 2]];
  if (before?.lower === "of" && beforeLast && ORGANIZATION_NOUNS.has(beforeLast.lower))
    return { type: "organization", confidence: 0.7 };
  if (after && /^['’]s$/.test(after.text) && afterNext && ORGANIZATION_NOUNS.has(afterNext.lower))
    return { type: "organization", confidence: 0.7 };
  if (before && PLACE_PREPOSITIONS.has(before.lower)) return { type: "place", confidence: 0.6 };
  const verb = sentence.slice(last + 1, last + 4).find(({ pos }) => pos === "VERB");
  const isSubject = !before || ["PUNCT", "DET", "CCONJ"].includes(before.pos);
  if (!verb || !isSubject) return undefined;
  const areStrange = sentence.slice(first, last + 1).every(({ text }) => !isCommon(text));
  if (last > first && areStrange && PERSON_VERBS.has(verb.lemma)) return { type: "person", confidence: 0.7 };
  return ORGANIZATION_VERBS.has(verb.lemma) ? { type: "organization", confidence: 0.6 } : undefined;
}

function byShape(name: string, words: readonly Word[]): Typed {
  if (/\d/.test(name) || INNER_CAPITAL.test(name)) return { type: "product", confidence: 0.6 };
  // Two or three words that no dictionary has are mostly somebody's.
  const areStrange = words.every(({ text }) => !isCommon(text));
  if (areStrange && (words.length === 2 || words.length === 3)) return { type: "person", confidence: 0.55 };
  const isSure = words.length > 1 || /^\p{Lu}{2,}$/u.test(name);
  return { type: "concept", confidence: isSure ? 0.55 : 0.4 };
}
