import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openLocalEmbedder } from "../../src/adapters/embed/local.ts";
import type { Embedder } from "../../src/adapters/embed.ts";
import type { SearchMode } from "../../src/index.ts";
import { openSearch } from "../../src/search/search.ts";
import { compareTimes, type Figure, median, percentile } from "../figures.ts";
import { progress } from "../progress.ts";
import { shortCount } from "../queue/places.ts";
import { openMemoryStore } from "./langchain.ts";
import type { Scene } from "./scene.ts";
import { makeSearchData, type Query, type SearchData, TENANT } from "./search-data.ts";

const WARM_UP = 5;
const LIMIT = 10;
/** As many as Quarry takes from each signal. */
const CANDIDATES = 50;

type Asked = (query: Query) => Promise<unknown>;

/** How long an answer takes among many chunks, with and without the time to embed the question. */
export async function searchLatency({ folder, scale }: Scene): Promise<Figure[]> {
  const embedder = await openLocalEmbedder();
  const data = await makeSearchData({
    folder: join(folder, "search"),
    embedder,
    chunks: scale.chunksSearched,
    queries: scale.queries + WARM_UP,
  });
  try {
    const knowing = searchWith(data, knownVectors(data.queries, embedder, { isEmbedding: false }));
    const embedding = searchWith(data, knownVectors(data.queries, embedder, { isEmbedding: true }));
    const few = data.queries.slice(0, scale.peerQueries + WARM_UP);
    const known = {
      vector: await timesOf(knowing("vector"), data.queries),
      keyword: await timesOf(knowing("keyword"), data.queries),
      hybrid: await timesOf(knowing("hybrid"), data.queries),
    };
    const whole = {
      vector: await timesOf(embedding("vector"), data.queries),
      hybrid: await timesOf(embedding("hybrid"), data.queries),
    };
    // Last: so many arrays of numbers would keep the garbage collector busy for everybody.
    const plainWords = await timesOf(wordSearch(data), few);
    const inMemory = await timesOf(await memorySearch(data, embedder), few);
    const where = `search of ${shortCount(scale.chunksSearched)} chunks`;
    return [
      ...figures(`${where}, vector`, known.vector, { name: "LangChain.js in memory", times: inMemory }),
      ...figures(`${where}, keyword`, known.keyword, { name: "FTS5, all matches ranked", times: plainWords }),
      ...figures(`${where}, hybrid`, known.hybrid, { name: "quarry, vector alone", times: known.vector }),
      ...figures(`${where}, vector, question embedded`, whole.vector, {
        name: "quarry, question known",
        times: known.vector,
      }),
      ...figures(`${where}, hybrid, question embedded`, whole.hybrid, {
        name: "quarry, question known",
        times: known.hybrid,
      }),
    ];
  } finally {
    await data.close();
    await embedder.close();
  }
}

function searchWith(data: SearchData, embedder: Embedder): (mode: SearchMode) => Asked {
  const { vectors, fulltext } = data.index;
  const search = openSearch({ database: data.database, graph: data.graph, vectors, fulltext, embedder });
  return (mode) => async (query) => {
    const { results, warnings } = await search.search({
      query: query.text,
      tenant: TENANT,
      limit: LIMIT,
      mode,
    });
    if (results.length === 0 || warnings.length > 0)
      throw new Error(`${mode}: ${warnings.join() || "nothing"}`);
  };
}

/** Gives the invented vector of a question, after the time that a real one would have taken if so told. */
function knownVectors(
  queries: readonly Query[],
  embedder: Embedder,
  { isEmbedding }: { isEmbedding: boolean },
): Embedder {
  const known = new Map(queries.map(({ text, vector }) => [text, vector]));
  return {
    ...embedder,
    embed: async (texts, signal) => {
      if (isEmbedding) await embedder.embed(texts, signal);
      return { vectors: texts.map((text) => known.get(text)!), tokens: 0 };
    },
  };
}

async function memorySearch(data: SearchData, embedder: Embedder): Promise<Asked> {
  const store = await openMemoryStore(embedder);
  const count = data.vectors.length / embedder.dimensions;
  const vectors = Array.from({ length: count }, (_, position) => [
    ...data.vectors.subarray(position * embedder.dimensions, (position + 1) * embedder.dimensions),
  ]);
  await store.addVectors(
    vectors,
    vectors.map((_, position) => ({ pageContent: "", metadata: { position } })),
  );
  return ({ vector }) => store.similaritySearchVectorWithScore([...vector], CANDIDATES);
}

/** What one would write first: every word counts, every match is ranked. */
function wordSearch({ indexPath }: SearchData): Asked {
  const index = new DatabaseSync(indexPath, { readOnly: true });
  const statement = index.prepare("select rowid from words where words match ? order by bm25(words) limit ?");
  return async ({ text }) => {
    const expression = text
      .split(" ")
      .map((word) => `"${word}"`)
      .join(" OR ");
    if (statement.all(expression, CANDIDATES).length === 0) throw new Error(`nothing has ${text}`);
  };
}

async function timesOf(ask: Asked, queries: readonly Query[]): Promise<number[]> {
  const times: number[] = [];
  for (const [position, query] of queries.entries()) {
    const startedAt = performance.now();
    await ask(query);
    if (position >= WARM_UP) times.push(performance.now() - startedAt);
  }
  return times;
}

function figures(
  measure: string,
  times: readonly number[],
  peer: { name: string; times: readonly number[] },
): Figure[] {
  const p99 = (values: readonly number[]) => percentile(values, 99);
  progress(`${measure}: p50 ${median(times).toFixed(1)} ms, p99 ${p99(times).toFixed(1)} ms`);
  return Object.entries({ p50: median, p99 }).map(([name, of]) =>
    compareTimes({
      measure: `${measure}, ${name}`,
      unit: "ms",
      quarry: of(times),
      peer: peer.name,
      peerValue: of(peer.times),
      goal: null,
    }),
  );
}
