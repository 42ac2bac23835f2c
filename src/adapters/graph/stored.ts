const NAME_LENGTH_MAX = 200;
const TYPE_LENGTH_MAX = 60;
export const CHUNKS_PER_TRANSACTION_MAX = 200;
export const NAMES_MAX = 1_000;
export const RELATIONS_MAX = 1_000;

export function storedName(name: string): string {
  return storable(name, NAME_LENGTH_MAX);
}

export function storedType(type: string): string {
  return storable(type, TYPE_LENGTH_MAX);
}

export function storedConfidence(confidence: number): number {
  return Math.min(Math.max(confidence, 0), 1);
}

/** Stores take neither NUL nor half a surrogate pair, and an index entry has a bound. */
function storable(text: string, lengthMax: number): string {
  return text.replaceAll("\0", "").slice(0, lengthMax).toWellFormed();
}

export function* partsOf<T>(all: readonly T[]): Generator<readonly T[]> {
  for (let start = 0; start < all.length; start += CHUNKS_PER_TRANSACTION_MAX)
    yield all.slice(start, start + CHUNKS_PER_TRANSACTION_MAX);
}

/** Of a chunk that is written twice at once the last; in the order of their keys, in which every writer locks. */
export function newestByKey<Chunk extends { readonly chunkKey: string }>(chunks: readonly Chunk[]): Chunk[] {
  const newest = new Map(chunks.map((chunk) => [chunk.chunkKey, chunk]));
  return [...newest.keys()].sort().map((key) => newest.get(key)!);
}
