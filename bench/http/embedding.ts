import { CALLS_AT_ONCE } from "../../src/embeddings/lane.ts";
import { compareRates, type Figure, median } from "../figures.ts";
import { progress } from "../progress.ts";
import { quarryLane } from "./lane.ts";
import { plainLoop } from "./plain-loop.ts";
import { DATABASE_NAMES, type DatabaseName, makePlace, type Scene } from "./scene.ts";

/** Something that embeds texts that are in a database. */
export interface Contender {
  readonly name: string;
  /** Leaves so many texts to be embedded in an empty database, vacuumed and checkpointed. */
  fill(url: string, count: number): Promise<Filled>;
}

export interface Filled {
  /** Milliseconds from the first call of the model until the last vector is stored. */
  drain(): Promise<number>;
  countVectors(): Promise<number>;
  close(): Promise<void>;
}

/** Enough for the compiler to have seen everything. Not counted. */
const WARM_UP_JOBS = 1_000;
/** A tenth of overhead at most. */
const GOAL = 0.91;
const BESIDE_PLAIN =
  "the same model, encoding and calls at once; two tables without states, leases, attempts, order, known texts or other indexes";

/** Jobs per second through the lane, with a model that takes 5 ms a call. */
export async function embeddingThroughput(scene: Scene): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const database of DATABASE_NAMES) figures.push(...(await throughputOn(scene, database)));
  return figures;
}

async function throughputOn(scene: Scene, database: DatabaseName): Promise<Figure[]> {
  const { rounds, jobs } = scene.scale;
  const [sameCalls, oneCall] = [plainLoop(CALLS_AT_ONCE), plainLoop(1)];
  const contenders = [quarryLane, sameCalls, oneCall];
  const rates = new Map(contenders.map((contender): [Contender, number[]] => [contender, []]));
  for (const contender of contenders) await rateOf(scene, database, contender, WARM_UP_JOBS);
  for (let round = 1; round <= rounds; round++) {
    for (const contender of contenders) {
      const rate = await rateOf(scene, database, contender, jobs);
      rates.get(contender)!.push(rate);
      progress(`${database}, ${contender.name}, round ${round} of ${rounds}: ${Math.round(rate)} jobs/s`);
    }
  }
  const compare = (peer: Contender, goal: number | null) =>
    compareRates({
      measure: `${database} embedding jobs, ${CALLS_AT_ONCE} calls at once`,
      unit: "jobs/s",
      quarry: median(rates.get(quarryLane)!),
      peer: peer.name,
      peerValue: median(rates.get(peer)!),
      goal,
      ...(goal !== null && { note: BESIDE_PLAIN }),
    });
  return [compare(sameCalls, GOAL), compare(oneCall, null)];
}

async function rateOf(
  scene: Scene,
  database: DatabaseName,
  contender: Contender,
  jobs: number,
): Promise<number> {
  const place = await makePlace(scene, database);
  try {
    const filled = await contender.fill(place.url, jobs);
    try {
      const tookMs = await filled.drain();
      const stored = await filled.countVectors();
      if (stored !== jobs) throw new Error(`${contender.name} stored ${stored} vectors for ${jobs} texts`);
      return (jobs / tookMs) * 1_000;
    } finally {
      await filled.close();
    }
  } finally {
    await place.remove();
  }
}
