import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import type { Quarry } from "../app.ts";
import { systemClock } from "../clock.ts";
import { DOCUMENT_CHANGES } from "../documents/documents.ts";
import type { Progress } from "../documents/progress.ts";
import type { DocumentSummary } from "../documents/views.ts";
import { isQuarryError, QuarryError } from "../errors.ts";
import type { Ingested, IngestedFile } from "../ingest/ingest.ts";
import type { Crew } from "../queue/crew.ts";
import { noteOn } from "./documents.ts";
import { counted, type Output, plain, shortened, table } from "./output.ts";
import { PLUS_MEANS, ProgressBars } from "./progress.ts";
import { type CommonOptions, keyValue, withCommonOptions, withQuarry } from "./session.ts";
import { type Stopping, sayStopping, stopOnSignals } from "./stopping.ts";

interface IngestFlags extends CommonOptions {
  readonly wait: boolean;
  readonly retry: boolean;
  readonly tenant?: string;
  readonly collection?: string;
  readonly metadata?: Record<string, unknown>;
}

/** Of what was skipped or refused, this many are named. */
const TOLD_MAX = 10;
const LOOK_EVERY_MS = 500;
const GRACE_MS = 10_000;
/** A page of a scan may take this long; the first one also loads the models. */
const STANDSTILL_MS = 15_000;

export function addIngest(program: Command): void {
  withCommonOptions(program.command("ingest <path...>"))
    .description("Takes in files and folders. What was taken in before and did not change is left alone.")
    .option("--wait", "work on them here, unless a worker is running, and wait until all are done", false)
    .option("--retry", "what failed before is tried again, although the file is the same", false)
    .option("--tenant <name>", "whose they are", "default")
    .option("--collection <name>", "what they belong to", "default")
    .option("--metadata <key=value>", "to filter by later; may be given several times", keyValue)
    .addHelpText(
      "after",
      `\nExamples:\n  quarry ingest samples --wait\n  quarry ingest report.pdf --collection finance --metadata year=2026\n\n${PLUS_MEANS}`,
    )
    .action((paths: string[], options: IngestFlags) =>
      withQuarry(options, async (quarry, output) => {
        const stopping = stopOnSignals();
        try {
          await run(quarry, output, paths, { ...options, stopping });
        } catch (error) {
          throw isQuarryError(error, "database_unavailable", "commit_unknown") ? withAdvice(error) : error;
        } finally {
          stopping.end();
        }
      }),
    );
}

function withAdvice(error: QuarryError): QuarryError {
  const advice =
    "What was taken in is safe: when the database is back, the same command again, or quarry up, goes on where it stopped.";
  return new QuarryError(error.code, `${error.message}. ${advice}`, { cause: error });
}

async function run(
  quarry: Quarry,
  output: Output,
  paths: string[],
  options: IngestFlags & { stopping: Stopping },
): Promise<void> {
  const { stopping } = options;
  let seen = 0;
  const ingested = await quarry.ingest(paths, {
    tenant: options.tenant ?? "default",
    collection: options.collection ?? "default",
    ...(options.metadata && { metadata: options.metadata }),
    isRetried: options.retry,
    signal: stopping.soon,
    onFile: (file) => output.progress(`Taking in: ${++seen}  ${shortened(file.path, 60)}`),
  });
  sayTaken(output, ingested);
  const isWaiting = options.wait && ingested.ids.length > 0;
  const progress = isWaiting
    ? await workUntilDone(quarry, output, ingested.ids, stopping)
    : await quarry.documents.progress(ingested.ids);
  const isStopped = stopping.soon.aborted || (isWaiting && progress.open > 0);
  await report(quarry, output, { ingested, progress, isWaiting, isStopped });
}

function sayTaken(output: Output, { files }: Ingested): void {
  const count = (test: (file: IngestedFile) => boolean) => files.filter(test).length;
  const changes = DOCUMENT_CHANGES.map(
    (change) => [change, count((file) => file.kind === "taken" && file.change === change)] as const,
  )
    .filter(([, number]) => number > 0)
    .map(([change, number]) => `${number} ${change.replace("_", " ")}`);
  const skipped = count((file) => file.kind === "skipped");
  const refused = count((file) => file.kind === "refused");
  const parts = [
    ...changes,
    ...(skipped > 0 ? [`${skipped} skipped`] : []),
    ...(refused > 0 ? [`${refused} refused`] : []),
  ];
  output.line(`Taken in: ${parts.length > 0 ? parts.join(", ") : "nothing; there is no document in there"}`);
  for (const kind of ["skipped", "refused"] as const) {
    const some = files.filter((file) => file.kind !== "taken").filter((file) => file.kind === kind);
    for (const file of some.slice(0, TOLD_MAX))
      output.line(`  ${kind}: ${plain(file.path)}: ${plain(file.why)}`);
    if (some.length > TOLD_MAX)
      output.line(`  … and ${some.length - TOLD_MAX} more ${kind}; --json names them all`);
  }
}

