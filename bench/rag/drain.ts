import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { compareRates, type Figure, median } from "../figures.ts";
import { progress } from "../progress.ts";
import type { Contender } from "../queue/contender.ts";
import { type RagPlace, ragContenders } from "./contenders.ts";
import type { RagScene } from "./suite.ts";

export interface DrainOrder extends RagPlace {
  readonly contender: number;
}

export type DrainReport = "ready" | "stopped" | { readonly handled: number };

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
        const rate = await work({ ...scene, contender: index }, processes, scene.jobs);
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

/** From the signal to start until every process has acknowledged what it handled. */
async function work(order: DrainOrder, processes: number, jobs: number): Promise<number> {
  const workers = Array.from({ length: processes }, () =>
    fork(new URL("./worker-process.ts", import.meta.url), [JSON.stringify(order)]),
  );
  const handled = new Map<ChildProcess, number>();
  const allHandled = Promise.withResolvers<void>();
  for (const worker of workers) {
    worker.on("message", (report: DrainReport) => {
      if (typeof report !== "object") return;
      handled.set(worker, report.handled);
      if ([...handled.values()].reduce((sum, count) => sum + count, 0) >= jobs) allHandled.resolve();
    });
    worker.on("exit", (code) => allHandled.reject(new Error(`a worker process ended early with ${code}`)));
  }
  await Promise.all(workers.map((worker) => says(worker, "ready")));
  const startedAt = performance.now();
  for (const worker of workers) worker.send("start");
  await allHandled.promise;
  const stopped = workers.map((worker) => says(worker, "stopped"));
  for (const worker of workers) worker.send("stop");
  await Promise.all(stopped);
  return (jobs / (performance.now() - startedAt)) * 1_000;
}

async function says(worker: ChildProcess, expected: DrainReport): Promise<void> {
  for (;;) {
    const [report] = await once(worker, "message");
    if (report === expected) return;
  }
}
