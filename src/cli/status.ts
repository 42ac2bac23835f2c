import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import type { Quarry } from "../app.ts";
import { systemClock } from "../clock.ts";
import type { Progress } from "../documents/progress.ts";
import type { DocumentState } from "../documents/views.ts";
import type { WorkerProcess } from "../queue/worker-processes.ts";
import { counted, type Output, PLAIN_EVERY_MS, table } from "./output.ts";
import { PLUS_MEANS, ProgressBars } from "./progress.ts";
import { type CommonOptions, withCommonOptions, withQuarry } from "./session.ts";

interface Status {
  readonly progress: Progress;
  readonly states: Readonly<Record<DocumentState, number>>;
  readonly workers: readonly WorkerProcess[];
  readonly paused: readonly string[];
}

const WATCH_EVERY_MS = 1_000;

export function addStatus(program: Command): void {
  withCommonOptions(program.command("status"))
    .description("Shows how far the work is and who is at it.")
    .option("--watch", "show it anew every second until stopped; with --json one value a line", false)
    .addHelpText("after", `\nExample:\n  quarry status --watch\n\n${PLUS_MEANS}`)
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

/** Until it is stopped, or nobody reads any more. What is no terminal gets what changed, and not every second. */
async function watch(quarry: Quarry, output: Output, bars: ProgressBars): Promise<void> {
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  process.once("SIGINT", stop).once("SIGTERM", stop);
  process.stdout.once("error", stop);
  const isTerminal = output.isLive && process.stdout.isTTY === true;
  const isNews = changedOrLate();
  while (!stopping.signal.aborted) {
    const status = await read(quarry);
    if (isTerminal) output.progress(text(bars, status));
    else if (output.isJson || isNews(JSON.stringify(status))) show(output, bars, status);
    await sleep(WATCH_EVERY_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
  }
  if (isTerminal) show(output, bars, await read(quarry));
}

/** Tells whether something differs from what was written last, and enough time has passed to write it. */
function changedOrLate(): (state: string) => boolean {
  let last = "";
  let lastAt = Number.NEGATIVE_INFINITY;
  return (state) => {
    const now = systemClock.monotonic();
    if (state === last || now - lastAt < PLAIN_EVERY_MS) return false;
    [last, lastAt] = [state, now];
    return true;
  };
}

async function read(quarry: Quarry): Promise<Status> {
  return {
    progress: await quarry.documents.progress(),
    states: await quarry.documents.states(),
    workers: await quarry.workers(),
    paused: [...(await quarry.lanes.paused())],
  };
}

function show(output: Output, bars: ProgressBars, status: Status): void {
  output.result(status, text(bars, status));
}

function text(bars: ProgressBars, { progress, states, workers, paused }: Status): string {
  const waiting = progress.open > 0 && workers.length === 0 ? " (none: run quarry up)" : "";
  const documents = [
    String(progress.documents),
    `${progress.open} with work to do`,
    ...(states.failed > 0 ? [`${states.failed} failed`] : []),
    ...(states.partial > 0 ? [`${states.partial} in part`] : []),
  ];
  const rows = [
    ["documents", documents.join(", ")],
    ["workers", `${workers.length}${waiting}`],
    ...workers.map((worker) => ["", whoIs(worker)]),
    ...(paused.length > 0 ? [["paused", paused.join(", ")]] : []),
  ];
  return `${table(rows)}\n${bars.lines(progress, { isWide: true })}`;
}

function whoIs({ id, host, pid, lanes }: WorkerProcess): string {
  return [`${id} on ${host}`, ...(pid === null ? [] : [`pid ${pid}`]), counted(lanes.length, "lane")].join(
    ", ",
  );
}
