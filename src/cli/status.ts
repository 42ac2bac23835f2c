import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import type { Quarry } from "../app.ts";
import { systemClock } from "../clock.ts";
import type { Progress } from "../documents/progress.ts";
import type { WorkerProcess } from "../queue/worker-processes.ts";
import { type Output, table } from "./output.ts";
import { ProgressBars } from "./progress.ts";
import { type CommonOptions, withCommonOptions, withQuarry } from "./session.ts";

interface Status {
  readonly progress: Progress;
  readonly workers: readonly WorkerProcess[];
  readonly paused: readonly string[];
}

const WATCH_EVERY_MS = 1_000;

export function addStatus(program: Command): void {
  withCommonOptions(program.command("status"))
    .description("Shows how far the work is and who is at it.")
    .option("--watch", "show it anew every second until stopped; with --json one value a line", false)
    .addHelpText("after", "\nExample:\n  quarry status --watch")
    .action((options: CommonOptions & { watch: boolean }) =>
      withQuarry(
        options,
        async (quarry, output) => {
          const bars = new ProgressBars(() => systemClock.monotonic());
          if (options.watch) await watch(quarry, output, bars);
          else show(output, bars, await read(quarry));
        },
        { isReader: true },
      ),
    );
}

async function watch(quarry: Quarry, output: Output, bars: ProgressBars): Promise<void> {
  const stopping = new AbortController();
  const onSignal = () => stopping.abort();
  process.once("SIGINT", onSignal).once("SIGTERM", onSignal);
  while (!stopping.signal.aborted) {
    const status = await read(quarry);
    if (output.isJson) output.result(status, "");
    else output.progress(text(bars, status, output.isLive));
    await sleep(WATCH_EVERY_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
  }
  show(output, bars, await read(quarry));
}

async function read(quarry: Quarry): Promise<Status> {
  return {
    progress: await quarry.documents.progress(),
    workers: await quarry.workers(),
    paused: [...(await quarry.lanes.paused())],
  };
}

function show(output: Output, bars: ProgressBars, status: Status): void {
  output.result(status, text(bars, status, true));
}

function text(bars: ProgressBars, { progress, workers, paused }: Status, isWide: boolean): string {
  const { documents, open } = progress;
  const waiting = open > 0 && workers.length === 0 ? " (none: run quarry up)" : "";
  const rows = [
    ["documents", `${documents}, ${open} with work to do`],
    ["workers", `${workers.length}${waiting}`],
    ...workers.map(({ id, host, pid, lanes }) => ["", `${id} on ${host}, pid ${pid}, ${lanes.length} lanes`]),
    ...(paused.length > 0 ? [["paused", paused.join(", ")]] : []),
  ];
  return `${table(rows)}\n${bars.lines(progress, { isWide })}`;
}