/** Leaves the work to processes that are at it, and does it here when there are none or nothing moves. */
async function workUntilDone(
  quarry: Quarry,
  output: Output,
  ids: readonly string[],
  stopping: Stopping,
): Promise<Progress> {
  const { soon: signal } = stopping;
  const others = await workersAtIt(quarry);
  let crew = others === 0 ? await quarry.work({ graceMs: GRACE_MS }) : undefined;
  if (!crew) output.line(`${atIt(others)} already.`);
  const bars = new ProgressBars(() => systemClock.monotonic());
  const isStandstill = standstill(() => systemClock.monotonic());
  let progress = await quarry.documents.progress(ids);
  while (progress.open > 0 && !signal.aborted) {
    output.progress(bars.lines(progress, { isWide: output.isLive }));
    if (isStandstill(progress)) {
      const paused = [...(await quarry.lanes.paused())];
      if (paused.length > 0) {
        output.line(
          `Nothing moves: ${paused.join(", ")} paused. Go on with: quarry lanes resume ${paused.join(" ")}`,
        );
        break;
      }
      // A worker that was killed is still listed for a while; another may run other lanes.
      if (!crew) output.line("The others do not get on with it; working here too.");
      crew ??= await quarry.work({ graceMs: GRACE_MS });
    }
    await sleep(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
    progress = await quarry.documents.progress(ids);
  }
  if (crew) await stop(crew, output, stopping);
  progress = await quarry.documents.progress(ids);
  output.line(bars.lines(progress, { isWide: true }));
  return progress;
}

async function stop(crew: Crew, output: Output, { soon, now }: Stopping): Promise<void> {
  if (soon.aborted) output.line(sayStopping(GRACE_MS));
  const onNow = () => crew.worker.kill();
  if (now.aborted) onNow();
  now.addEventListener("abort", onNow);
  await crew.stop();
  now.removeEventListener("abort", onNow);
}

async function workersAtIt(quarry: Quarry): Promise<number> {
  return (await quarry.workers()).filter(({ lanes }) => lanes.length > 0).length;
}

function atIt(workers: number): string {
  return `${counted(workers, "worker")} ${workers === 1 ? "is" : "are"} at it`;
}

/** Tells when nothing has changed for long. */
function standstill(monotonic: () => number): (progress: Progress) => boolean {
  let last = "";
  let since = monotonic();
  return (progress) => {
    const now = JSON.stringify(progress);
    if (now !== last) {
      last = now;
      since = monotonic();
    }
    return monotonic() - since >= STANDSTILL_MS;
  };
}

interface Outcome {
  readonly ingested: Ingested;
  readonly progress: Progress;
  readonly isWaiting: boolean;
  readonly isStopped: boolean;
}

async function report(quarry: Quarry, output: Output, outcome: Outcome): Promise<void> {
  const { ingested, progress, isWaiting, isStopped } = outcome;
  const documents = isWaiting ? await Promise.all(ingested.ids.map((id) => quarry.documents.show(id))) : [];
  const isBad = documents.some(({ state }) => state === "failed" || state === "partial");
  const isRefused = ingested.files.some((file) => file.kind === "refused");
  const text = isWaiting || isStopped ? resultOf(outcome, documents) : await nextStep(quarry, outcome);
  output.result({ files: ingested.files, progress, documents }, text);
  if (isRefused || isBad || isStopped) process.exitCode = 1;
}

/** What to do when others do the work. */
async function nextStep(quarry: Quarry, { ingested, progress }: Outcome): Promise<string> {
  if (ingested.ids.length === 0) return "Nothing was taken in.";
  if (progress.open === 0)
    return "Nothing to do: all of it was worked on before. What failed then is tried again with --retry.";
  const workers = await workersAtIt(quarry);
  const who = workers > 0 ? `${atIt(workers)}.` : "Waiting for a worker: run `quarry up`, or add --wait.";
  return `${who} \`quarry status --watch\` shows how far it is.`;
}

function resultOf({ isStopped }: Outcome, documents: readonly DocumentSummary[]): string {
  if (isStopped)
    return "Stopped. Nothing is lost: `quarry up`, or the same command again, goes on where it stopped.";
  const bad = documents.filter(({ state }) => state === "failed" || state === "partial");
  const blank = documents.filter(({ state, chunks }) => state === "completed" && chunks === 0);
  const lines = blank
    .slice(0, TOLD_MAX)
    .map(({ id, filename }) => [id, shortened(filename, 30), "no text found"]);
  const more = blank.length > TOLD_MAX ? `\n  … and ${blank.length - TOLD_MAX} more` : "";
  const note = blank.length > 0 ? `Nothing to search in:\n${table(lines)}${more}\n` : "";
  if (bad.length === 0) return `${note}All done. Try: quarry search "…"`;
  const rows = bad.map((document) => [
    document.id,
    shortened(document.filename, 30),
    document.state,
    shortened(noteOn(document), 100),
  ]);
  const rest = documents.some(({ state }) => state === "completed" || state === "partial")
    ? "The rest can be searched. "
    : "";
  return `${note}Not everything could be read:\n${table(rows)}\n${rest}\`quarry documents show ID\` says more, \`quarry documents retry ID\` tries again.`;
}
