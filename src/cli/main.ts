import { Command, CommanderError } from "commander";
import { systemClock } from "../clock.ts";
import { type ErrorCode, messageOf, QuarryError } from "../errors.ts";
import { hideSecrets } from "../log.ts";
import { VERSION } from "../version.ts";
import { addAsk } from "./ask.ts";
import { addDemo } from "./demo.ts";
import { addDoctor } from "./doctor.ts";
import { addDocuments } from "./documents.ts";
import { addEmbeddings } from "./embeddings.ts";
import { addIngest } from "./ingest.ts";
import { addLanes } from "./lanes.ts";
import { addMcp } from "./mcp.ts";
import { addMigrate } from "./migrate.ts";
import { plain } from "./output.ts";
import { addQueue } from "./queue.ts";
import { addRag } from "./rag.ts";
import { addReindex } from "./reindex.ts";
import { addSearch } from "./search.ts";
import { addServe } from "./serve.ts";
import { addStatus } from "./status.ts";
import { addTasks } from "./tasks.ts";
import { addWatch } from "./watch.ts";
import { addWork } from "./work.ts";

const EXAMPLES = `
Examples:
  quarry ingest samples --wait
  quarry search "who must be told before a blast"
  quarry up`;

/** Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a part cannot be reached. */
export async function main(argv: readonly string[]): Promise<number> {
  const isJson = argv.includes("--json");
  const program = new Command("quarry")
    .description("Turns documents into something you can search and ask.")
    .version(VERSION, "-v, --version")
    .showHelpAfterError("Add --help to see how it is used.")
    .addHelpText("after", EXAMPLES)
    .configureOutput(isJson ? { writeErr: () => undefined } : {})
    .exitOverride();
  // Whoever reads our output may stop reading; the work is still ended properly.
  process.stdout.on("error", () => undefined);
  addIngest(program);
  addWatch(program);
  addSearch(program);
  addAsk(program);
  addStatus(program);
  addDocuments(program);
  addQueue(program);
  addTasks(program);
  addEmbeddings(program);
  addRag(program);
  addWork(program);
  addServe(program);
  addLanes(program);
  addMcp(program);
  addReindex(program);
  addDoctor(program);
  addMigrate(program);
  addDemo(program, systemClock);
  try {
    await program.parseAsync([...argv]);
    return Number(process.exitCode ?? 0);
  } catch (error) {
    // Help and version are no failure.
    if (error instanceof CommanderError && error.exitCode === 0) return 0;
    tell(error, isJson);
    return exitCodeOf(error);
  }
}

function tell(error: unknown, isJson: boolean): void {
  const message = plain(hideSecrets(messageOf(error)));
  if (isJson) {
    const told = { code: codeOf(error), message: message.replace(/^error: /, "") };
    process.stderr.write(`${JSON.stringify({ error: told })}\n`);
    // Commander has said it itself.
  } else if (!(error instanceof CommanderError)) process.stderr.write(`quarry: ${message}\n`);
}

function codeOf(error: unknown): ErrorCode {
  // All that commander throws is wrong usage.
  if (error instanceof CommanderError) return "invalid_input";
  return error instanceof QuarryError ? error.code : "internal";
}

function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return 2;
  return error instanceof QuarryError ? error.exitCode : 1;
}
