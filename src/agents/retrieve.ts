import type { Search } from "../search/search.ts";
import type { Scope } from "./catalogue.ts";
import type { Found } from "./functions/parts.ts";
import { type JudgeParts, judge } from "./relevance.ts";

const PASSAGES_MAX = 6;

export interface RetrieveParts extends JudgeParts {
  readonly search: Search;
}

/** Finds passages for a question and says how much each has to do with it. */
export async function retrieve(
  parts: RetrieveParts,
  question: string,
  scope: Scope,
  signal: AbortSignal,
): Promise<Found> {
  const { tenant, collection } = scope;
  const { results, warnings } = await parts.search.search(
    { query: question, tenant, limit: PASSAGES_MAX, ...(collection !== null && { collection }) },
    signal,
  );
  const judged = await judge(parts, question, results, { scope, signal });
  const passages = results.map((result, index) => ({
    document_id: result.documentId,
    chunk_id: result.chunkId,
    filename: result.filename,
    title: result.title,
    page_number: result.pageNumber,
    content: result.content,
    ...judged[index]!,
  }));
  return { passages, warnings };
}
