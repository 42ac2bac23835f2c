import type { Command } from "commander";
import type { Quarry } from "../app.ts";
import { systemClock } from "../clock.ts";
import type { Output } from "./output.ts";
import { ProgressBars } from "./progress.ts";
import { listening, type ServerFlags, startServer, untilSignal, withServerOptions } from "./serve.ts";
import { type CommonOptions, withCommonOptions, withQuarry } from "./session.ts";

/** `up` runs everything in one process; `worker` only the lanes that are named, and no server. */
export function addWork(program: Command): void {
  withServerOptions(withCommonOptions(program.command("up")))
    .description("Runs the HTTP server, all lanes and the janitor until it is stopped.")
    .addHelpText("after", "\nExample:\n  quarry up")
    .action((options: CommonOptions & ServerFlags) =>
      withQuarry(options, async (quarry, output) => {
        // First, so that a port that is taken is told before any work is taken.
        const server = await startServer(quarry, options);
        try {
          // At once: the lanes may take longer to finish what they run.
          void untilSignal().then(() => server.stop());
          await work(quarry, output, { url: server.url, said: `${listening(server)}\n` });
        } finally {
          await server.stop();
        }
      }),
    );
  withCommonOptions(program.command("worker"))
    .description("Runs some lanes, for machines that share the work.")
    .option("--lanes <names>", "which, joined by commas (default: all; see quarry lanes list)")
    .addHelpText("after", "\nExample:\n  quarry worker --lanes pages.ocr,chunks.vector")
    .action((options: CommonOptions & { lanes?: string }) =>
      withQuarry(options, (quarry, output) => work(quarry, output, { lanes: options.lanes?.split(",") })),
    );
}

const SHOW_EVERY_MS = 1_000;

async function show(quarry: Quarry, output: Output, bars: ProgressBars): Promise<void> {
  const progress = await quarry.documents.progress();
  output.progress(`${bars.lines(progress, { isWide: true })}\n${progress.open} documents with work to do`);
}

interface Work {
  readonly lanes?: readonly string[] | undefined;
  /** Where the server of this process listens. */
  readonly url?: string;
  readonly said?: string;
}

async function work(quarry: Quarry, output: Output, { lanes, url, said = "" }: Work): Promise<void> {
  const crew = await quarry.work(lanes ? { lanes } : {});
  const bars = new ProgressBars(() => systemClock.monotonic());
  const names = lanes ?? quarry.lanes.names;
  output.result(
    { ...(url !== undefined && { url }), worker: crew.worker.id, lanes: names },
    `${said}Working on ${names.join(", ")}. Ctrl-C stops; what is unfinished is given back.`,
  );
  const showing = output.isLive
    ? setInterval(() => void show(quarry, output, bars), SHOW_EVERY_MS)
    : undefined;
  await crew.worker.untilSignal();
  clearInterval(showing);
  await crew.stop();
  output.line("Stopped.");
}
