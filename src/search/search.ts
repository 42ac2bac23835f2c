import type { Embedder } from "../adapters/embed.ts";
import type { TextIndex } from "../adapters/fulltext.ts";
import type { GraphStore } from "../adapters/graph.ts";
import type { Hit, IndexFilter, VectorStore } from "../adapters/vectors.ts";
import type { Database } from "../database/database.ts";
import { messageOf, QuarryError } from "../errors.ts";
import { fuse, type Ranked, SIGNALS, type Signal } from "./fusion.ts";
import { findPassages, matchingDocuments, type Passage } from "./passages.ts";
import { snippetOf } from "./snippet.ts";

export const SEARCH_MODES = ["hybrid", ...SIGNALS] as const;
export type SearchMode = (typeof SEARCH_MODES)[number];

export interface SearchQuery {
  readonly query: string;
  readonly tenant: string;
  readonly collection?: string;
  readonly documentIds?: readonly string[];
  /** Documents that have all of these values. */
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly limit?: number;
  /** Which signals count; "hybrid" takes all. */
  readonly mode?: SearchMode;
}

export interface SearchResult {
  readonly chunkId: string;
  readonly documentId: string;
  readonly filename: string;
  readonly title: string | null;
  readonly pageNumber: number;
  readonly headingPath: readonly string[];
  /** The whole passage, in Markdown. */
  readonly content: string;
  /** The part of it that says most about the query, as plain text. */
  readonly snippet: string;
  /** Where the words of the query stand in the snippet. */
  readonly highlights: readonly (readonly [start: number, end: number])[];
  /** Comparable within one answer only. */
  readonly score: number;
  /** The rank that each signal gave it, from 1. */
  readonly signals: Readonly<Partial<Record<Signal, number>>>;
}

export interface SearchAnswer {
  readonly results: readonly SearchResult[];
  /** What could not be asked; the results are what the rest found. */
  readonly warnings: readonly string[];
  readonly tookMs: number;
}

export interface Search {
  search(query: SearchQuery, signal?: AbortSignal): Promise<SearchAnswer>;
}

export interface SearchParts {
  readonly database: Database;
  readonly embedder: Embedder;
  readonly vectors: VectorStore;
  readonly fulltext: TextIndex;
  readonly graph: GraphStore;
}

const LIMIT_MAX = 100;
const QUERY_LENGTH_MAX = 20_000;
/** Each signal is asked for more than is wanted: fusion needs to see how the others rank a passage. */
const CANDIDATES_MIN = 50;
const CANDIDATES_PER_RESULT = 4;

/** Finds passages by meaning, by words and by what they are about, and shows only what stands in the database. */
export function openSearch(parts: SearchParts): Search {
  return {
    search: async (query, signal = new AbortController().signal) => {
      const { clock } = parts.database;
      const startedAt = clock.monotonic();
      const { limit, mode } = checked(query);
      const filter = await filterOf(parts.database, query);
      const warnings: string[] = [];
      const ranked = filter ? await rank(parts, query.query, { filter, limit, mode, warnings, signal }) : [];
      const passages = await findPassages(parts.database, ranked, { filter, limit });
      return {
        results: passages.map((passage) => resultOf(passage, query.query)),
        warnings,
        tookMs: Math.round((clock.monotonic() - startedAt) * 10) / 10,
      };
    },
  };
}

function checked({ query, limit = 10, mode = "hybrid" }: SearchQuery): { limit: number; mode: SearchMode } {
  const refuse = (problem: string): never => {
    throw new QuarryError("invalid_input", problem);
  };
  if (query.trim() === "") refuse("the query is empty: say what to look for");
  if (query.length > QUERY_LENGTH_MAX) refuse(`the query is longer than ${QUERY_LENGTH_MAX} characters`);
  if (!(Number.isInteger(limit) && limit >= 1 && limit <= LIMIT_MAX))
    refuse(`limit must be a whole number from 1 to ${LIMIT_MAX}`);
  if (!SEARCH_MODES.includes(mode))
    refuse(`mode is one of ${SEARCH_MODES.join(", ")}, not ${JSON.stringify(mode)}`);
  return { limit, mode };
}

/** Undefined when no document can match. */
async function filterOf(database: Database, query: SearchQuery): Promise<IndexFilter | undefined> {
  const { tenant, collection, documentIds, metadata } = query;
  const base = { tenant, ...(collection !== undefined && { collection }) };
  if (!metadata || Object.keys(metadata).length === 0)
    return { ...base, ...(documentIds && { documentIds }) };
  const matching = await matchingDocuments(database, { ...base, metadata });
  const wanted = documentIds ? matching.filter((id) => documentIds.includes(id)) : matching;
  return wanted.length === 0 ? undefined : { ...base, documentIds: wanted };
}

interface Ranking {
  readonly filter: IndexFilter;
  readonly limit: number;
  readonly mode: SearchMode;
  readonly warnings: string[];
  readonly signal: AbortSignal;
}

async function rank(parts: SearchParts, query: string, ranking: Ranking): Promise<Ranked[]> {
  const options = {
    limit: Math.max(CANDIDATES_MIN, ranking.limit * CANDIDATES_PER_RESULT),
    filter: ranking.filter,
  };
  const ask: Record<Signal, () => Promise<Hit[]>> = {
    vector: async () => {
      const [vector] = await parts.embedder.embed([query], ranking.signal);
      return parts.vectors.search(vector!, options);
    },
    keyword: () => parts.fulltext.search(query, options),
    graph: async () => {
      const entities = await parts.graph.find(namesIn(query), ranking.filter);
      if (entities.length === 0) return [];
      return parts.graph.chunksNear(
        entities.map(({ id }) => id),
        options,
      );
    },
  };
  const wanted = ranking.mode === "hybrid" ? SIGNALS : [ranking.mode];
  const answers = await Promise.all(
    wanted.map(async (signal) => {
      try {
        return [signal, await ask[signal]()] as const;
      } catch (error) {
        // One part that is down takes its signal away, not the search.
        if (wanted.length === 1 || ranking.signal.aborted) throw error;
        ranking.warnings.push(`${signal} search is not available: ${messageOf(error)}`);
        return [signal, []] as const;
      }
    }),
  );
  if (ranking.warnings.length === wanted.length)
    throw new QuarryError("model_failed", ranking.warnings.join("; "));
  return fuse(query, answers);
}

const NAME_WORDS_MAX = 4;

/** Every run of up to a few words may be a name. */
function namesIn(query: string): string[] {
  const words = query.split(/\s+/).map((word) => word.replaceAll(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, ""));
  const names = new Set<string>();
  for (let start = 0; start < words.length; start++)
    for (let end = start + 1; end <= Math.min(words.length, start + NAME_WORDS_MAX); end++) {
      const name = words.slice(start, end).join(" ").trim();
      if (name.length > 2) names.add(name);
    }
  return [...names];
}

function resultOf(passage: Passage, query: string): SearchResult {
  const { score, signals, ...shown } = passage;
  return { ...shown, ...snippetOf(passage.content, query), score, signals };
}
