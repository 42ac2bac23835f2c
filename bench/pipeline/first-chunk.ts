import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { openLocalEmbedder } from "../../src/adapters/embed/local.ts";
import type { Database } from "../../src/index.ts";
import { compareRates, compareTimes, type Figure } from "../figures.ts";
import { progress } from "../progress.ts";
import { writeLongPdf } from "./long-pdf.ts";
import { openPlain } from "./plain.ts";
import { openQuarryContender } from "./quarry.ts";
import type { Scene } from "./scene.ts";

const LOOK_EVERY_MS = 2;

interface Times {
  readonly firstMs: number;
  readonly totalMs: number;
}

/** A long document: when can something of it be found, and when all? */
export async function firstChunk({ folder, scale }: Scene): Promise<Figure[]> {
  const path = join(folder, "long.pdf");
  const warmUp = join(folder, "short.pdf");
  await writeLongPdf(path, { pages: scale.pages, seed: 1 });
  await writeLongPdf(warmUp, { pages: 1, seed: 2 });
  const ours = await withQuarry(join(folder, "first-chunk"), { path, warmUp });
  const plain = await byHand(join(folder, "first-chunk-plain"), { path, warmUp });
  for (const [name, { firstMs, totalMs }] of Object.entries({ quarry: ours, plain }))
    progress(`${name}: first chunk after ${Math.round(firstMs)} ms, all after ${Math.round(totalMs)} ms`);
  const rate = ({ totalMs }: Times) => (scale.pages / totalMs) * 1_000;
  const peer = "plain loop that reads first";
  const measure = `PDF of ${scale.pages} pages`;
  return [
    compareTimes({
      measure: `${measure}, first chunk found`,
      unit: "ms",
      quarry: ours.firstMs,
      peer,
      peerValue: plain.firstMs,
      goal: null,
    }),
    compareRates({
      measure: `${measure}, all of it found`,
      unit: "pages/s",
      quarry: rate(ours),
      peer,
      peerValue: rate(plain),
      goal: null,
    }),
  ];
}

interface Files {
  readonly path: string;
  readonly warmUp: string;
}

async function withQuarry(folder: string, { path, warmUp }: Files): Promise<Times> {
  const quarry = await openQuarryContender({ name: "quarry", folder, upTo: "vector" });
  try {
    await quarry.take([warmUp]);
    const before = await searchableChunks(quarry.database);
    const startedAt = performance.now();
    const all = quarry.take([path]);
    while ((await searchableChunks(quarry.database)) === before) await pause(LOOK_EVERY_MS);
    const firstMs = performance.now() - startedAt;
    await all;
    return { firstMs, totalMs: performance.now() - startedAt };
  } finally {
    await quarry.close();
  }
}

async function searchableChunks(database: Database): Promise<number> {
  const [row] = await database.query(
    "select count(*) as total from (select 1 from task_queue_chunk where vector_status = 'completed' limit 100)",
  );
  return Number(row!.total);
}

async function byHand(folder: string, { path, warmUp }: Files): Promise<Times> {
  const embedder = await openLocalEmbedder();
  let firstMs = Number.POSITIVE_INFINITY;
  let startedAt = performance.now();
  const plain = await openPlain({
    name: "plain loop",
    folder,
    embedder,
    upTo: "vector",
    isOverlapped: false,
    onStored: () => {
      firstMs = Math.min(firstMs, performance.now() - startedAt);
    },
  });
  try {
    await plain.take([warmUp]);
    firstMs = Number.POSITIVE_INFINITY;
    startedAt = performance.now();
    await plain.take([path]);
    return { firstMs, totalMs: performance.now() - startedAt };
  } finally {
    await plain.close();
    await embedder.close();
  }
}
