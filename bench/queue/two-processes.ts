import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { compareRates, type Figure, median } from "../figures.ts";
import { progress } from "../progress.ts";
import type { Contender } from "./contender.ts";
import { fastestSettings, graphile } from "./graphile.ts";
import { quarry } from "./quarry.ts";
import type { Scene } from "./scene.ts";

const PROCESSES = 2;
const BULK = 10_000;

/** Which contender of `processContenders` a worker process runs. */
export interface WorkerOrder {
  readonly url: string;
  readonly contender: number;
}

/** What a worker process says: that it could start, how much it has handled, that all of it is settled. */
export type WorkerReport = "ready" | "stopped" | { readonly handled: number };

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
      const rate = await drain({ url, contender: index }, scale.tasks);
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

/** From the signal to start until every process has settled what it handled. */
async function drain(order: WorkerOrder, tasks: number): Promise<number> {
  const workers = Array.from({ length: PROCESSES }, () =>
    fork(new URL("./worker-process.ts", import.meta.url), [JSON.stringify(order)]),
  );
  const handled = new Map<ChildProcess, number>();
  const allHandled = Promise.withResolvers<void>();
  for (const worker of workers) {
    worker.on("message", (report: WorkerReport) => {
      if (typeof report !== "object") return;
      handled.set(worker, report.handled);
      if ([...handled.values()].reduce((sum, count) => sum + count, 0) >= tasks) allHandled.resolve();
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
  return (tasks / (performance.now() - startedAt)) * 1_000;
}

async function says(worker: ChildProcess, expected: WorkerReport): Promise<void> {
  for (;;) {
    const [report] = await once(worker, "message");
    if (report === expected) return;
  }
}
