import type { Hit } from "../adapters/vectors.ts";

export const SIGNALS = ["vector", "keyword", "graph"] as const;
export type Signal = (typeof SIGNALS)[number];

export interface Ranked {
  readonly chunkId: string;
  readonly documentId: string;
  readonly score: number;
  readonly signals: Readonly<Partial<Record<Signal, number>>>;
}

/**
 * Both were chosen on the two sets in test/quality: of what a small model puts first, most is right, and words alone
 * are right half as often. The graph knows what a passage is about, not what it says.
 */
const RANK_SMOOTHING = 2;
const WEIGHTS: Readonly<Record<Signal, number>> = { vector: 1, keyword: 0.3, graph: 0.2 };

/** Something in quotes, something like a part number, or no more than two words: these are meant as they are written. */
const LITERAL = /["“][^"”]+["”]|(?=[\w.-]*\d)(?=[\w.-]*[a-z])\b[\w.-]{3,}|^\s*\S+(?:\s+\S+)?\s*$/i;

/** Reciprocal rank fusion: signals whose scores cannot be compared are put together by their ranks. */
export function fuse(query: string, answers: readonly (readonly [Signal, readonly Hit[]])[]): Ranked[] {
  const weights = LITERAL.test(query) ? { ...WEIGHTS, keyword: WEIGHTS.vector } : WEIGHTS;
  const found = new Map<string, { hit: Hit; score: number; signals: Partial<Record<Signal, number>> }>();
  for (const [signal, hits] of answers) {
    for (const [position, hit] of hits.entries()) {
      const key = `${hit.documentId} ${hit.chunkId}`;
      const entry = found.get(key) ?? { hit, score: 0, signals: {} };
      entry.score += weights[signal] / (RANK_SMOOTHING + position + 1);
      entry.signals[signal] = position + 1;
      found.set(key, entry);
    }
  }
  return [...found.values()]
    .sort((a, b) => b.score - a.score || (a.hit.chunkId < b.hit.chunkId ? -1 : 1))
    .map(({ hit, score, signals }) => ({ chunkId: hit.chunkId, documentId: hit.documentId, score, signals }));
}
