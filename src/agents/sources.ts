import type { AgentWorker } from "./planners.ts";
import { RELEVANT } from "./relevance.ts";
import type { Citation, FoundPassage } from "./results.ts";
import type { Table } from "./sql-table.ts";

/** What an answer may cite. */
export type Source =
  | { readonly kind: "passage"; readonly passage: FoundPassage }
  | { readonly kind: "table"; readonly task: string; readonly sql: string; readonly table: Table };

/** More would drown what matters. */
const SOURCES_MAX = 20;
/** A passage that has much less to do with it than the best one only distracts. */
const RELEVANT_SHARE = 0.75;

/** All that workers found, each passage once, the most relevant of each worker first. */
export function sourcesOf(workers: readonly AgentWorker[]): Source[] {
  const sources = new Map<string, Source>();
  for (const { result, task, worker_id: id } of workers) {
    if (result?.kind === "table")
      sources.set(id, { kind: "table", task, sql: result.sql, table: result.table });
    if (result?.kind === "passages")
      for (const passage of byRelevance(result.passages))
        sources.set(`${passage.document_id} ${passage.chunk_id}`, { kind: "passage", passage });
  }
  return [...sources.values()].slice(0, SOURCES_MAX);
}

export function byRelevance(passages: readonly FoundPassage[]): FoundPassage[] {
  return passages.toSorted((one, other) => other.relevance - one.relevance);
}

/** What of it speaks of the question, best first; nothing when nothing does. */
export function relevantOf(passages: readonly FoundPassage[]): FoundPassage[] {
  const [best, ...others] = byRelevance(passages);
  if (!best || best.relevance < RELEVANT) return [];
  const enough = Math.max(RELEVANT, best.relevance * RELEVANT_SHARE);
  return [best, ...others.filter(({ relevance }) => relevance >= enough)];
}

export function citationOf(source: Source, number: number): Citation {
  if (source.kind === "table")
    return { number, kind: "catalogue", sql: source.sql, rows: source.table.rows.length };
  const { document_id, chunk_id, filename, page_number, quote } = source.passage;
  return { number, kind: "passage", document_id, chunk_id, filename, page_number, quote };
}
