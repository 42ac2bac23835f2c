import type { Search, SearchMode, SearchResult } from "../../src/search/search.ts";

export interface Question {
  readonly question: string;
  isAnsweredBy(result: SearchResult): boolean;
}

export interface Recall {
  /** The share of questions whose answer is among the results. */
  readonly found: number;
  /** The share of questions whose answer stands first. */
  readonly first: number;
}

/** Asks every question in one mode. */
export async function measureRecall(
  search: Search,
  questions: readonly Question[],
  options: { tenant: string; mode: SearchMode; limit: number },
): Promise<Recall> {
  let found = 0;
  let first = 0;
  for (const { question, isAnsweredBy } of questions) {
    const { results } = await search.search({ query: question, ...options });
    const position = results.findIndex(isAnsweredBy);
    if (position >= 0) found++;
    if (position === 0) first++;
  }
  return { found: found / questions.length, first: first / questions.length };
}
