import { CALLS_AT_ONCE } from "../../src/embeddings/lane.ts";
import { compareRates, type Figure, median } from "../figures.ts";
import { progress } from "../progress.ts";
import { designLoop } from "./design-loop.ts";
import { quarryLane } from "./lane.ts";
import { plainLoop } from "./plain-loop.ts";
import { DATABASE_NAMES, type DatabaseName, makePlace, type Scene } from "./scene.ts";

/** Something that embeds texts that are in a database. */
export interface Contender {
  readonly name: string;
  /** Leaves so many texts to be embedded in an empty database, vacuumed and checkpointed. */
  fill(url: string, load: DrainLoad): Promise<Filled>;
}

export interface DrainLoad {
  readonly jobs: number;
  /** How long the model takes for each call. */
  readonly callMs: number;
}

export interface Filled {
  /** Milliseconds from the first call of the model until the last vector is stored. */
  drain(): Promise<number>;
  countVectors(): Promise<number>;
  close(): Promise<void>;
}

/** Enough for the compiler to have seen everything. Not counted. */
const WARM_UP_JOBS = 500;
/** A tenth of overhead at most. */
const GOAL = 0.91;
const BESIDE_PLAIN =
  "the same model, encoding and calls at once; two tables without states, leases, attempts, order, known texts or other indexes";

/** Jobs per second through the lane, with a model that takes its time and no processor. */
export async function embeddingThroughput(scene: Scene): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const database of DATABASE_NAMES)
    for (const callMs of scene.scale.callsMs) figures.push(...(await throughputOn(scene, database, callMs)));
  return figures;
}

async function throughputOn(scene: Scene, database: DatabaseName, callMs: number): Promise<Figure[]> {
  const { rounds, jobs, callsMs } = scene.scale;
  const [sameTable, sameCalls, oneCall] = [designLoop(CALLS_AT_ONCE), plainLoop(CALLS_AT_ONCE), plainLoop(1)];
  const isJudged = callMs === callsMs[0];
  const contenders = [quarryLane, sameTable, sameCalls, ...(isJudged ? [oneCall] : [])];
  const rates = new Map(contenders.map((contender): [Contender, number[]] => [contender, []]));
  const rateOf = async (contender: Contender, count: number) => {
    const place = await makePlace(scene, database);
    return drainRate(contender, place.url, { jobs: count, callMs }).finally(() => place.remove());
  };
  for (const contender of contenders) await rateOf(contender, WARM_UP_JOBS);
  for (let round = 1; round <= rounds; round++) {
    for (const contender of contenders) {
      const rate = await rateOf(contender, jobs);
      rates.get(contender)!.push(rate);
      progress(
        `${database}, ${callMs} ms a call, ${contender.name}, round ${round} of ${rounds}: ${Math.round(rate)} jobs/s`,
      );
    }
  }
  const compare = (peer: Contender, goal: number | null) =>
    compareRates({
      measure: `${database} embedding jobs, ${callMs} ms a call`,
      unit: "jobs/s",
      quarry: median(rates.get(quarryLane)!),
      peer: peer.name,
      peerValue: median(rates.get(peer)!),
      goal,
      ...(goal !== null && { note: BESIDE_PLAIN }),
    });
  const beside = [compare(sameCalls, isJudged ? GOAL : null), compare(sameTable, null)];
  return isJudged ? [...beside, compare(oneCall, null)] : beside;
}

async function drainRate(contender: Contender, url: string, load: DrainLoad): Promise<number> {
  const filled = await contender.fill(url, load);
  try {
    const tookMs = await filled.drain();
    const stored = await filled.countVectors();
    if (stored !== load.jobs)
      throw new Error(`${contender.name} stored ${stored} vectors for ${load.jobs} texts`);
    return (load.jobs / tookMs) * 1_000;
  } finally {
    await filled.close();
  }
}
