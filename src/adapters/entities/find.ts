import { createRequire } from "node:module";
import compromise from "compromise";
import type { Extraction, FoundEntity, FoundRelation } from "../entities.ts";
import { proseOf } from "./plain.ts";

/** Both packages are CommonJS and say little of their types. */
const require = createRequire(import.meta.url);
const nlp = require("wink-nlp")(require("wink-eng-lite-web-model"), ["sbd", "pos"]);
const { its } = nlp;

interface Token {
  readonly text: string;
  readonly pos: string;
  readonly lemma: string;
  readonly start: number;
  readonly end: number;
}

interface Span {
  readonly first: number;
  readonly last: number;
}

const ENTITIES_MAX = 60;
const RELATIONS_MAX = 60;
const NAME_WORDS_MAX = 8;
/** Between two names, more words than this say little about both. */
const NEAR_TOKENS_MAX = 12;

/** What a text is about, and how those things belong together, sentence by sentence. */
export function extractFrom(text: string): Extraction {
  const entities: FoundEntity[] = [];
  const relations: FoundRelation[] = [];
  for (const sentence of sentencesOf(proseOf(text))) {
    const spans = spansOf(sentence);
    const found = spans.map((span) => entityOf(text, sentence, span));
    const kept = spans
      .map((span, index) => ({ span, entity: found[index] }))
      .filter((one): one is { span: Span; entity: FoundEntity } => one.entity !== undefined)
      .slice(0, Math.max(0, ENTITIES_MAX - entities.length));
    for (const [index, one] of kept.entries()) {
      const next = kept[index + 1];
      if (!next || relations.length >= RELATIONS_MAX) continue;
      const relation = relationOf(sentence, one.span, next.span);
      if (!relation || one.entity.name === next.entity.name) continue;
      relations.push({
        source: entities.length + (relation.isTurned ? index + 1 : index),
        target: entities.length + (relation.isTurned ? index : index + 1),
        type: relation.type,
        confidence: relation.confidence,
        start: one.entity.start,
        end: next.entity.end,
      });
    }
    entities.push(...kept.map(({ entity }) => entity));
  }
  return { entities, relations };
}

function sentencesOf(prose: string): Token[][] {
  const doc = nlp.readDoc(prose);
  const texts: string[] = doc.tokens().out(its.value);
  const poses: string[] = doc.tokens().out(its.pos);
  const lemmas: string[] = doc.tokens().out(its.lemma);
  const spaces: string[] = doc.tokens().out(its.precedingSpaces);
  const sentences: Token[][] = [];
  let at = 0;
  const tokens = texts.map((text, index) => {
    // The library drops what it does not know, such as line ends: each word is looked for where it can be.
    const start = prose.indexOf(text, at + (spaces[index]?.length ?? 0));
    const from = start >= 0 ? start : prose.indexOf(text, at);
    at = from < 0 ? at : from + text.length;
    return { text, pos: poses[index]!, lemma: lemmas[index]!, start: from, end: from + text.length };
  });
  doc.sentences().each((sentence: { tokens(): { length(): number } }) => {
    sentences.push(tokens.splice(0, sentence.tokens().length()));
  });
  return sentences;
}

const INNER = new Set(["of", "for", "and", "the", "de", "la", "van", "von", "der", "&"]);

/** Runs of proper nouns; a small word may stand inside one ("University of Leeds"), a number at its end. */
function spansOf(sentence: readonly Token[]): Span[] {
  const spans: Span[] = [];
  for (let index = 0; index < sentence.length; index++) {
    if (!isName(sentence[index]!, index)) continue;
    const first = index;
    let last = index;
    for (let next = index + 1; next < sentence.length && next - first < NAME_WORDS_MAX; next++) {
      const token = sentence[next]!;
      if (isName(token, next) || (token.pos === "NUM" && /^\d{1,6}$/.test(token.text) && next === last + 1))
        last = next;
      else if (!isInside(sentence, next)) break;
    }
    spans.push({ first, last });
    index = last;
  }
  return spans;
}

