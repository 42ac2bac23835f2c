/** Ranking costs about a microsecond a match: common words are left out beyond this many. */
export const MATCHES_MAX = 5_000;
/** How many are counted at most; beyond, all that matters is that it is too much. */
export const COUNTED_MAX = MATCHES_MAX + 1;
/** BM25's k1: how soon a word that stands in a text again and again counts no more. */
export const FREQUENCY_SMOOTHING = 1.2;
/** What BM25 gives for a word that stands in a text again and again, in terms of its rarity. */
export const SATURATION = FREQUENCY_SMOOTHING + 1;
/** What the chunk itself says counts more than the headings above it. */
export const CONTEXT_WEIGHT = 1;
export const CONTENT_WEIGHT = 2;

export interface CountedTerm {
  readonly term: string;
  /** In the scope, up to a bound. */
  readonly matches: number;
  /** What BM25 gives for a word as rare as this one is in the whole index. */
  readonly rarity: number;
}

/** As FTS5 reckons it; words that stand in more than half of the texts count for next to nothing. */
export function rarityOf(matches: number, allTexts: number): number {
  return Math.max(1e-6, Math.log((allTexts - matches + 0.5) / (matches + 0.5)));
}

/** The rarest term is always among the rare ones. */
export function partByMatches(counted: readonly CountedTerm[]): { rare: string[]; common: string[] } {
  const rare: string[] = [];
  const common: string[] = [];
  let total = 0;
  for (const { term, matches } of counted.toSorted((a, b) => a.matches - b.matches)) {
    total += matches;
    (rare.length === 0 || total <= MATCHES_MAX ? rare : common).push(term);
  }
  return { rare, common };
}
