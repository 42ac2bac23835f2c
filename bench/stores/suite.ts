import { randomUUID } from "node:crypto";
import type { Point } from "../../src/adapters/vectors.ts";
import { nearestOf } from "../../test/support/vectors.ts";
import { compareRates, compareTimes, type Figure, median, percentile } from "../figures.ts";
import { Vectors } from "../pipeline/vocabulary.ts";
import { progress } from "../progress.ts";
import { defineSuite } from "../suite.ts";
import { DIMENSIONS, openPlaces, type Place } from "./places.ts";

interface Scene {
  readonly places: readonly Place[];
  readonly vectors: Vectors;
  /** Chunks in a round of writing, of which each contender has several. */
  readonly written: number;
  readonly rounds: number;
  /** Chunks that are searched. */
  readonly searched: number;
  readonly queries: number;
}

const TENANT = "default";
const BATCH = 256;
const CHUNKS_PER_DOCUMENT = 100;
const LIMIT = 10;
const WARM_UP = 5;
/** How far a question lies from the text that answers it. */
const QUERY_SPREAD = 0.6;
const RECALL_GOAL = 0.95;

export const storesSuite = defineSuite<Scene>({
  measures: { writing, search },
  remark: "Vectors of 384 dimensions in 300 clusters, written and searched through the ports.",
  withScene: async ({ folder, isQuick }, work) => {
    const places = await openPlaces(folder);
    try {
      return await work({
        places,
        vectors: new Vectors(5, DIMENSIONS),
        written: isQuick ? 512 : 10_240,
        rounds: isQuick ? 1 : 5,
        searched: isQuick ? 6_000 : 100_000,
        queries: isQuick ? 20 : 300,
      });
    } finally {
      for (const place of places) await place.close();
    }
  },
});

/** Chunks per second, in batches, beside the same client called in a bare loop. */
async function writing(scene: Scene): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const place of scene.places) {
    const rates = { quarry: [] as number[], bare: [] as number[] };
    for (let round = 0; round < scene.rounds; round++) {
      const points = chunks(scene.vectors, Math.max(BATCH / 2, Math.round(scene.written * place.share)));
      const contenders = {
        quarry: async () => {
          const { store, close } = await place.open();
          return { write: (batch: readonly Point[]) => store.upsert(batch), close };
        },
        bare: () => place.openBare(),
      };
      const order = round % 2 === 0 ? (["quarry", "bare"] as const) : (["bare", "quarry"] as const);
      for (const name of order) {
        const { write, close } = await contenders[name]();
        // What is made once, at the first write, is not what is measured.
        await write(chunks(scene.vectors, 1));
        rates[name].push(await rateOf(points, write));
        await close();
      }
    }
    progress(`${place.name}: ${Math.round(median(rates.quarry))} chunks/s`);
    figures.push(
      compareRates({
        measure: `${place.name}, chunks written ${BATCH} at a time`,
        unit: "chunks/s",
        quarry: median(rates.quarry),
        peer: "bare loop",
        peerValue: median(rates.bare),
        goal: place.goal,
        ...(place.note !== undefined && { note: place.note }),
      }),
    );
  }
  return figures;
}

async function rateOf(
  points: readonly Point[],
  write: (batch: readonly Point[]) => Promise<void>,
): Promise<number> {
  const startedAt = performance.now();
  for (let start = 0; start < points.length; start += BATCH) await write(points.slice(start, start + BATCH));
  return points.length / ((performance.now() - startedAt) / 1_000);
}

interface Searched {
  readonly place: Place;
  readonly count: number;
  readonly recall: number;
  readonly times: readonly number[];
}

/** How soon the ten nearest are there, and how many of them really are the nearest. */
async function search(scene: Scene): Promise<Figure[]> {
  const answers: Searched[] = [];
  for (const place of scene.places) {
    answers.push(await searchPlace(scene, place));
    const { times, recall, count } = answers.at(-1)!;
    progress(
      `${place.name}, ${count} chunks: p50 ${median(times).toFixed(1)} ms, p99 ${percentile(times, 99).toFixed(1)} ms, recall ${recall.toFixed(3)}`,
    );
  }
  const [embedded] = answers;
  return answers.flatMap(({ place, count, recall, times }) => {
    const note = place.note !== undefined && place !== embedded!.place ? { note: place.note } : {};
    const percentiles = Object.entries({ p50: 50, p99: 99 }).map(([name, percent]) =>
      compareTimes({
        measure: `${place.name}, search of ${count} chunks, ${name}`,
        unit: "ms",
        quarry: percentile(times, percent),
        peer: `embedded, ${embedded!.count} chunks`,
        peerValue: percentile(embedded!.times, percent),
        goal: null,
        ...note,
      }),
    );
    const found = compareRates({
      measure: `${place.name}, recall@${LIMIT} of ${count} chunks`,
      unit: "share",
      quarry: recall,
      peer: "every vector compared",
      peerValue: 1,
      goal: RECALL_GOAL,
      ...note,
    });
    return [...percentiles, found];
  });
}

async function searchPlace({ vectors: space, searched, queries }: Scene, place: Place): Promise<Searched> {
  const count = Math.round(searched * place.share);
  const vectors: Float32Array[] = [];
  const { store, settled, close } = await place.open();
  for (let start = 0; start < count; start += BATCH) {
    const batch = chunks(space, Math.min(BATCH, count - start), start);
    vectors.push(...batch.map(({ vector }) => vector));
    await store.upsert(batch);
  }
  await settled();
  const times: number[] = [];
  let found = 0;
  for (let position = -WARM_UP; position < queries; position++) {
    const near = vectors[(7_919 * (position + WARM_UP)) % count]!;
    const query = space.near(near, QUERY_SPREAD);
    const startedAt = performance.now();
    const hits = await store.search(query, { limit: LIMIT, filter: { tenant: TENANT } });
    if (position < 0) continue;
    times.push(performance.now() - startedAt);
    const nearest = new Set(nearestOf(vectors, query, LIMIT).map(String));
    found += hits.filter(({ chunkId }) => nearest.has(chunkId)).length;
  }
  await close();
  return { place, count, times, recall: found / (queries * LIMIT) };
}

function chunks(space: Vectors, count: number, first = 0): Point[] {
  let documentId = randomUUID();
  return Array.from({ length: count }, (_none, position) => {
    if (position % CHUNKS_PER_DOCUMENT === 0) documentId = randomUUID();
    return {
      chunkId: String(first + position),
      documentId,
      tenant: TENANT,
      collection: "c",
      vector: space.any(),
    };
  });
}
