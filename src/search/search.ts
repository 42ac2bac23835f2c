import type { Embedder } from "../adapters/embed.ts";
import type { TextIndex } from "../adapters/fulltext.ts";
import type { GraphStore } from "../adapters/graph.ts";
import type { Hit, IndexFilter, VectorStore } from "../adapters/vectors.ts";
import type { Database } from "../database/database.ts";
import { messageOf, QuarryError } from "../errors.ts";
import { fuse, SIGNALS, type Signal } from "./fusion.ts";
import { Highlighter, type Span } from "./highlight.ts";
import { namesIn } from "./names.ts";
import { findPassages, matchingDocuments, type Passage } from "./passages.ts";
import { plainText, snippetOf } from "./snippet.ts";

export const SEARCH_MODES = ["hybrid", ...SIGNALS] as const;
export type SearchMode = (typeof SEARCH_MODES)[number];

export interface SearchQuery {
  readonly query: string;
  readonly tenant: string;
  readonly collection?: string;
  readonly documentIds?: readonly string[];
  /** Only documents that have all of these values: texts, numbers, booleans or null. */
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly limit?: number;
  /** Which signals count; "hybrid" takes all. */
  readonly mode?: SearchMode;
}

export interface SearchResult {
  readonly chunkId: string;
  readonly documentId: string;
  readonly filename: string;
  /** Where the document came from: its path, unless it was said otherwise. */
  readonly source: string;
  /** The machine whose path the source is, where that is known. */
  readonly seenOn: string | null;
  readonly title: string | null;
  readonly collection: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly pageNumber: number;
  readonly headingPath: readonly string[];
  /** The whole passage, in Markdown. */
  readonly content: string;
  /** The part of it that says most about the query, as plain text. */
  readonly snippet: string;
  /** Where the words of the query stand in the snippet. */
  readonly highlights: readonly Span[];
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

/** For the vector of a question. The model on this machine may have to be loaded first. */
const EMBED_WITHIN_MS = 10_000;
const LIMIT_MAX = 100;
const QUERY_LENGTH_MAX = 20_000;
/** Each signal is asked for more than is wanted: fusion needs to see how the others rank a passage. */
const CANDIDATES_MIN = 50;
const CANDIDATES_PER_RESULT = 4;
/** When too much of what was found is gone or said twice, more is asked for, up to this. */
const CANDIDATES_MAX = 4_000;

/** Finds passages by meaning, by words and by what they are about, and shows only what stands in the database. */
export function openSearch(parts: SearchParts): Search {
  const highlighter = new Highlighter();
  return {
    search: async (query, signal = new AbortController().signal) => {
      const { clock } = parts.database;
      const startedAt = clock.monotonic();
      const asked = { ...checked(query), query: query.query, signal };
      const filter = await filterOf(parts.database, query);
      const { passages, warnings } = filter
        ? await find(parts, { ...asked, filter })
        : { passages: [], warnings: [] };
      return {
        results: resultsOf(highlighter, query.query, passages),
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

const DOCUMENT_ID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** Undefined when no document can match. */
async function filterOf(database: Database, query: SearchQuery): Promise<IndexFilter | undefined> {
  const { tenant, collection, metadata } = query;
  // What is no id is no document's; PostgreSQL would refuse to look for it.
  const documentIds = query.documentIds?.filter((id) => DOCUMENT_ID.test(id));
  const base = { tenant, ...(collection !== undefined && { collection }) };
  if (!metadata || Object.keys(metadata).length === 0)
    return { ...base, ...(documentIds && { documentIds }) };
  const matching = await matchingDocuments(database, { ...base, metadata });
  const given = documentIds && new Set(documentIds);
  const wanted = given ? matching.filter((id) => given.has(id)) : matching;
  return wanted.length === 0 ? undefined : { ...base, documentIds: wanted };
}

interface Asked {
  readonly query: string;
  readonly filter: IndexFilter;
  readonly limit: number;
  readonly mode: SearchMode;
  readonly signal: AbortSignal;
}

async function find(
  parts: SearchParts,
  asked: Asked,
): Promise<{ passages: Passage[]; warnings: readonly string[] }> {
  const { limit, filter } = asked;
  const signals = new Signals(parts, asked);
  let candidates = Math.max(CANDIDATES_MIN, limit * CANDIDATES_PER_RESULT);
  for (;;) {
    const answers = await signals.ask(candidates);
    const passages = await findPassages(parts.database, fuse(answers), { tenant: filter.tenant, limit });
    const isMore = [...answers.values()].some((hits) => hits.length === candidates);
    if (passages.length === limit || !isMore || candidates >= CANDIDATES_MAX)
      return { passages, warnings: signals.warnings };
    candidates = Math.min(CANDIDATES_MAX, candidates * 4);
  }
}

/** The signals of one search. One that is down takes its votes away, not the search. */
class Signals {
  readonly #parts: SearchParts;
  readonly #asked: Asked;
  readonly #wanted: Signal[];
  readonly #warnings = new Map<Signal, string>();
  #vector: Float32Array | undefined;

  constructor(parts: SearchParts, asked: Asked) {
    this.#parts = parts;
    this.#asked = asked;
    this.#wanted = asked.mode === "hybrid" ? [...SIGNALS] : [asked.mode];
  }

  get warnings(): string[] {
    return [...this.#warnings.values()];
  }

  async ask(limit: number): Promise<Map<Signal, Hit[]>> {
    this.#asked.signal.throwIfAborted();
    const usable = this.#wanted.filter((signal) => !this.#warnings.has(signal));
    const answers = await Promise.all(
      usable.map(async (signal) => [signal, await this.#try(signal, limit)] as const),
    );
    if (this.#warnings.size === this.#wanted.length)
      throw new QuarryError("model_failed", this.warnings.join("; "));
    return new Map(answers);
  }

  async #try(signal: Signal, limit: number): Promise<Hit[]> {
    try {
      return await this.#askOne(signal, limit);
    } catch (error) {
      if (this.#wanted.length === 1 || this.#asked.signal.aborted) throw error;
      this.#warnings.set(signal, `${signal} search is not available: ${messageOf(error)}`);
      return [];
    }
  }

  /** A service that is away is waited for by lanes, not by people: words and names still find something. */
  get #withinReason(): AbortSignal {
    return AbortSignal.any([this.#asked.signal, AbortSignal.timeout(EMBED_WITHIN_MS)]);
  }

  async #askOne(signal: Signal, limit: number): Promise<Hit[]> {
    const { embedder, vectors, fulltext, graph } = this.#parts;
    const { query, filter } = this.#asked;
    const options = { limit, filter };
    switch (signal) {
      case "vector":
        this.#vector ??= (await embedder.embed([query], this.#withinReason, "question")).vectors[0]!;
        return vectors.search(this.#vector, options);
      case "keyword":
        return fulltext.search(query, options);
      case "graph": {
        const entities = await graph.find(namesIn(query), filter);
        const ids = entities.map(({ id }) => id);
        return ids.length === 0 ? [] : graph.chunksNear(ids, options);
      }
      default:
        return signal satisfies never;
    }
  }
}

function resultsOf(highlighter: Highlighter, query: string, passages: readonly Passage[]): SearchResult[] {
  const texts = passages.map(({ content }) => plainText(content));
  const spans = highlighter.find(query, texts);
  return passages.map(({ score, signals, ...shown }, index) => ({
    ...shown,
    ...snippetOf(texts[index]!, spans[index]!),
    score,
    signals,
  }));
}
