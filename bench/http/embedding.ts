import { CALLS_AT_ONCE } from "../../src/embeddings/lane.ts";
import { compareRates, type Figure, inTurn, median } from "../figures.ts";
import { progress } from "../progress.ts";
import { designLoop } from "./design-loop.ts";
import { quarryLane } from "./lane.ts";
import type { Pace } from "./model.ts";
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
  readonly pace: Pace;
}

export interface Filled {
  /** Milliseconds from the first call of the model until the last vector is stored. */
  drain(): Promise<number>;
  countVectors(): Promise<number>;
  close(): Promise<void>;
}

/** Enough for the compiler to have seen everything. Not counted. */
const WARM_UP_JOBS = 2_000;
/** A tenth of overhead at most. */
const GOAL = 0.91;
const JUDGED_MS = 5;
const BESIDE_DESIGN =
  "the same calls, the same row in the end; nothing is claimed, no lease, order, known texts or passing on of vectors";
const BESIDE_BARE =
  "two tables: an id and a text, an id and a vector; no status, hash, tokens, times or indexes";
const BESIDE_SIMPLE =
  "the same as the other loop, but a batch is read, embedded and written before the next is read";

/** Jobs per second through the lane, with a model that takes its time and no processor. */
export async function embeddingThroughput(scene: Scene): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const database of DATABASE_NAMES)
    for (const pace of scene.scale.paces) figures.push(...(await throughputOn(scene, database, pace)));
  return figures;
}

async function throughputOn(scene: Scene, database: DatabaseName, pace: Pace): Promise<Figure[]> {
  const { drains: rounds, jobs } = scene.scale;
  const sameRow = designLoop(CALLS_AT_ONCE);
  // With one call after another, tables of any kind keep up with the model; what counts is what is done meanwhile.
  const [other, otherNote] = pace.isOneByOne
    ? ([designLoop(1), BESIDE_SIMPLE] as const)
    : ([plainLoop(CALLS_AT_ONCE), BESIDE_BARE] as const);
  const how = `${pace.callMs} ms a call${pace.isOneByOne ? ", one by one" : ""}`;
  const contenders = [quarryLane, sameRow, other];
  const rates = new Map(contenders.map((contender): [Contender, number[]] => [contender, []]));
  const rateOf = async (contender: Contender, count: number) => {
    const place = await makePlace(scene, database);
    return drainRate(contender, place.url, { jobs: count, pace }).finally(() => place.remove());
  };
  for (const contender of contenders) await rateOf(contender, Math.min(WARM_UP_JOBS, jobs));
  for (let round = 1; round <= rounds; round++) {
    for (const contender of inTurn(contenders, round)) {
      const rate = await rateOf(contender, jobs);
      rates.get(contender)!.push(rate);
      progress(
        `${database}, ${how}, ${contender.name}, round ${round} of ${rounds}: ${Math.round(rate)} jobs/s`,
      );
    }
  }
  const compare = (peer: Contender, note: string, goal: number | null = null) =>
    compareRates({
      measure: `${database} embedding jobs, ${how}`,
      unit: "jobs/s",
      quarry: median(rates.get(quarryLane)!),
      peer: peer.name,
      peerValue: median(rates.get(peer)!),
      goal,
      note,
    });
  return [
    compare(sameRow, BESIDE_DESIGN, pace.callMs === JUDGED_MS ? GOAL : null),
    compare(other, otherNote),
  ];
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