function isName(token: Token, index: number): boolean {
  if (token.start < 0 || !/^\p{Lu}[\p{L}\p{M}\p{N}.'’-]*$|^\p{L}*\p{Lu}[\p{L}\p{N}]*$/u.test(token.text))
    return false;
  return token.pos === "PROPN" && !(index === 0 && COMMON_STARTS.has(token.text.toLowerCase()));
}

/** "of", "of the" and the like, with a name after it. Names of people are not joined by "and". */
function isInside(sentence: readonly Token[], index: number): boolean {
  const here = sentence[index]!;
  if (!INNER.has(here.text.toLowerCase()) || here.text === "and")
    return here.text === "&" && isNext(sentence, index);
  return (
    isNext(sentence, index) ||
    (here.text === "of" && sentence[index + 1]?.text === "the" && isNext(sentence, index + 1))
  );
}

function isNext(sentence: readonly Token[], index: number): boolean {
  const next = sentence[index + 1];
  return next !== undefined && isName(next, index + 1);
}

const COMMON_STARTS = new Set(
  "the a an this that these those it he she they we you i in on at by for from with when where while if but and or as to of no yes not all each every most some many one two three once after before since until during under over".split(
    " ",
  ),
);
const NOT_NAMES = new Set(
  "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september october november december mr mrs ms dr prof page chapter section table figure appendix part note notes summary introduction contents".split(
    " ",
  ),
);

function entityOf(text: string, sentence: readonly Token[], span: Span): FoundEntity | undefined {
  const start = sentence[span.first]!.start;
  const end = sentence[span.last]!.end;
  const name = text
    .slice(start, end)
    .replaceAll(/\s+/g, " ")
    .replace(/['’]s?$/, "")
    .replace(/[.,]$/, "");
  const bare = name.toLowerCase().replaceAll(".", "");
  if (name.length < 2 || name.length > 120 || NOT_NAMES.has(bare) || /^\d/.test(name)) return undefined;
  const { type, confidence } = typeOf(name, sentence[span.first - 1]?.text ?? "");
  return { name, type, confidence, start, end: start + text.slice(start, end).length };
}

const ORGANIZATION =
  /\b(?:Company|Co|Corporation|Corp|Inc|Ltd|Limited|LLC|GmbH|AG|University|College|School|Institute|Ministry|Department|Council|Committee|Agency|Bank|Group|Society|Association|Union|Trust|Foundation|Museum|Hospital|Systems|Partners|Works|Railway|Board|Office|Commission|Survey)\b/;
const PLACE =
  /\b(?:River|Lake|Mount|Mountain|Valley|Hill|Edge|Street|Road|Bridge|Island|Sea|Ocean|County|City|Park|Forest|Bay|Beck|Dale|Moor|Fell|Face|Quarry|Harbour|Harbor|Station|Farm|Square)\b/;
const TITLED = /^(?:Mr|Mrs|Ms|Miss|Dr|Prof|Professor|Sir|Lady|Captain|Judge|President|King|Queen)\b/;
const PLACE_BEFORE = new Set(["in", "at", "near", "from", "to"]);

function typeOf(name: string, wordBefore: string): { type: string; confidence: number } {
  if (TITLED.test(name)) return { type: "person", confidence: 0.95 };
  if (ORGANIZATION.test(name)) return { type: "organization", confidence: 0.9 };
  if (PLACE.test(name)) return { type: "place", confidence: 0.85 };
  const tagged = compromise(name);
  if (tagged.people().found) return { type: "person", confidence: 0.85 };
  if (tagged.places().found) return { type: "place", confidence: 0.85 };
  if (tagged.organizations().found) return { type: "organization", confidence: 0.8 };
  if (/\d|^[\p{Lu}\d-]{2,}$|\p{Ll}\p{Lu}/u.test(name)) return { type: "product", confidence: 0.6 };
  if (PLACE_BEFORE.has(wordBefore.toLowerCase())) return { type: "place", confidence: 0.55 };
  return name.includes(" ") ? { type: "concept", confidence: 0.6 } : { type: "concept", confidence: 0.5 };
}

/** The verb between two names says how they belong together; a passive turns it round. */
function relationOf(sentence: readonly Token[], one: Span, next: Span) {
  const between = sentence.slice(one.last + 1, next.first);
  if (between.length > NEAR_TOKENS_MAX) return undefined;
  const verb = between.findLast(({ pos, lemma }) => pos === "VERB" && /^[a-z]{2,30}$/.test(lemma));
  if (!verb) return { type: "related_to", confidence: 0.3, isTurned: false };
  const rest = between.slice(between.indexOf(verb) + 1);
  const isPassive = rest[0]?.text === "by" && between.some(({ pos }) => pos === "AUX");
  const preposition = rest.find(({ pos }) => pos === "ADP");
  const type =
    preposition && !isPassive && rest[0] === preposition
      ? `${verb.lemma}_${preposition.text.toLowerCase()}`
      : verb.lemma;
  return { type, confidence: 0.6, isTurned: isPassive };
}
