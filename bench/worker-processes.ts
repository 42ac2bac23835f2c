import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";

/** What a process that works says: that it can begin, how much it has handled, that it has settled all of it. */
type Report = "ready" | "stopped" | { readonly handled: number };

const REPORT_EVERY_MS = 5;

/**
 * Tasks per second of so many processes, each of which runs `module` with `order`: from the signal to start until
 * every one has settled what it handled.
 */
export async function drainElsewhere(
  module: URL,
  order: unknown,
  { processes, tasks }: { readonly processes: number; readonly tasks: number },
): Promise<number> {
  const workers = Array.from({ length: processes }, () => fork(module, [JSON.stringify(order)]));
  const handled = new Map<ChildProcess, number>();
  const allHandled = Promise.withResolvers<void>();
  for (const worker of workers) {
    worker.on("message", (report: Report) => {
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

async function says(worker: ChildProcess, expected: Report): Promise<void> {
  for (;;) {
    const [report] = await once(worker, "message");
    if (report === expected) return;
  }
}

/** The other side: works from the first message of the parent until the second. */
export async function workHere(connection: {
  work(handle: () => void): Promise<{ stop(): Promise<void> }>;
  close(): Promise<void>;
}): Promise<void> {
  const say = (report: Report) => process.send!(report);
  say("ready");
  await once(process, "message");
  let handled = 0;
  const work = await connection.work(() => {
    handled++;
  });
  const reporter = setInterval(() => say({ handled }), REPORT_EVERY_MS);
  await once(process, "message");
  clearInterval(reporter);
  await work.stop();
  say("stopped");
  await connection.close();
  process.disconnect();
}
