import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { compareTimes, type Figure, median, percentile } from "../figures.ts";
import { progress } from "../progress.ts";
import { type Contender, machineMs } from "../queue/contender.ts";
import { bullmq } from "./bullmq.ts";
import type { RagPlace } from "./contenders.ts";
import { quarryRag } from "./quarry.ts";
import type { RagScene } from "./suite.ts";

export interface PushOrder extends RagPlace {
  readonly samples: number;
}

/** The first ones find cold connections and are not counted. */
export const WARM_UP_SAMPLES = 10;

export function latencyContenders(place: RagPlace): Contender[] {
  return [quarryRag(place), bullmq(place.url, 50)];
}

/** From the call that pushes one job, in another process, to the start of its handler here. Workers are idle else. */
export async function pickUp(scene: RagScene): Promise<Figure[]> {
  const contenders = latencyContenders(scene);
  const latencies = contenders.map((): number[] => []);
  const stops: (() => Promise<void>)[] = [];
  for (const contender of contenders) await contender.reset();
  for (const [index, contender] of contenders.entries()) {
    const connection = await contender.connect();
    const work = await connection.work(({ n, sentAtMs }) => {
      if (n >= WARM_UP_SAMPLES) latencies[index]!.push(machineMs() - sentAtMs!);
    });
    stops.push(
      () => work.stop(),
      () => connection.close(),
    );
  }
  try {
    const child = fork(new URL("./pusher.ts", import.meta.url), [
      JSON.stringify({
        url: scene.url,
        folder: scene.folder,
        samples: scene.latencySamples,
      } satisfies PushOrder),
    ]);
    const [code] = await once(child, "exit");
    if (code !== 0) throw new Error(`the pushing process ended with ${code}`);
    for (let looks = 0; latencies.some((some) => some.length < scene.latencySamples); looks++) {
      if (looks > 500) throw new Error("not every job was picked up");
      await setTimeout(20);
    }
  } finally {
    for (const stop of stops) await stop();
  }
  const [ours, theirs] = latencies as [number[], number[]];
  progress(`pick-up: quarry ${median(ours).toFixed(2)} ms, BullMQ ${median(theirs).toFixed(2)} ms`);
  const compare = (name: string, of: (values: readonly number[]) => number) =>
    compareTimes({
      ...{ measure: `pick-up latency when idle, ${name}`, unit: "ms", goal: null },
      ...{ quarry: of(ours), peer: contenders[1]!.name, peerValue: of(theirs) },
    });
  return [compare("median", median), compare("p99", (values) => percentile(values, 99))];
}
