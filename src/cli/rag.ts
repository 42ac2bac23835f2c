import type { Command } from "commander";
import type { Quarry } from "../app.ts";
import { messageOf, QuarryError } from "../errors.ts";
import type { Crew } from "../queue/crew.ts";
import { RAG_ERROR_CODES } from "../rag/errors.ts";
import { refuseWithoutRags, type SubmittedJob } from "../rag/jobs.ts";
import { SOURCE_TYPES } from "../rag/message.ts";
import { JOB_LEVELS, JOB_STATES, type JobState, type JobStatus } from "../rag/queue.ts";
import { counted, type Output, plain, shortened, table } from "./output.ts";
import { type CommonOptions, oneOf, wholeNumber, withCommonOptions, withQuarry } from "./session.ts";
import { sayStopping, stopOnSignals } from "./stopping.ts";

interface SubmitFlags extends CommonOptions {
  readonly rag: string;
  readonly type?: string;
  readonly reindex: boolean;
  readonly skipValidation: boolean;
  readonly preserveMetadata: boolean;
  readonly priority?: string;
  readonly wait: boolean;
}

interface ListFlags extends CommonOptions {
  readonly rag?: string;
  readonly status?: string;
  readonly limit: number;
  readonly after?: string;
}

interface LetterFlags extends CommonOptions {
  readonly rag?: string;
  readonly code?: string;
  readonly limit: number;
  readonly after?: string;
}

const ERROR_SHOWN = 80;
const GRACE_MS = 10_000;
const READING = { isReader: true };

/** Files of RAGs, by the Redis contract. */
export function addRag(program: Command): void {
  const rag = program
    .command("rag")
    .description("Files of RAGs: submits them, and shows what became of them.")
    .addHelpText("after", "\nExample:\n  quarry rag submit handbook.pdf --rag policies_rag --wait");
  const commandOf = (parent: Command, prefix: string) => (usage: string, about: string, example: string) =>
    withCommonOptions(parent.command(usage))
      .description(about)
      .addHelpText("after", `\nExample:\n  quarry ${prefix} ${example}`);
  const command = commandOf(rag, "rag");

  command(
    "submit <file...>",
    "Puts files into line for a RAG. Those that are not in its folder are copied into incoming first.",
    "submit handbook.pdf faq.md --rag policies_rag --priority high",
  )
    .requiredOption("--rag <id>", "which RAG")
    .option("--type <type>", `${SOURCE_TYPES.join(", ")}; by the extension unless said`)
    .option("--reindex", "clear the RAG's collection first", false)
    .option("--skip-validation", "do not look into the files first (use with caution)", false)
    .option("--no-preserve-metadata", "forget what was said about an older version of the file")
    .option("--priority <priority>", JOB_LEVELS.join(", "))
    .option("--wait", "work on them here, unless a worker is running, and wait until all are done", false)
    .action((files: string[], options: SubmitFlags) =>
      withQuarry(options, (quarry, output) => submit(quarry, output, files, options)),
    );
  command("status", "Shows a job.", "status --job rag-policies_rag-1704882600-a7b2c3d4 --watch")
    .requiredOption("--job <id>", "which job")
    .option("--watch", "go on showing it until it is done or has failed", false)
    .action((options: CommonOptions & { job: string; watch: boolean }) =>
      withQuarry(options, (quarry, output) => status(quarry, output, options), READING),
    );
  command("list", "Lists jobs, newest first.", "list --status failed")
    .option("--rag <id>", "of one RAG")
    .option("--status <status>", JOB_STATES.join(", "))
    .option("--limit <count>", "how many at most", wholeNumber, 50)
    .option("--after <cursor>", "the next page; the cursor is in the page before")
    .action((options: ListFlags) =>
      withQuarry(options, (quarry, output) => list(quarry, output, options), READING),
    );
  addDeadLetters(rag, commandOf);
}

