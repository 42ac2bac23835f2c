import type { Embedder } from "../adapters/embed.ts";
import type { TextIndex } from "../adapters/fulltext.ts";
import { plainText } from "../search/snippet.ts";
import type { Scope } from "./catalogue.ts";

export interface JudgedPassage {
  readonly documentId: string;
  readonly chunkId: string;
  readonly content: string;
}

export interface Judgement {
  readonly relevance: number;
  readonly quote: string;
}

/**
 * What speaks of a question reaches this, what speaks of something else seldom does. Of the questions of test/quality
 * 37 of the 46 that the samples answer get there, 34 of them with the right file; of 80 that they do not, 8.
 */
export const RELEVANT = 0.44;
/** Words count less than meaning: a question put in other words shares few of them. */
const WORDS_WEIGH = 0.7;

const SENTENCES_MAX = 12;
const SENTENCE_LENGTH_MIN = 15;
const QUOTE_LENGTH_MIN = 100;
const QUOTE_LENGTH_MAX = 300;
const EMBED_WITHIN_MS = 10_000;
const COVERED_LOOK_UP_MAX = 500;

/** About nothing that is asked here: how near a model thinks such sentences are to a question is its zero. */
const ELSEWHERE = [
  "The violin part is doubled an octave higher.",
  "Add the sugar and stir until it has dissolved.",
  "The second half ended without a goal.",
  "Press the blue button to change the channel.",
];

export interface JudgeParts {
  readonly embedder: Embedder;
  readonly fulltext: TextIndex;
}

/** Says how much passages have to do with a question, and which of their sentences. In the order of the passages. */
export async function judge(
  { embedder, fulltext }: JudgeParts,
  question: string,
  passages: readonly JudgedPassage[],
  { scope, signal }: { scope: Scope; signal: AbortSignal },
): Promise<Judgement[]> {
  const sentences = passages.map(({ content }) => sentencesOf(content));
  const [nearness, covered] = await Promise.all([
    nearnessOf(embedder, question, sentences, signal),
    coverageOf(fulltext, question, scope),
  ]);
  return passages.map(({ documentId, chunkId }, index) => {
    const near = nearness?.[index] ?? [];
    const best = near.indexOf(Math.max(...near));
    const coverage = covered.get(`${documentId} ${chunkId}`) ?? 0;
    // Without the model, words alone have to do.
    const relevance = nearness ? Math.max(0, near[best] ?? 0) + WORDS_WEIGH * coverage : 2 * coverage;
    return {
      relevance: Math.round(relevance * 1000) / 1000,
      quote: quoteAround(sentences[index]!, Math.max(0, best)),
    };
  });
}

/** For each sentence how near it is to the question: 0 as near as anything, 1 the same. */
async function nearnessOf(
  embedder: Embedder,
  question: string,
  sentences: readonly (readonly string[])[],
  signal: AbortSignal,
): Promise<number[][] | undefined> {
  const within = AbortSignal.any([signal, AbortSignal.timeout(EMBED_WITHIN_MS)]);
  try {
    const [asked] = (await embedder.embed([question], within, "question")).vectors;
    const { vectors } = await embedder.embed([...ELSEWHERE, ...sentences.flat()], within);
    const cosines = vectors.map((vector) => vector.reduce((sum, value, at) => sum + value * asked![at]!, 0));
    const zero = Math.max(0, cosines.slice(0, ELSEWHERE.length).reduce((a, b) => a + b) / ELSEWHERE.length);
    const scaled = cosines.slice(ELSEWHERE.length).map((cosine) => (cosine - zero) / (1 - zero));
    let from = 0;
    return sentences.map((some) => {
      const own = scaled.slice(from, from + some.length);
      from += some.length;
      return own;
    });
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}

/** How much of what the question asks for each passage has in its words. */
async function coverageOf(
  fulltext: TextIndex,
  question: string,
  { tenant, collection }: Scope,
): Promise<Map<string, number>> {
  const filter = { tenant, ...(collection !== null && { collection }) };
  const hits = await fulltext.search(question, { limit: COVERED_LOOK_UP_MAX, filter });
  return new Map(hits.map(({ documentId, chunkId, score }) => [`${documentId} ${chunkId}`, score]));
}

const SENTENCE_END = /(?<=[.!?]["”’)]?)\s+(?=["“‘(]?[\p{Lu}\p{N}])/u;

const BLOCK_END = /\n\s*\n|\n(?=\s*(?:[-*+#>|]|\d{1,3}[.)] ))/;

/** Paragraphs, list items and rows of tables are sentences of their own. */
export function sentencesOf(markdown: string): string[] {
  const sentences = markdown
    .split(BLOCK_END)
    .map(plainText)
    .flatMap((line) => line.split(SENTENCE_END))
    .filter((sentence) => sentence.length >= SENTENCE_LENGTH_MIN);
  return sentences.length > 0 ? sentences.slice(0, SENTENCES_MAX) : [plainText(markdown)];
}

/** The best sentence and what follows it, as far as there is room; what stands before it only where that is little. */
function quoteAround(sentences: readonly string[], best: number): string {
  let [from, to] = [best, best + 1];
  const text = () => sentences.slice(from, to).join(" ");
  while (to < sentences.length && text().length + sentences[to]!.length < QUOTE_LENGTH_MAX) to++;
  while (from > 0 && text().length < QUOTE_LENGTH_MIN) from--;
  return text().length > 2 * QUOTE_LENGTH_MAX ? `${text().slice(0, 2 * QUOTE_LENGTH_MAX)} …` : text();
}
