import { quoted } from "./lexemes.ts";
import { CONTENT_WEIGHT, CONTEXT_WEIGHT, type CountedTerm, FREQUENCY_SMOOTHING } from "./ranking.ts";

export interface Term {
  readonly lexemes: readonly string[];
  /** As a tsquery: the words of a term stand side by side. */
  readonly term: string;
}

/** ts_rank of a word that stands once in a text: it adds 1/1, 1/4, 1/9, … for each time and divides by their sum. */
const RANK_OF_ONE = 6 / Math.PI ** 2;
/** How often a word stands in a text is `rank / (1 - rank)` times this, within 3 in 100, with what the text says twice. */
const FREQUENCY_OF_RANK = (CONTENT_WEIGHT * (1 - RANK_OF_ONE)) / RANK_OF_ONE;
/** The label's weight that makes a word in the headings count as often as it should beside one in the text. */
const CONTEXT_LABEL = CONTEXT_WEIGHT / (FREQUENCY_OF_RANK + CONTEXT_WEIGHT) / RANK_OF_ONE;
const LABELS = `'{${CONTEXT_LABEL.toFixed(4)}, 0, 0, 1}'`;

/** BM25's b: how much longer texts are held to say a word more often. */
const LENGTH_SHARE = 0.75;

/**
 * BM25 by way of ts_rank, which PostgreSQL reckons in C: `frequency / (frequency + k1 * length)` for each term, times
 * its rarity. The parameters are added to those that are there.
 */
export function scoreOf(
  terms: readonly (Term & CountedTerm)[],
  { lengthMean, params }: { lengthMean: number; params: unknown[] },
): string {
  const mark = (param: unknown, type: string) => `$${params.push(param)}::${type}`;
  const smoothing = FREQUENCY_SMOOTHING / FREQUENCY_OF_RANK;
  const length = `(${1 - LENGTH_SHARE} + ${LENGTH_SHARE} * length / ${mark(lengthMean, "float8")})`;
  const scores = terms.map(({ lexemes, term, rarity }) => {
    const ranks = lexemes.map((lexeme) => `ts_rank(${LABELS}, words, ${mark(quoted(lexeme), "tsquery")})`);
    const isPhrase = lexemes.length > 1;
    const found = isPhrase
      ? `case when words @@ ${mark(term, "tsquery")} then least(${ranks.join(", ")}) end`
      : ranks[0]!;
    return `${mark(rarity, "float8")} * coalesce(1 / (1 + ${smoothing} * ${length} * (1 / nullif(${found}, 0)::float8 - 1)), 0)`;
  });
  return scores.join(" + ");
}
