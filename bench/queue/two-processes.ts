import { compareRates, type Figure, median } from "../figures.ts";
import { progress } from "../progress.ts";
import { drainElsewhere } from "../worker-processes.ts";
import type { Contender } from "./contender.ts";
import { fastestSettings, graphile } from "./graphile.ts";
import { quarry } from "./quarry.ts";
import type { Scene } from "./scene.ts";

const PROCESSES = 2;
const BULK = 10_000;
const WORKER = new URL("./worker-process.ts", import.meta.url);

/** Which contender of `processContenders` a worker process runs. */
export interface WorkerOrder {
  readonly url: string;
  readonly contender: number;
}

export function processContenders(url: string): Contender[] {
  return [
    quarry({ name: "quarry", url }),
    ...[500, 2_000].map((size) =>
      graphile(`graphile-worker (localQueue ${size})`, url, fastestSettings(size)),
    ),
  ];
}

/** Two processes drain one queue together: what is lost when workers compete. */
export async function twoProcessDrain({ postgresUrl: url, scale }: Scene): Promise<Figure[]> {
  const contenders = processContenders(url);
  const rates = contenders.map((): number[] => []);
  for (let round = 1; round <= scale.rounds; round++) {
    for (const [index, contender] of contenders.entries()) {
      await fill(contender, scale.tasks);
      const order: WorkerOrder = { url, contender: index };
      const rate = await drainElsewhere(WORKER, order, { processes: PROCESSES, tasks: scale.tasks });
      rates[index]!.push(rate);
      progress(`${contender.name}, two processes, round ${round} of ${scale.rounds}: ${Math.round(rate)}/s`);
    }
  }
  const [ours, ...theirs] = rates.map(median) as [number, ...number[]];
  const best = theirs.indexOf(Math.max(...theirs));
  return [
    compareRates({
      measure: "PostgreSQL drain by two processes, rows kept",
      unit: "tasks/s",
      quarry: ours,
      peer: contenders[best + 1]!.name,
      peerValue: theirs[best]!,
      goal: null,
    }),
  ];
}

async function fill(contender: Contender, tasks: number): Promise<void> {
  await contender.reset();
  const connection = await contender.connect();
  for (let start = 0; start < tasks; start += BULK) {
    const count = Math.min(BULK, tasks - start);
    await connection.addMany(Array.from({ length: count }, (_, index) => ({ n: start + index })));
  }
  await connection.settleDown();
  await connection.close();
}
