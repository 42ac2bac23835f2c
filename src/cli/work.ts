import type { Command } from "commander";
import type { Quarry } from "../app.ts";
import { systemClock } from "../clock.ts";
import type { Output } from "./output.ts";
import { ProgressBars } from "./progress.ts";
import { type CommonOptions, withCommonOptions, withQuarry } from "./session.ts";

/** `up` runs everything in one process; `worker` only the lanes that are named. */
export function addWork(program: Command): void {
  withCommonOptions(program.command("up"))
    .description("Runs all lanes and the janitor until it is stopped.")
    .addHelpText("after", "\nExample:\n  quarry up")
    .action((options: CommonOptions) => work(options, undefined));
  withCommonOptions(program.command("worker"))
    .description("Runs some lanes, for machines that share the work.")
    .option("--lanes <names>", "which, joined by commas (default: all; see quarry lanes list)")
    .addHelpText("after", "\nExample:\n  quarry worker --lanes pages.ocr,chunks.vector")
    .action((options: CommonOptions & { lanes?: string }) => work(options, options.lanes?.split(",")));
}

const SHOW_EVERY_MS = 1_000;

async function show(quarry: Quarry, output: Output, bars: ProgressBars): Promise<void> {
  const progress = await quarry.documents.progress();
  output.progress(`${bars.lines(progress, { isWide: true })}\n${progress.open} documents with work to do`);
}

function work(options: CommonOptions, lanes: readonly string[] | undefined): Promise<void> {
  return withQuarry(options, async (quarry, output) => {
    const crew = await quarry.work(lanes ? { lanes } : {});
    const bars = new ProgressBars(() => systemClock.monotonic());
    const names = lanes ?? quarry.lanes.names;
    output.result(
      { worker: crew.worker.id, lanes: names },
      `Working on ${names.join(", ")}. Ctrl-C stops; what is unfinished is given back.`,
    );
    const showing = output.isLive
      ? setInterval(() => void show(quarry, output, bars), SHOW_EVERY_MS)
      : undefined;
    await crew.worker.untilSignal();
    clearInterval(showing);
    await crew.stop();
    output.line("Stopped.");
  });
}
