import { compareRates, type Figure, median } from "../figures.ts";
import { progress } from "../progress.ts";
import type { Contender } from "../queue/contender.ts";
import { drainElsewhere } from "../worker-processes.ts";
import { type RagPlace, ragContenders } from "./contenders.ts";
import type { RagScene } from "./suite.ts";

export interface DrainOrder extends RagPlace {
  readonly contender: number;
}

const WORKER = new URL("./worker-process.ts", import.meta.url);
const NOTE =
  "both acknowledge every job and keep what became of it; Quarry also writes every job and its end to an embedded database";

/** One process, then two, work off a backlog. Workers are processes of their own, and fresh in every round. */
export async function drain(scene: RagScene): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const processes of [1, 2]) {
    const contenders = ragContenders(scene);
    const rates = contenders.map((): number[] => []);
    for (let round = 1; round <= scene.rounds; round++) {
      for (const [index, contender] of contenders.entries()) {
        await fill(contender, scene.jobs);
        const order: DrainOrder = { ...scene, contender: index };
        const rate = await drainElsewhere(WORKER, order, { processes, tasks: scene.jobs });
        await checkEmpty(contender);
        rates[index]!.push(rate);
        progress(
          `${contender.name}, ${processes} process(es), round ${round} of ${scene.rounds}: ${Math.round(rate)}/s`,
        );
      }
    }
    const [ours, ...theirs] = rates.map(median) as [number, ...number[]];
    const best = theirs.indexOf(Math.max(...theirs));
    figures.push(
      compareRates({
        measure: `drain by ${processes === 1 ? "one process" : "two processes"}`,
        unit: "jobs/s",
        quarry: ours,
        peer: contenders[best + 1]!.name,
        peerValue: theirs[best]!,
        goal: processes === 1 ? 1.2 : null,
        note: NOTE,
      }),
    );
  }
  return figures;
}

async function fill(contender: Contender, jobs: number): Promise<void> {
  await contender.reset();
  const connection = await contender.connect();
  await connection.addMany(Array.from({ length: jobs }, (_, n) => ({ n })));
  await connection.close();
}

async function checkEmpty(contender: Contender): Promise<void> {
  const connection = await contender.connect();
  const left = await connection.countLeft();
  await connection.close();
  if (left > 0) throw new Error(`${contender.name} left ${left} jobs undone`);
}
