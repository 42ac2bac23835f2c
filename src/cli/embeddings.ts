import type { Command } from "commander";
import type { Quarry } from "../app.ts";
import type { EmbeddingJob } from "../embeddings/job-rows.ts";
import { JOB_PRIORITIES, JOB_STATUSES, type JobPriority, type JobStatus } from "../embeddings/queue.ts";
import type { EmbeddingStats } from "../embeddings/stats.ts";
import { QuarryError } from "../errors.ts";
import { type Output, plain, shortened, table } from "./output.ts";
import { type CommonOptions, oneOf, wholeNumber, withCommonOptions, withQuarry } from "./session.ts";

interface ListFlags extends CommonOptions {
  readonly status?: string;
  readonly priority?: string;
  readonly rule?: string;
  readonly project?: string;
  readonly worker?: string;
  readonly limit: number;
  readonly after?: string;
}

interface ChoiceFlags extends CommonOptions {
  readonly all?: boolean;
  readonly olderThan?: number;
}

const TEXT_SHOWN = 60;

/** Texts to be embedded, and what became of them. */
export function addEmbeddings(program: Command): void {
  const embeddings = program
    .command("embeddings")
    .description("Embedding jobs: their figures, lists, and those that failed for good.")
    .addHelpText("after", "\nExample:\n  quarry embeddings stats");
  const command = (usage: string, about: string, example: string) =>
    withCommonOptions(embeddings.command(usage))
      .description(about)
      .addHelpText("after", `\nExample:\n  quarry embeddings ${example}`);

  command("stats", "Shows the health of the queue and of its workers.", "stats").action(
    (options: CommonOptions) =>
      withQuarry(
        options,
        async (quarry, output) => {
          const stats = await quarry.embeddings.stats();
          output.result(stats, statsText(stats));
        },
        { isReader: true },
      ),
  );
  command("list", "Lists jobs, newest first.", "list --status failed")
    .option("--status <status>", JOB_STATUSES.join(", "))
    .option("--priority <priority>", JOB_PRIORITIES.join(", "))
    .option("--rule <id>", "of one rule")
    .option("--project <id>", "of one project")
    .option("--worker <id>", "of one worker")
    .option("--limit <count>", "how many at most", wholeNumber, 50)
    .option("--after <cursor>", "the next page; the cursor is in the page before")
    .action((options: ListFlags) =>
      withQuarry(options, (quarry, output) => list(quarry, output, options), { isReader: true }),
    );
  command("show <id...>", "Shows jobs, with their vectors once they are there.", "show 01990b0e-…").action(
    (ids: string[], options: CommonOptions) =>
      withQuarry(
        options,
        async (quarry, output) => {
          for (const id of ids) {
            const job = await quarry.embeddings.read(id);
            const vector = job.embedding_vector ? Array.from(job.embedding_vector) : null;
            output.result({ ...job, embedding_vector: vector }, shown(job));
          }
        },
        { isReader: true },
      ),
  );
  command("add <text...>", "Makes a job for each text.", 'add "Granite is hard." --priority high')
    .option("--priority <priority>", JOB_PRIORITIES.join(", "), "normal")
    .action((texts: string[], options: CommonOptions & { priority: string }) =>
      withQuarry(options, async (quarry, output) => {
        const priority = oneOf(options.priority, JOB_PRIORITIES, "priority");
        const jobs = await quarry.embeddings.createMany(
          texts.map((text) => ({ input_text: text, priority })),
        );
        for (const { id, status } of jobs) output.result({ id, status }, `${id}  ${status}`);
      }),
    );
  command("cancel <id...>", "Takes jobs back that are not finished.", "cancel 01990b0e-…").action(
    (ids: string[], options: CommonOptions) =>
      withQuarry(options, async (quarry, output) => {
        for (const id of ids) {
          const verdict = await quarry.embeddings.cancel(id);
          output.result({ id, verdict }, `${id}: ${verdict}`);
        }
      }),
  );
  for (const [verb, about] of [
    ["redrive", "Tries jobs again that failed for good."],
    ["purge", "Throws away jobs that failed for good."],
  ] as const) {
    command(`${verb} [id...]`, about, `${verb} --all`)
      .option("--all", "all of them")
      .option("--older-than <hours>", "only those that failed longer ago", wholeNumber)
      .action((ids: string[], options: ChoiceFlags) =>
        withQuarry(options, async (quarry, output) => {
          if (ids.length === 0 && !options.all)
            throw new QuarryError("invalid_input", "name the jobs, or say --all");
          const count = await quarry.embeddings.deadLetters[verb]({
            ...(ids.length > 0 && { ids }),
            ...(options.olderThan !== undefined && { olderThanMs: options.olderThan * 3_600_000 }),
          });
          const what = verb === "redrive" ? "will be tried again" : "thrown away";
          output.result({ count }, `${count} job${count === 1 ? "" : "s"} ${what}`);
        }),
      );
  }
}

async function list(quarry: Quarry, output: Output, flags: ListFlags): Promise<void> {
  const page = await quarry.embeddings.list({
    status: flags.status === undefined ? undefined : oneOf<JobStatus>(flags.status, JOB_STATUSES, "status"),
    priority:
      flags.priority === undefined
        ? undefined
        : oneOf<JobPriority>(flags.priority, JOB_PRIORITIES, "priority"),
    rule_id: flags.rule,
    project_id: flags.project,
    worker_id: flags.worker,
    limit: flags.limit,
    after: flags.after,
  });
  const rows = page.jobs.map((job) => [
    job.id,
    job.status,
    job.priority,
    `${job.attempts}/${job.max_attempts}`,
    shortened(job.error_message ?? job.input_text, TEXT_SHOWN),
  ]);
  const head = ["id", "status", "priority", "tries", "text, or what went wrong"];
  const more = page.next === undefined ? "" : `\nMore: --after ${page.next}`;
  output.result(page, rows.length === 0 ? "No jobs." : `${table([head, ...rows])}${more}`);
}

function statsText(stats: EmbeddingStats): string {
  const ms = (value: number | null) => (value === null ? "–" : `${Math.round(value)} ms`);
  const jobs = stats.jobs.map((row) => [
    row.priority,
    row.status,
    String(row.count),
    ms(row.avg_time_ms),
    row.oldest,
  ]);
  const workers = stats.workers.map((row) => [
    row.worker_id ?? "–",
    String(row.jobs_completed),
    ms(row.avg_time),
  ]);
  const dead = stats.dead_letters.reduce((sum, { count }) => sum + count, 0);
  const lines = [
    `Model ${stats.model}, ${stats.tokens_used} tokens used`,
    jobs.length === 0 ? "No jobs." : table([["priority", "status", "jobs", "time", "oldest"], ...jobs]),
    ...(workers.length > 0 ? ["Last 24 hours:", table([["worker", "jobs", "time"], ...workers])] : []),
    ...(dead > 0 ? [`${dead} failed for good: quarry embeddings list --status failed`] : []),
    ...stats.waiting_for_other_models.map(
      (row) => `${row.count} wait for a worker that has ${plain(row.embedding_model)}`,
    ),
  ];
  return lines.join("\n");
}

function shown(job: EmbeddingJob): string {
  const { embedding_vector: vector, input_text: text, ...rest } = job;
  const rows = Object.entries(rest).filter(([, value]) => value !== null);
  return table([
    ...rows.map(([name, value]) => [name, plain(String(value))]),
    ["input_text", shortened(text, 200)],
    ...(vector ? [["embedding", `${vector.length} numbers; --json prints them`]] : []),
  ]);
}
