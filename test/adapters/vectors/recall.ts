import { randomUUID } from "node:crypto";
import type { VectorStore } from "../../../src/adapters/vectors.ts";
import { nearestOf, type VectorSet } from "../../support/vectors.ts";

export const TENANT = "tenant";
export const DOCUMENTS = [randomUUID(), randomUUID(), randomUUID()];
const BATCH = 500;

/** Every hundredth is in a collection of its own, so that a filter leaves few of those that are near. */
export function collectionOf(position: number): string {
  return position % 100 === 0 ? "rare" : "c";
}

export async function fill(store: VectorStore, vectors: readonly Float32Array[]): Promise<void> {
  const points = vectors.map((vector, index) => ({
    chunkId: String(index),
    documentId: DOCUMENTS[index % 3]!,
    tenant: TENANT,
    collection: collectionOf(index),
    vector,
  }));
  for (let start = 0; start < points.length; start += BATCH)
    await store.upsert(points.slice(start, start + BATCH));
}

/** The share of the nearest that a search finds, beside a comparison with every vector. */
export async function recallOf(
  store: VectorStore,
  { vectors, queries }: VectorSet,
  { limit, collection }: { limit: number; collection?: string },
): Promise<number> {
  const inside = [...vectors.keys()].filter(
    (at) => collection === undefined || collectionOf(at) === collection,
  );
  let found = 0;
  let wanted = 0;
  for (const query of queries) {
    const filter = { tenant: TENANT, ...(collection !== undefined && { collection }) };
    const hits = await store.search(query, { limit, filter });
    const nearest = nearestOf(
      inside.map((at) => vectors[at]!),
      query,
      limit,
    ).map((at) => String(inside[at]));
    wanted += nearest.length;
    found += hits.filter((hit) => nearest.includes(hit.chunkId)).length;
  }
  return found / wanted;
}
