import { fork } from "node:child_process";
import { once } from "node:events";
import { compareTimes, type Figure, median, percentile } from "../figures.ts";
import { progress } from "../progress.ts";
import { type Contender, machineMs } from "./contender.ts";
import { graphile } from "./graphile.ts";
import { quarry } from "./quarry.ts";
import type { Scene } from "./scene.ts";

/** What another process needs to know to enqueue. */
export interface EnqueuerOrder {
  readonly url: string;
  readonly samples: number;
}

/** The first ones find cold connections and are not counted. */
export const WARM_UP_SAMPLES = 10;

/** The same two in the process that works and in the one that enqueues. */
export function latencyContenders(url: string): Contender[] {
  return [
    quarry({ name: "quarry", url }),
    graphile("graphile-worker (10 jobs at once)", url, { concurrentJobs: 10, maxPoolSize: 12 }),
  ];
}

/**
 * From the call that enqueues, in another process, to the start of the handler here. Both workers are idle all
 * the time but for this task, so the wake-up is what is measured.
 */
export async function pickUpLatency({ postgresUrl: url, scale }: Scene): Promise<Figure[]> {
  const contenders = latencyContenders(url);
  const latencies = contenders.map((): number[] => []);
  const stops: (() => Promise<void>)[] = [];
  for (const [index, contender] of contenders.entries()) {
    await contender.reset();
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
    await enqueueElsewhere({ url, samples: scale.latencySamples });
    await until(() => latencies.every((some) => some.length >= scale.latencySamples));
  } finally {
    for (const stop of stops) await stop();
  }
  const [ours, theirs] = latencies as [number[], number[]];
  const compare = (name: string, of: (values: readonly number[]) => number, goal: number | null) =>
    compareTimes({
      measure: `PostgreSQL pick-up latency when idle, ${name}`,
      unit: "ms",
      quarry: of(ours),
      peer: contenders[1]!.name,
      peerValue: of(theirs),
      goal,
    });
  const p99 = (values: readonly number[]) => percentile(values, 99);
  progress(`pick-up latency: quarry ${median(ours).toFixed(2)} ms, graphile ${median(theirs).toFixed(2)} ms`);
  return [compare("median", median, 1), compare("p99", p99, null)];
}

async function enqueueElsewhere(order: EnqueuerOrder): Promise<void> {
  const child = fork(new URL("./latency-enqueuer.ts", import.meta.url), [JSON.stringify(order)]);
  const [code] = await once(child, "exit");
  if (code !== 0) throw new Error(`the enqueuing process ended with ${code}`);
}

async function until(isTrue: () => boolean): Promise<void> {
  const giveUpAt = performance.now() + 10_000;
  while (!isTrue()) {
    if (performance.now() > giveUpAt) throw new Error("not every task was picked up");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
