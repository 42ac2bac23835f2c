import type { FoundEntity, FoundRelation } from "../entities.ts";
import type { Span } from "./names.ts";
import type { Sentence, Word } from "./sentences.ts";

export interface Mention {
  readonly span: Span;
  readonly entity: FoundEntity;
}

/** Between two names, more words than this say little about both. */
const NEAR_WORDS_MAX = 14;

/**
 * How the names of one sentence belong together: the verb between two of them, or else just their nearness.
 * Positions are those in the list of mentions.
 */
export function relationsIn(sentence: Sentence, mentions: readonly Mention[]): FoundRelation[] {
  const relations: FoundRelation[] = [];
  for (let next = 1; next < mentions.length; next++) {
    const [one, other] = [mentions[next - 1]!, mentions[next]!];
    const between = sentence.slice(one.span.last + 1, other.span.first);
    if (between.length > NEAR_WORDS_MAX) continue;
    const relation = relationOf({
      next,
      between,
      wordBefore: sentence[one.span.first - 1],
      wordAfter: sentence[other.span.last + 1],
      before: relations.at(-1),
    });
    if (isSame(mentions[relation.source]!, mentions[relation.target]!)) continue;
    const [from, to] = [relation.source, relation.target].sort((a, b) => a - b) as [number, number];
    relations.push({ ...relation, start: mentions[from]!.entity.start, end: mentions[to]!.entity.end });
  }
  return relations;
}

type Relation = Pick<FoundRelation, "source" | "target" | "type" | "confidence">;

/** Two neighbours among the mentions. */
interface Pair {
  /** The second of the two; the first is the one before it. */
  readonly next: number;
  readonly between: Sentence;
  readonly wordBefore: Word | undefined;
  readonly wordAfter: Word | undefined;
  /** What was found before in this sentence. */
  readonly before: FoundRelation | undefined;
}

function relationOf(pair: Pair): Relation {
  const { next, between } = pair;
  const verbAt = between.findLastIndex((word, index) => isVerb(word) && between[index - 1]?.pos !== "DET");
  if (verbAt < 0 || startsClause(pair)) return withoutVerb(pair);
  const verb = between[verbAt]!;
  const rest = between.slice(verbAt + 1);
  const hasAuxiliary = between.slice(0, verbAt).some(({ pos }) => pos === "AUX");
  const isPassive = rest[0]?.lower === "by" && (hasAuxiliary || isParticiple(verb));
  const subject = subjectOf(pair, { isOwn: isPassive && !hasAuxiliary });
  if (isPassive) return { source: next, target: subject, type: nameOf(verb), confidence: 0.6 };
  // With another thing between, what the verb does it does not do to this one.
  const isIndirect = rest.some(({ pos }) => pos === "NOUN");
  const type = nounOf(verb, rest) ?? [nameOf(verb), ...prepositionOf(rest)].join("_");
  return { source: subject, target: next, type, confidence: isIndirect ? 0.5 : 0.6 };
}

function isVerb({ pos, lemma }: Word): boolean {
  return pos === "VERB" && /^[a-z]{2,30}$/.test(lemma);
}

/** "A rose after B presented C", "A fell, B said": the second name has a verb of its own. */
function startsClause({ between, wordAfter }: Pair): boolean {
  return between.at(-1)?.text === "," || wordAfter?.pos === "VERB" || wordAfter?.pos === "AUX";
}

/** Names joined by "and" share what is said of the first; "X is the capital of Y" has no verb but a noun. */
function withoutVerb({ between, next, before }: Pair): Relation {
  const copula = between.find(({ pos, lemma }) => pos === "AUX" && lemma === "be");
  const noun = copula && nounOf(copula, between.slice(between.indexOf(copula) + 1));
  if (noun) return { source: next - 1, target: next, type: noun, confidence: 0.5 };
  const isList =
    between.some(({ pos }) => pos === "CCONJ") &&
    between.every(({ pos, text }) => pos === "CCONJ" || pos === "DET" || text === ",");
  if (isList && before && before.type !== "related_to") {
    const shared = { type: before.type, confidence: before.confidence - 0.1 };
    if (before.target === next - 1) return { source: before.source, target: next, ...shared };
    // Turned round by a passive: both did it.
    if (before.source === next - 1 && before.target < next - 1)
      return { source: next, target: before.target, ...shared };
  }
  return { source: next - 1, target: next, type: "related_to", confidence: 0.3 };
}

const OPENS_CLAUSE = new Set(["after", "before", "since", "until", "as", "than"]);

/**
 * "A joined B and lives in C", "the works of A in B make C": a name that is the object of a verb or of a
 * preposition leaves the next verb to the one before it.
 */
function subjectOf({ between, next, before, wordBefore }: Pair, { isOwn }: { isOwn: boolean }): number {
  const isRelative = between.some(({ lower }) => lower === "which" || lower === "who" || lower === "that");
  const isInvolved = before && (before.source === next - 1 || before.target === next - 1);
  const isBehindPreposition = wordBefore?.pos === "ADP" && !OPENS_CLAUSE.has(wordBefore.lower);
  const isObject = isInvolved && (before.type !== "related_to" || isBehindPreposition);
  return isObject && !isOwn && !isRelative ? Math.min(before.source, before.target) : next - 1;
}

function isParticiple({ lower }: Word): boolean {
  return /(?:ed|en|wn|ne|lt|nt|ght|de)$/.test(lower);
}

/** The word in its basic form, but for two whose basic form is also that of another. */
function nameOf({ lemma, lower }: Word): string {
  if (/^found(?:ed|s|ing)$/.test(lower)) return "founded";
  return lower === "born" ? lower : lemma;
}

/** The one before the name: "composed the opera in Prague" is composed in. "of" belongs to the noun before it. */
function prepositionOf(rest: readonly Word[]): string[] {
  const word = rest.findLast(({ pos }) => pos !== "DET" && pos !== "ADJ");
  const isPreposition = word?.pos === "ADP" || word?.lower === "to";
  return word && isPreposition && word.lower !== "of" ? [word.lower] : [];
}

/** "became chief executive of": what somebody is says more than that he is. */
function nounOf(verb: Word, rest: readonly Word[]): string | undefined {
  if (verb.lemma !== "be" && verb.lemma !== "become") return undefined;
  const of = rest.findIndex(({ lower }) => lower === "of" || lower === "at");
  const noun = rest[of - 1];
  const isLast = of >= 0 && rest.slice(of + 1).every(({ pos }) => pos === "DET");
  return noun?.pos === "NOUN" && isLast && /^[a-z]{2,30}$/.test(noun.lemma)
    ? `${noun.lemma}_${rest[of]!.lower}`
    : undefined;
}

function isSame(one: Mention, other: Mention): boolean {
  return one.entity.name.toLowerCase() === other.entity.name.toLowerCase();
}
