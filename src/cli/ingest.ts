import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import type { Quarry } from "../app.ts";
import { systemClock } from "../clock.ts";
import type { Progress } from "../documents/progress.ts";
import type { DocumentSummary } from "../documents/views.ts";
import type { Ingested, IngestedFile } from "../ingest/ingest.ts";
import { type Output, plain, shortened, table } from "./output.ts";
import { ProgressBars } from "./progress.ts";
import { type CommonOptions, keyValue, withCommonOptions, withQuarry } from "./session.ts";

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
      "\nExamples:\n  quarry ingest samples --wait\n  quarry ingest report.pdf --collection finance --metadata year=2026",
    )
    .action((paths: string[], options: IngestFlags) =>
      withQuarry(options, (quarry, output) => run(quarry, output, paths, options)),
    );
}

async function run(quarry: Quarry, output: Output, paths: string[], options: IngestFlags): Promise<void> {
  const stopping = new AbortController();
  const onSignal = () => stopping.abort();
  process.once("SIGINT", onSignal).once("SIGTERM", onSignal);
  let seen = 0;
  const ingested = await quarry.ingest(paths, {
    tenant: options.tenant ?? "default",
    collection: options.collection ?? "default",
    ...(options.metadata && { metadata: options.metadata }),
    isRetried: options.retry,
    signal: stopping.signal,
    onFile: (file) => output.progress(`Taking in: ${++seen}  ${shortened(file.path, 60)}`),
  });
  sayTaken(output, ingested);
  const progress =
    options.wait && ingested.ids.length > 0
      ? await workUntilDone(quarry, output, ingested.ids, stopping.signal)
      : undefined;
  process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
  const unfinished = stopping.signal.aborted || (progress?.open ?? 0) > 0;
  await report(quarry, output, { ingested, progress, isStopped: unfinished });
}

function sayTaken(output: Output, { files }: Ingested): void {
  const count = (test: (file: IngestedFile) => boolean) => files.filter(test).length;
  const changes = (["added", "replaced", "retried", "unchanged"] as const)
    .map((change) => [change, count((file) => file.kind === "taken" && file.change === change)] as const)
    .filter(([, number]) => number > 0)
    .map(([change, number]) => `${number} ${change}`);
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
  signal: AbortSignal,
): Promise<Progress> {
  const others = (await quarry.workers()).filter(({ lanes }) => lanes.length > 0);
  let crew = others.length === 0 ? await quarry.work({ graceMs: GRACE_MS }) : undefined;
  if (!crew) output.line(`${others.length} worker${others.length === 1 ? " is" : "s are"} at it already.`);
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
  if (signal.aborted) output.line("Stopping; what runs is finished or given back …");
  await crew?.stop();
  progress = await quarry.documents.progress(ids);
  output.line(bars.lines(progress, { isWide: true }));
  return progress;
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

async function report(
  quarry: Quarry,
  output: Output,
  {
    ingested,
    progress,
    isStopped,
  }: { ingested: Ingested; progress: Progress | undefined; isStopped: boolean },
): Promise<void> {
  const documents = progress ? await Promise.all(ingested.ids.map((id) => quarry.documents.show(id))) : [];
  const bad = documents.filter(({ state }) => state === "failed" || state === "partial");
  const refused = ingested.files.some((file) => file.kind === "refused");
  output.result(
    { files: ingested.files, progress, documents },
    nextStep({ ingested, progress, bad, isStopped }),
  );
  if (refused || bad.length > 0 || isStopped) process.exitCode = 1;
}

function nextStep(state: {
  ingested: Ingested;
  progress: Progress | undefined;
  bad: readonly DocumentSummary[];
  isStopped: boolean;
}): string {
  const { ingested, progress, bad, isStopped } = state;
  if (ingested.ids.length === 0) return "Nothing was taken in.";
  if (isStopped)
    return "Stopped. Nothing is lost: `quarry up`, or the same command again, goes on where it stopped.";
  if (!progress)
    return "Waiting for a worker: run `quarry up`, or add --wait. `quarry status --watch` shows how far it is.";
  if (bad.length === 0) return `All done. Try: quarry search "…"`;
  const rows = bad.map(({ id, filename, state: how, error }) => [
    id,
    shortened(filename, 30),
    how,
    shortened(error ?? "", 100),
  ]);
  return `Not everything could be read:\n${table(rows)}\nThe rest can be searched. \`quarry documents show ID\` says more, \`quarry documents retry ID\` tries again.`;
}
