import { Command, CommanderError } from "commander";
import { systemClock } from "../clock.ts";
import { messageOf, QuarryError } from "../errors.ts";
import { hideSecrets } from "../log.ts";
import { VERSION } from "../version.ts";
import { addDemo } from "./demo.ts";
import { addDocuments } from "./documents.ts";
import { addEmbeddings } from "./embeddings.ts";
import { addIngest } from "./ingest.ts";
import { addLanes } from "./lanes.ts";
import { addMigrate } from "./migrate.ts";
import { plain } from "./output.ts";
import { addSearch } from "./search.ts";
import { addServe } from "./serve.ts";
import { addStatus } from "./status.ts";
import { addWork } from "./work.ts";

/** Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a part cannot be reached. */
export async function main(argv: readonly string[]): Promise<number> {
  const program = new Command("quarry")
    .description("Turns documents into something you can search and ask.")
    .version(VERSION, "-v, --version")
    .showHelpAfterError("Add --help to see how it is used.")
    .exitOverride();
  // Whoever reads our output may stop reading; the work is still ended properly.
  process.stdout.on("error", () => undefined);
  addIngest(program);
  addSearch(program);
  addStatus(program);
  addDocuments(program);
  addEmbeddings(program);
  addWork(program);
  addServe(program);
  addLanes(program);
  addMigrate(program);
  addDemo(program, systemClock);
  try {
    await program.parseAsync([...argv]);
    return Number(process.exitCode ?? 0);
  } catch (error) {
    return exitCodeOf(error);
  }
}

function exitCodeOf(error: unknown): number {
  // Help and version are no failure; everything else commander throws is wrong usage, and it has said why.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  process.stderr.write(`quarry: ${plain(hideSecrets(messageOf(error)))}\n`);
  return error instanceof QuarryError ? error.exitCode : 1;
}