function addDeadLetters(
  rag: Command,
  commandOf: (parent: Command, prefix: string) => (usage: string, about: string, example: string) => Command,
): void {
  const letters = rag
    .command("dead-letter")
    .description(
      "Jobs that failed for good, and messages that are none; kept for QUARRY_RAG_DEAD_LETTER_DAYS.",
    )
    .addHelpText("after", "\nExample:\n  quarry rag dead-letter redrive --all");
  const command = commandOf(letters, "rag dead-letter");
  command("list", "Lists them, newest first.", "list --rag policies_rag --code ERR_PDF_INVALID")
    .option("--rag <id>", "of one RAG")
    .option("--code <code>", "that failed with this error_code; ERR_MESSAGE_INVALID: messages that are none")
    .option("--limit <count>", "how many at most", wholeNumber, 50)
    .option("--after <cursor>", "the next page; the cursor is in the page before")
    .action((options: LetterFlags) =>
      withQuarry(options, (quarry, output) => listLetters(quarry, output, options), READING),
    );
  for (const [verb, about, what] of [
    ["redrive", "Puts them back into line, with fresh counters.", "will be tried again"],
    ["purge", "Throws them away. Their files stay in failed/.", "thrown away"],
  ] as const) {
    command(`${verb} [id...]`, about, `${verb} --all`)
      .option("--all", "all of them", false)
      .action((ids: string[], options: CommonOptions & { all: boolean }) =>
        withQuarry(options, async (quarry, output) => {
          if (ids.length === 0 && !options.all)
            throw new QuarryError("invalid_input", "name the jobs, or say --all");
          const count = await quarry.rag[verb](ids.length > 0 ? { ids } : "all");
          output.result({ count }, `${counted(count, "job")} ${what}`);
          const others = new Set(ids).size - count;
          if (others > 0) {
            const why = others === 1 ? "1 is no dead letter" : `${others} are no dead letters`;
            throw new QuarryError("not_found", `${why}: see quarry rag dead-letter list`);
          }
        }),
      );
  }
}

async function listLetters(quarry: Quarry, output: Output, flags: LetterFlags): Promise<void> {
  const page = await quarry.rag.deadLetters({
    rag_id: flags.rag,
    error_code: flags.code === undefined ? undefined : oneOf(flags.code, RAG_ERROR_CODES, "code"),
    limit: flags.limit,
    after: flags.after,
  });
  const rows = page.letters.map(({ id, failed_at, error_code, reason }) => [
    id,
    failed_at,
    error_code ?? "",
    shortened(reason, ERROR_SHOWN),
  ]);
  const head = ["id", "failed at", "code", "why"];
  const more = page.next === undefined ? "" : `\nMore: --after ${page.next}`;
  output.result(page, `${rows.length === 0 ? "No dead letters." : table([head, ...rows])}${more}`);
}

async function submit(quarry: Quarry, output: Output, files: string[], flags: SubmitFlags): Promise<void> {
  refuseWithoutRags(quarry.rag);
  const submitted: (SubmittedJob & { readonly file: string })[] = [];
  const refused: { file: string; why: string }[] = [];
  for (const file of files) {
    try {
      submitted.push({ file, ...(await submitOne(quarry, file, flags, submitted.length === 0)) });
    } catch (error) {
      // One that cannot be taken does not keep the others out; what concerns all of them does.
      const isAboutFile = error instanceof QuarryError && "errorCode" in error;
      if (!isAboutFile || error.errorCode === "ERR_RAG_UNKNOWN") throw error;
      refused.push({ file, why: messageOf(error) });
    }
  }
  for (const { job_id: id } of submitted) output.line(id);
  for (const { why } of refused) output.line(`refused: ${plain(why)}`);
  const jobs = flags.wait ? await workUntilDone(quarry, output, submitted) : undefined;
  if (output.isJson) output.result({ submitted, refused, ...(jobs && { jobs }) }, "");
  else if (jobs) for (const job of jobs) output.result(job, shown(job));
  const isBad = jobs?.some((job) => job.status !== "done") ?? false;
  if (refused.length > 0 || isBad) process.exitCode = 1;
}

