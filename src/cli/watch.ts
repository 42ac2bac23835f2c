import type { Command } from "commander";
import type { Quarry } from "../app.ts";
import type { WatchedItem } from "../ingest/watch-items.ts";
import { counted, type Output, plain } from "./output.ts";
import { type CommonOptions, withCommonOptions, withQuarry } from "./session.ts";
import { stopOnSignals } from "./stopping.ts";

interface WatchFlags extends CommonOptions {
  readonly tenant: string;
  readonly collection: string;
}

export function addWatch(program: Command): void {
  withCommonOptions(program.command("watch <path...>"))
    .description(
      "Watches files and folders and puts whatever happens to them into line, until it is stopped.",
    )
    .option("--tenant <name>", "whose they are", "default")
    .option("--collection <name>", "what they belong to", "default")
    .addHelpText("after", "\nExample:\n  quarry watch notes ~/projects/quarry")
    .action((paths: string[], options: WatchFlags) =>
      withQuarry(options, (quarry, output) => watch(quarry, output, { ...options, paths })),
    );
}

/** Only puts things into line: whoever works on them may be elsewhere, or come later. */
async function watch(
  quarry: Quarry,
  output: Output,
  { paths, tenant, collection }: WatchFlags & { paths: string[] },
): Promise<void> {
  const { watchPaths } = await import("../ingest/watch.ts");
  const stopping = stopOnSignals();
  const gone = new AbortController();
  // Whoever reads the lines has stopped reading.
  process.stdout.once("error", () => gone.abort());
  const sayReady = async (files: number) => {
    const who = (await isWorkedOn(quarry))
      ? "Ctrl-C stops."
      : "No worker is running: run quarry up to work on what changes. Ctrl-C stops.";
    output.line(`Watching ${counted(files, "file")}. ${who}`);
  };
  try {
    await watchPaths({
      items: quarry.queue,
      paths,
      tenant,
      collection,
      except: [quarry.settings.dataFolder],
      machine: quarry.settings.machine,
      signal: AbortSignal.any([stopping.soon, gone.signal]),
      onItem: (item) => output.result(item, lineOf(item)),
      onReady: ({ files }) => void sayReady(files).catch(() => undefined),
      onNotice: (text) => output.line(plain(text)),
    });
  } finally {
    stopping.end();
  }
}

async function isWorkedOn(quarry: Quarry): Promise<boolean> {
  return (await quarry.workers()).some(({ lanes }) => lanes.includes("items"));
}

function lineOf({ item_type: type, op, path, old_path: from }: WatchedItem): string {
  const verb = type === "rename" ? "rename" : op;
  return `  ${verb.padEnd(6)}  ${plain(from === undefined ? path : `${from} → ${path}`)}`;
}
