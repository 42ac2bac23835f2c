import { seededBell, seededRandom } from "./random.ts";

export interface VectorSet {
  readonly vectors: readonly Float32Array[];
  readonly queries: readonly Float32Array[];
}

interface SetOptions {
  readonly count: number;
  readonly queries: number;
  readonly dimensions: number;
}

/** No direction is more likely than another: the hardest case, as the nearest are hardly nearer than the rest. */
export function scatteredVectors({ count, queries, dimensions }: SetOptions): VectorSet {
  const bell = seededBell(7);
  const make = () => unit(Float32Array.from({ length: dimensions }, bell));
  return {
    vectors: Array.from({ length: count }, make),
    queries: Array.from({ length: queries }, make),
  };
}

/** As texts of some topics lie: in heaps, all of them off the centre. */
export function clusteredVectors({ count, queries, dimensions }: SetOptions): VectorSet {
  const [bell, random] = [seededBell(11), seededRandom(13)];
  const step = 1 / Math.sqrt(dimensions);
  const noise = (width: number) => Float32Array.from({ length: dimensions }, () => bell() * width * step);
  const shift = noise(0.7);
  const centres = Array.from({ length: 100 }, () => sum(shift, noise(1)));
  const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)]!;
  const vectors = Array.from({ length: count }, () => unit(sum(pick(centres), noise(1))));
  return {
    vectors,
    queries: Array.from({ length: queries }, () => unit(sum(pick(vectors), noise(0.7)))),
  };
}

/** Positions of the nearest, best first, by comparing all. */
export function nearestOf(vectors: readonly Float32Array[], query: Float32Array, limit: number): number[] {
  const scores = vectors.map((vector) => dot(vector, query));
  return [...scores.keys()].sort((a, b) => scores[b]! - scores[a]!).slice(0, limit);
}

export function dot(a: Float32Array, b: Float32Array): number {
  let total = 0;
  for (let index = 0; index < a.length; index++) total += a[index]! * b[index]!;
  return total;
}

function sum(a: Float32Array, b: Float32Array): Float32Array {
  return a.map((value, index) => value + b[index]!);
}

function unit(vector: Float32Array): Float32Array {
  const length = Math.sqrt(dot(vector, vector));
  return vector.map((value) => value / length);
}
