import type { Command } from "commander";
import type { Asked } from "../agents/ask.ts";
import { FUNCTION_QUEUE, type FunctionTaskStatus } from "../agents/queue.ts";
import type { Citation } from "../agents/results.ts";
import type { Quarry } from "../app.ts";
import { QuarryError } from "../errors.ts";
import { type Output, plain, shortened } from "./output.ts";
import { refuseUnknownPlace } from "./search.ts";
import { type CommonOptions, withCommonOptions, withQuarry } from "./session.ts";
import { stopOnSignals } from "./stopping.ts";

interface AskFlags extends CommonOptions {
  readonly tenant: string;
  readonly collection?: string;
  readonly instruction?: string;
  readonly watch: boolean;
}

const TASK_SHOWN = 90;

/** Answers a question from what was ingested. */
export function addAsk(program: Command): void {
  withCommonOptions(program.command("ask <question...>"))
    .description(
      "Answers a question from the documents and says where each statement is from. Every step is a row: quarry tasks list. Works on it here, unless a worker is running.",
    )
    .option("--tenant <name>", "whose documents", "default")
    .option("--collection <name>", "only this collection")
    .option("--instruction <text>", "how to answer, for the model of QUARRY_LLM")
    .option("--watch", "print each step as it happens; with --json a line for each", false)
    .addHelpText(
      "after",
      '\nExamples:\n  quarry ask "Who must be told before a blast, and how far must people keep away?"\n  quarry ask "How many documents mention Big Nell?" --watch',
    )
    .action((words: string[], options: AskFlags) =>
      withQuarry(options, (quarry, output) => ask(quarry, output, words.join(" "), options), {
        isReader: true,
      }),
    );
}

async function ask(quarry: Quarry, output: Output, question: string, options: AskFlags): Promise<void> {
  const { tenant, collection, instruction, watch } = options;
  await refuseUnknownPlace(quarry, options);
  await refusePaused(quarry);
  const stopping = stopOnSignals();
  const show = watch ? steps(output) : (asked: Asked) => output.progress(progressText(asked));
  try {
    const asked = await quarry.ask(question, {
      tenant,
      signal: stopping.soon,
      onProgress: show,
      ...(collection !== undefined && { collection }),
      ...(instruction !== undefined && { instruction }),
    });
    if (!(watch && output.isJson)) output.result(asked, watch ? answerText(asked) : wholeText(asked));
    if (asked.status === "FAILED") process.exitCode = 1;
  } catch (error) {
    if (!stopping.soon.aborted) throw error;
    output.line("Stopped, and the question was cancelled.");
    process.exitCode = 1;
  } finally {
    stopping.end();
  }
}

/** Nobody would answer. */
async function refusePaused(quarry: Quarry): Promise<void> {
  if (!(await quarry.lanes.paused()).has(FUNCTION_QUEUE)) return;
  throw new QuarryError(
    "constraint_violated",
    `the lane ${FUNCTION_QUEUE} is paused; go on with: quarry lanes resume ${FUNCTION_QUEUE}`,
  );
}

/** Prints what is new each time. */
function steps(output: Output): (asked: Asked) => void {
  const told = new Set<string>();
  return (asked) => {
    if (output.isJson) return output.result(asked, "");
    const lines = [
      ...(asked.plan ? [planText(asked)] : []),
      ...asked.workers
        .filter(({ status }) => status !== "PENDING")
        .map(({ position, status, error_message: why }) => {
          const reason = status === "FAILED" ? `: ${plain(why ?? "")}` : "";
          return `  ${position + 1}. ${STATES[status]}${reason}`;
        }),
      ...(asked.phase === "synthesis" ? ["Putting the answer together"] : []),
    ];
    for (const line of lines.filter((line) => !told.has(line))) {
      told.add(line);
      output.line(line);
    }
  };
}

const STATES: Readonly<Record<FunctionTaskStatus, string>> = {
  PENDING: "waiting",
  IN_PROGRESS: "looking",
  COMPLETED: "done",
  FAILED: "failed",
};
const WAYS = { standard: "search", sql: "catalogue" } as const;

function planText({ plan }: Asked): string {
  const rows = (plan ?? []).map(
    ({ kind, task }, index) => `  ${index + 1}. ${WAYS[kind].padEnd(9)} ${shortened(task, TASK_SHOWN)}`,
  );
  return ["Plan:", ...rows].join("\n");
}

function progressText({ plan, phase, workers }: Asked): string {
  if (!plan) return "Planning";
  if (phase === "synthesis") return "Putting the answer together";
  const rows = workers.map(
    ({ task, status }) => `${STATES[status].padEnd(8)} ${shortened(task, TASK_SHOWN)}`,
  );
  return rows.length > 0 ? rows.join("\n") : "Planned";
}

function wholeText(asked: Asked): string {
  // One part is the question itself.
  const plan = (asked.plan?.length ?? 0) > 1 ? [planText(asked), ""] : [];
  return [...plan, answerText(asked)].join("\n");
}

function answerText({ status, answer, citations, notes, error_message: why }: Asked): string {
  if (status === "FAILED") return `The question could not be answered: ${plain(why ?? "")}`;
  const lines = (answer ?? "").split("\n").map(plain);
  if (citations.length > 0) lines.push("", "Sources:", ...citations.map(sourceText));
  if (notes.length > 0) lines.push("", ...notes.map((note) => `Note: ${plain(note)}`));
  return lines.join("\n");
}

function sourceText(citation: Citation): string {
  const mark = `  [${citation.number}]`;
  switch (citation.kind) {
    case "passage":
      return `${mark} ${plain(citation.filename)}, page ${citation.page_number}`;
    case "catalogue":
      return `${mark} the catalogue: ${shortened(citation.sql, 2 * TASK_SHOWN)}`;
    default:
      return citation satisfies never;
  }
}
