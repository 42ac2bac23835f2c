import type { Hit } from "../adapters/vectors.ts";

export const SIGNALS = ["vector", "keyword", "graph"] as const;
export type Signal = (typeof SIGNALS)[number];

export interface Ranked {
  readonly chunkId: string;
  readonly documentId: string;
  readonly score: number;
  readonly signals: Readonly<Partial<Record<Signal, number>>>;
}

/** How fast a rank loses weight. Small: what one signal puts first should be seen. */
const RANK_SMOOTHING = 20;
/** The graph knows what a passage is about, not what it says. */
const WEIGHTS: Readonly<Record<Signal, number>> = { vector: 1, keyword: 1, graph: 0.3 };

/** Reciprocal rank fusion: signals whose scores cannot be compared are put together by their ranks. */
export function fuse(answers: readonly (readonly [Signal, readonly Hit[]])[]): Ranked[] {
  const found = new Map<string, { hit: Hit; score: number; signals: Partial<Record<Signal, number>> }>();
  for (const [signal, hits] of answers) {
    for (const [position, hit] of hits.entries()) {
      const key = `${hit.documentId} ${hit.chunkId}`;
      const entry = found.get(key) ?? { hit, score: 0, signals: {} };
      entry.score += WEIGHTS[signal] / (RANK_SMOOTHING + position + 1);
      entry.signals[signal] = position + 1;
      found.set(key, entry);
    }
  }
  return [...found.values()]
    .sort((a, b) => b.score - a.score || (a.hit.chunkId < b.hit.chunkId ? -1 : 1))
    .map(({ hit, score, signals }) => ({ chunkId: hit.chunkId, documentId: hit.documentId, score, signals }));
}