/** Of several files only the first clears the collection: the others belong to what comes after. */
function submitOne(
  quarry: Quarry,
  file: string,
  flags: SubmitFlags,
  isFirst: boolean,
): Promise<SubmittedJob> {
  return quarry.rag.submitFile(file, {
    rag_id: flags.rag,
    source_type: flags.type,
    submitted_by: "cli",
    priority: flags.priority === undefined ? undefined : oneOf(flags.priority, JOB_LEVELS, "priority"),
    options: {
      reindex: flags.reindex && isFirst,
      skip_validation: flags.skipValidation,
      preserve_metadata: flags.preserveMetadata,
    },
  });
}

/** Leaves the work to workers that are connected, and does it here when there are none. */
async function workUntilDone(
  quarry: Quarry,
  output: Output,
  submitted: readonly SubmittedJob[],
): Promise<JobStatus[]> {
  const stopping = stopOnSignals();
  const { workerConnected } = await quarry.rag.health();
  const crew: Crew | undefined =
    workerConnected || submitted.length === 0 ? undefined : await quarry.work({ graceMs: GRACE_MS });
  const onNow = () => void crew?.worker.hurry();
  stopping.now.addEventListener("abort", onNow);
  try {
    const jobs: JobStatus[] = [];
    for (const { job_id: id } of submitted)
      jobs.push(await quarry.rag.finished(id, stopping.soon, (job) => output.progress(oneLine(job))));
    if (crew && stopping.soon.aborted) output.line(sayStopping(GRACE_MS));
    return jobs;
  } finally {
    await crew?.stop();
    stopping.now.removeEventListener("abort", onNow);
    stopping.end();
  }
}

async function status(
  quarry: Quarry,
  output: Output,
  { job: id, watch }: { job: string; watch: boolean },
): Promise<void> {
  if (!watch) {
    const job = await quarry.rag.read(id);
    return output.result(job, shown(job));
  }
  const stopping = stopOnSignals();
  let last = "";
  const job = await quarry.rag.finished(id, stopping.soon, (now) => {
    const text = JSON.stringify(now);
    if (text === last) return;
    last = text;
    if (output.isJson) output.result(now, "");
    else output.progress(oneLine(now));
  });
  stopping.end();
  if (!output.isJson) output.result(job, shown(job));
  if (job.status === "failed") process.exitCode = 1;
}

async function list(quarry: Quarry, output: Output, flags: ListFlags): Promise<void> {
  const page = await quarry.rag.list({
    rag_id: flags.rag,
    status: flags.status === undefined ? undefined : oneOf<JobState>(flags.status, JOB_STATES, "status"),
    limit: flags.limit,
    after: flags.after,
  });
  const rows = page.jobs.map((job) => [
    job.job_id,
    job.status,
    String(job.chunks_created),
    shortened(job.error === null ? job.filename : `${job.filename}: ${job.error}`, ERROR_SHOWN),
  ]);
  const head = ["job", "status", "chunks", "file, and what went wrong"];
  const more = page.next === undefined ? "" : `\nMore: --after ${page.next}`;
  output.result(page, rows.length === 0 ? "No jobs." : `${table([head, ...rows])}${more}`);
}

function oneLine(job: JobStatus): string {
  const { status: word, chunks_created: chunks, embeddings_generated: embedded, tokens_used: tokens } = job;
  const figures = chunks > 0 ? `, ${embedded}/${chunks} chunks embedded, ${tokens} tokens` : "";
  return `${shortened(job.filename, 40)}: ${word}${figures}`;
}

function shown(job: JobStatus): string {
  const { suggestions, traceback: _, ...rest } = job;
  return table([
    ...Object.entries(rest)
      .filter(([, value]) => value !== null)
      .map(([name, value]) => [name, plain(String(value))]),
    ...suggestions.map((text, index) => [index === 0 ? "suggestions" : "", plain(text)]),
  ]);
}
