import type { Command } from "commander";
import type { Quarry } from "../app.ts";
import { systemClock } from "../clock.ts";
import { counted, type Output } from "./output.ts";
import { ProgressBars } from "./progress.ts";
import {
  listening,
  type ServerFlags,
  startServer,
  untilSignal,
  vectorNote,
  withServerOptions,
} from "./serve.ts";
import { type CommonOptions, withCommonOptions, withQuarry } from "./session.ts";
import { sayStopping } from "./stopping.ts";

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
    .description("Runs some lanes, for processes that share the work.")
    .option("--lanes <names>", "which, joined by commas (default: all; see quarry lanes list)")
    .addHelpText("after", "\nExample:\n  quarry worker --lanes pages.ocr,chunks.vector")
    .action((options: CommonOptions & { lanes?: string }) =>
      withQuarry(options, (quarry, output) => work(quarry, output, { lanes: options.lanes?.split(",") })),
    );
}

const SHOW_EVERY_MS = 1_000;
const GRACE_MS = 30_000;

async function show(quarry: Quarry, output: Output, bars: ProgressBars): Promise<void> {
  const progress = await quarry.documents.progress();
  const lines = bars.lines(progress, { isWide: output.isLive });
  output.progress(`${lines}\n${counted(progress.open, "document")} with work to do`);
}

interface Work {
  readonly lanes?: readonly string[] | undefined;
  /** Where the server of this process listens. */
  readonly url?: string;
  readonly said?: string;
}

async function work(quarry: Quarry, output: Output, { lanes, url, said = "" }: Work): Promise<void> {
  const crew = await quarry.work({ ...(lanes && { lanes }), graceMs: GRACE_MS });
  const bars = new ProgressBars(() => systemClock.monotonic());
  const names = crew.lanes;
  output.result(
    { ...(url !== undefined && { url }), worker: crew.worker.id, lanes: names },
    `${said}Working on ${names.join(", ")}. Ctrl-C stops; what is unfinished is given back.${vectorNote(quarry)}`,
  );
  // A database that is away for a while must not end the work: it is looked at again a second later.
  const look = () => void show(quarry, output, bars).catch(() => undefined);
  const showing = output.isJson ? undefined : setInterval(look, SHOW_EVERY_MS);
  const onSignal = () => {
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
    clearInterval(showing);
    output.line(sayStopping(GRACE_MS));
  };
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  await crew.worker.untilSignal();
  await crew.stop();
  output.line("Stopped.");
}
