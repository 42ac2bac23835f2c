import { openQuarry } from "../../src/index.ts";
import { compareRates, type Figure, median } from "../figures.ts";
import { progress } from "../progress.ts";
import { BATCH, MODEL, randomVector, textOf } from "./model.ts";
import { DATABASE_NAMES, type DatabaseName, makePlace, type Scene } from "./scene.ts";
import { runApart, startServer } from "./serving.ts";

/** What a process that works over HTTP is told. */
export interface WorkerOrder {
  readonly url: string;
  readonly jobs: number;
}

export interface WorkerReport {
  readonly tookMs: number;
}

const QUEUE = "embeddings";
const NOTE =
  "the same claims and settlements, one after the other, by calls inside the server's process: the ratio is what HTTP, JSON and validation leave";

/** Tasks per second of one worker elsewhere that claims and settles 50 at a time and takes no time to embed. */
export async function remoteWorker(scene: Scene): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const database of DATABASE_NAMES) figures.push(await workedOn(scene, database));
  return figures;
}

async function workedOn(scene: Scene, database: DatabaseName): Promise<Figure> {
  const { rounds, remoteJobs: jobs } = scene.scale;
  const rates = { overHttp: [] as number[], inProcess: [] as number[] };
  for (let round = 1; round <= rounds; round++) {
    const overHttp = (jobs / (await overHttpMs(scene, database))) * 1_000;
    const inProcess = (jobs / (await inProcessMs(scene, database))) * 1_000;
    rates.overHttp.push(overHttp);
    rates.inProcess.push(inProcess);
    progress(
      `${database}, round ${round} of ${rounds}: over HTTP ${Math.round(overHttp)} tasks/s, in process ${Math.round(inProcess)} tasks/s`,
    );
  }
  return compareRates({
    measure: `${database} claim and settle over HTTP, ${BATCH} at a time`,
    unit: "tasks/s",
    quarry: median(rates.overHttp),
    peer: "quarry, in process",
    peerValue: median(rates.inProcess),
    goal: null,
    note: NOTE,
  });
}

async function overHttpMs(scene: Scene, database: DatabaseName): Promise<number> {
  const place = await makePlace(scene, database);
  try {
    const server = await startServer("quarry", place);
    try {
      const order: WorkerOrder = { url: server.url, jobs: scene.scale.remoteJobs };
      const { tookMs } = await runApart<WorkerReport>("./worker-process.ts", order);
      return tookMs;
    } finally {
      await server.stop();
    }
  } finally {
    await place.remove();
  }
}

async function inProcessMs(scene: Scene, database: DatabaseName): Promise<number> {
  const place = await makePlace(scene, database);
  try {
    const quarry = await openQuarry({
      dataFolder: place.folder,
      databaseUrl: place.url,
      embeddingModel: MODEL,
    });
    try {
      await inBatches(scene.scale.remoteJobs, (texts) => quarry.embeddings.createMany(texts));
      const { id: worker } = await quarry.remote.register({
        host: "bench",
        lanes: [QUEUE],
        capabilities: {},
      });
      const { signal } = new AbortController();
      return await drained(scene.scale.remoteJobs, async () => {
        const { claims } = await quarry.remote.claim(QUEUE, { worker, limit: BATCH, waitMs: 0, signal });
        const vector = Array.from(randomVector());
        const outcomes = claims.map(({ key, token }) => ({
          ...{ key, token, kind: "done" as const },
          result: { embedding_vector: vector },
        }));
        return (await quarry.remote.settle(QUEUE, worker, outcomes)).filter((it) => it === "done").length;
      });
    } finally {
      await quarry.close();
    }
  } finally {
    await place.remove();
  }
}

/** As many calls as it takes to create so many jobs. */
export async function inBatches(
  count: number,
  create: (texts: { input_text: string }[]) => Promise<unknown>,
): Promise<void> {
  const perCall = 500;
  for (let start = 0; start < count; start += perCall) {
    const length = Math.min(perCall, count - start);
    await create(Array.from({ length }, (_, index) => ({ input_text: textOf(start + index) })));
  }
}

/** Takes a batch after the other until all are done. */
export async function drained(count: number, takeBatch: () => Promise<number>): Promise<number> {
  const startedAt = performance.now();
  for (let left = count; left > 0; ) {
    const done = await takeBatch();
    if (done === 0) throw new Error(`${left} of ${count} tasks could not be taken`);
    left -= done;
  }
  return performance.now() - startedAt;
}
