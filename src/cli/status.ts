import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import type { Quarry } from "../app.ts";
import { systemClock } from "../clock.ts";
import type { WorkerProcess } from "../queue/worker-processes.ts";
import { readStatus, type Status } from "../status.ts";
import { unreachedText } from "./machines.ts";
import { counted, type Output, PLAIN_EVERY_MS, shortened, table } from "./output.ts";
import { PLUS_MEANS, ProgressBars } from "./progress.ts";
import { type CommonOptions, withCommonOptions, withQuarry } from "./session.ts";

const WATCH_EVERY_MS = 1_000;
const REASON_SHOWN = 160;

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
          else show(output, bars, await readStatus(quarry));
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
    const status = await readStatus(quarry);
    if (isTerminal) output.progress(text(bars, status));
    else if (output.isJson || isNews(JSON.stringify(status))) show(output, bars, status);
    await sleep(WATCH_EVERY_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
  }
  if (isTerminal) show(output, bars, await readStatus(quarry));
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

function show(output: Output, bars: ProgressBars, status: Status): void {
  output.result(status, text(bars, status));
}

function text(bars: ProgressBars, { progress, states, items, workers, paused, waits }: Status): string {
  const isWorkLeft = progress.open + items.waiting > 0;
  const waiting = isWorkLeft && workers.length === 0 ? " (none: run quarry up)" : "";
  const documents = [
    String(progress.documents),
    `${progress.open} with work to do`,
    ...(states.failed > 0 ? [`${states.failed} failed`] : []),
    ...(states.partial > 0 ? [`${states.partial} in part`] : []),
  ];
  const rows = [
    ["documents", documents.join(", ")],
    ...(items.waiting > 0
      ? [["items", [`${items.waiting} waiting`, ...unreachedText(items)].join(", ")]]
      : []),
    ["workers", `${workers.length}${waiting}`],
    ...workers.map((worker) => ["", whoIs(worker)]),
    ...(paused.length > 0 ? [["paused", paused.join(", ")]] : []),
    ...waitRows(waits),
  ];
  return `${table(rows)}\n${bars.lines(progress, { isWide: true })}`;
}

/** A row for each lane that needs something that is away. */
export function waitRows(waits: Status["waits"]): string[][] {
  return waits.map(({ lane, reason }) => ["waits", `${lane}: ${shortened(reason, REASON_SHOWN)}`]);
}

function whoIs({ id, host, pid, lanes }: WorkerProcess): string {
  return [`${id} on ${host}`, ...(pid === null ? [] : [`pid ${pid}`]), counted(lanes.length, "lane")].join(
    ", ",
  );
}
