import type { Command } from "commander";
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

function work(options: CommonOptions, lanes: readonly string[] | undefined): Promise<void> {
  return withQuarry(options, async (quarry, output) => {
    const crew = await quarry.work(lanes ? { lanes } : {});
    const names = lanes ?? quarry.lanes.names;
    output.result(
      { worker: crew.worker.id, lanes: names },
      `Working on ${names.join(", ")}. Ctrl-C stops; what is unfinished is given back.`,
    );
    await crew.worker.untilSignal();
    await crew.stop();
    output.line("Stopped.");
  });
}
