import { hostname } from "node:os";
import { text as readText } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { type Command, InvalidArgumentError } from "commander";
import type { Quarry } from "../app.ts";
import { systemClock } from "../clock.ts";
import { DOCUMENT_CHANGES } from "../documents/documents.ts";
import type { Progress } from "../documents/progress.ts";
import type { DocumentSummary } from "../documents/views.ts";
import { isQuarryError, QuarryError } from "../errors.ts";
import type { Ingested } from "../ingest/ingest.ts";
import type { Item } from "../ingest/item-rows.ts";
import type { ItemsOutcome, ItemsProgress } from "../ingest/items-progress.ts";
import { PRIORITIES } from "../ingest/queue.ts";
import { takesItems } from "../ingest/waiting.ts";
import type { Crew } from "../queue/crew.ts";
import { waitsOf } from "../status.ts";
import { noteOn } from "./documents.ts";
import { machineCell } from "./machines.ts";
import { bar, counted, type Output, plain, shortened, table } from "./output.ts";
import { PLUS_MEANS, ProgressBars } from "./progress.ts";
import { type CommonOptions, keyValue, withCommonOptions, withQuarry } from "./session.ts";
import { waitRows } from "./status.ts";
import { type Stopping, sayStopping, stopOnSignals } from "./stopping.ts";

interface IngestFlags extends CommonOptions {
  readonly wait: boolean;
  readonly retry: boolean;
  readonly tenant?: string;
  readonly collection?: string;
  readonly priority?: number;
  readonly metadata?: Record<string, unknown>;
}

/** Of what was skipped, refused or failed, this many are named. */
const TOLD_MAX = 10;
const ITEMS_REPORTED_MAX = 10_000;
const LOOK_EVERY_MS = 500;
const GRACE_MS = 10_000;
/** A page of a scan may take this long; the first one also loads the models. */
const STANDSTILL_MS = 15_000;
const STDIN = "-";

export function addIngest(program: Command): void {
  withCommonOptions(program.command("ingest <path...>"))
    .description(
      "Takes in files and folders, or text from standard input (-). What did not change since the last time is left alone; what is gone from a folder goes.",
    )
    .option("--wait", "work on them here, unless a worker is running, and wait until all are done", false)
    .option("--retry", "what failed before is tried again, although the file is the same", false)
    .option("--tenant <name>", "whose they are", "default")
    .option("--collection <name>", "what they belong to", "default")
    .option("--priority <number>", "0 (some time) to 10 (somebody waits); 9 unless said", priority)
    .option("--metadata <key=value>", "to filter by later; may be given several times", keyValue)
    .addHelpText(
      "after",
      `\nExamples:\n  quarry ingest samples --wait\n  quarry ingest report.pdf --collection finance --metadata year=2026\n  pbpaste | quarry ingest - --wait\n\n${PLUS_MEANS}`,
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

function priority(text: string): number {
  if (/^(\d|10)$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Give a whole number from 0 to 10.");
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
  const ingested = await enqueue(quarry, paths, options);
  saidQueued(output, ingested);
  const ids = ingested.items.map((item) => item.queue_id);
  const isWaiting = options.wait && ids.length > 0;
  const seen = isWaiting
    ? await workUntilDone(quarry, output, { ingested, ids }, stopping)
    : await look(quarry, ids);
  const isStopped = stopping.soon.aborted || (isWaiting && seen.isOpen);
  await report(quarry, output, { ingested, ids, seen, isWaiting, isStopped });
}

async function enqueue(quarry: Quarry, paths: readonly string[], options: IngestFlags): Promise<Ingested> {
  const common = {
    tenant: options.tenant ?? "default",
    collection: options.collection ?? "default",
    ...(options.priority !== undefined && { priority: options.priority }),
    ...(options.metadata && { metadata: options.metadata }),
  };
  const { items, refused } = await quarry.ingest(
    paths.filter((path) => path !== STDIN),
    { ...common, isRetried: options.retry },
  );
  if (!paths.includes(STDIN)) return { items, refused };
  const content = await readText(process.stdin);
  if (content.trim() === "")
    return { items, refused: [...refused, { path: STDIN, why: "standard input was empty" }] };
  const note = await quarry.queue.enqueue({
    item_type: "content",
    op: "ingest",
    payload: { content, source_type: "stdin" },
    tenant_id: common.tenant,
    collection: common.collection,
    priority: options.priority ?? PRIORITIES.command,
    metadata: options.metadata,
  });
  return { items: [...items, { path: STDIN, ...note }], refused };
}

function saidQueued(output: Output, { items, refused }: Ingested): void {
  const merged = items.filter(({ verdict }) => verdict === "merged" || verdict === "runs_again").length;
  const more = merged > 0 ? `, ${merged} of them in line already` : "";
  if (items.length > 0) output.line(`In line: ${counted(items.length, "item")}${more}`);
  for (const { path, why } of refused.slice(0, TOLD_MAX))
    output.line(`  refused: ${plain(path)}: ${plain(why)}`);
}

/** How far items and their documents are. */
interface Seen {
  readonly items: ItemsProgress;
  readonly documents: Progress;
  readonly isOpen: boolean;
}

async function look(quarry: Quarry, ids: readonly string[]): Promise<Seen> {
  const items = await quarry.queue.progress(ids);
  const documents = await quarry.documents.progress(items.documentIds);
  return { items, documents, isOpen: items.pending + items.inProgress + documents.open > 0 };
}

/** Leaves the work to processes that are at it, and does it here when there are none or nothing moves. */
async function workUntilDone(
  quarry: Quarry,
  output: Output,
  { ingested, ids }: { ingested: Ingested; ids: readonly string[] },
  stopping: Stopping,
): Promise<Seen> {
  const { soon: signal } = stopping;
  const { length: others } = await workersAtIt(quarry, ingested);
  let crew = others === 0 ? await quarry.work({ graceMs: GRACE_MS }) : undefined;
  if (!crew) output.line(`${atIt(others)} already.`);
  const bars = new ProgressBars(() => systemClock.monotonic());
  const isStandstill = standstill(() => systemClock.monotonic());
  let seen = await look(quarry, ids);
  while (seen.isOpen && !signal.aborted) {
    const waits = waitRows(waitsOf(await quarry.workers())).map((row) => row.join(" "));
    const lines = [itemsLine(seen.items), bars.lines(seen.documents, { isWide: output.isLive }), ...waits];
    output.progress(lines.join("\n"));
    if (isStandstill(seen)) {
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
    seen = await look(quarry, ids);
  }
  if (crew) await stop(crew, output, stopping);
  seen = await look(quarry, ids);
  output.line(`${itemsLine(seen.items)}\n${bars.lines(seen.documents, { isWide: true })}`);
  return seen;
}

function itemsLine({ pending, inProgress, done, failed }: ItemsProgress): string {
  const ended = done + failed;
  const all = ended + pending + inProgress;
  return `Items     ${bar(ended, all)} ${ended}/${all}${failed > 0 ? `, ${failed} failed` : ""}`;
}

async function stop(crew: Crew, output: Output, { soon, now }: Stopping): Promise<void> {
  if (soon.aborted) output.line(sayStopping(GRACE_MS));
  const onNow = () => void crew.worker.hurry();
  if (now.aborted) onNow();
  now.addEventListener("abort", onNow);
  await crew.stop();
  now.removeEventListener("abort", onNow);
}

/** Paths are taken up on the machine where they were given, text anywhere. */
async function workersAtIt(quarry: Quarry, { items }: Ingested) {
  const machine = items.every(({ path }) => path === STDIN) ? undefined : quarry.settings.machine;
  return (await quarry.workers()).filter((worker) => takesItems(worker, machine));
}

/** Where there is only one machine, its name says nothing. */
async function whomToWaitFor(quarry: Quarry): Promise<string> {
  const { machine } = quarry.settings;
  const isOnlyOne =
    machine === undefined || (machine === hostname() && (await quarry.workers()).length === 0);
  return isOnlyOne
    ? "Waiting for a worker: run `quarry up`, or add --wait."
    : `Waiting for a worker on ${machine}, where the paths are: run \`quarry up\` there, or add --wait.`;
}

function atIt(workers: number): string {
  return `${counted(workers, "worker")} ${workers === 1 ? "is" : "are"} at it`;
}

/** Tells when nothing has changed for long. */
function standstill(monotonic: () => number): (seen: Seen) => boolean {
  let last = "";
  let since = monotonic();
  return (seen) => {
    const now = JSON.stringify(seen);
    if (now !== last) {
      last = now;
      since = monotonic();
    }
    return monotonic() - since >= STANDSTILL_MS;
  };
}

interface Outcome {
  readonly ingested: Ingested;
  readonly ids: readonly string[];
  readonly seen: Seen;
  readonly isWaiting: boolean;
  readonly isStopped: boolean;
}

async function report(quarry: Quarry, output: Output, outcome: Outcome): Promise<void> {
  const { ingested, ids, seen, isWaiting, isStopped } = outcome;
  const items = await quarry.queue.family(ids, { limit: ITEMS_REPORTED_MAX });
  const documents = isWaiting ? await shownDocuments(quarry, seen.items.documentIds) : [];
  const taken = takenText(await quarry.queue.outcome(ids));
  const text =
    isWaiting || isStopped
      ? resultOf(quarry, outcome, { taken, items, documents })
      : await nextStep(quarry, outcome);
  output.result({ items, refused: ingested.refused, progress: seen, documents }, text);
  const isBad =
    seen.items.failed > 0 || documents.some(({ state }) => state === "failed" || state === "partial");
  if (ingested.refused.length > 0 || (isWaiting && isBad) || isStopped) process.exitCode = 1;
}

/** Those that were deleted meanwhile are left out. */
async function shownDocuments(quarry: Quarry, ids: readonly string[]): Promise<DocumentSummary[]> {
  const shown = await Promise.all(
    ids.map((id) =>
      quarry.documents.show(id).catch((error) => {
        if (isQuarryError(error, "not_found")) return undefined;
        throw error;
      }),
    ),
  );
  return shown.filter((document) => document !== undefined);
}

/** What to do when others do the work. */
async function nextStep(quarry: Quarry, { ingested, ids, seen }: Outcome): Promise<string> {
  if (ids.length === 0) return "Nothing was taken in.";
  const { length: workers } = await workersAtIt(quarry, ingested);
  if (!seen.isOpen) return "All done.";
  const who = workers > 0 ? `${atIt(workers)}.` : await whomToWaitFor(quarry);
  return `${who} \`quarry status --watch\` shows how far it is.`;
}

function resultOf(
  quarry: Quarry,
  { isStopped }: Outcome,
  {
    taken,
    items,
    documents,
  }: { taken: string; items: readonly Item[]; documents: readonly DocumentSummary[] },
): string {
  if (isStopped)
    return "Stopped. Nothing is lost: `quarry up`, or the same command again, goes on where it stopped.";
  const parts = [taken, skippedText(items), blankText(documents), badText(quarry, items, documents)];
  const isBad = items.some(({ status }) => status === "failed") || parts[3] !== "";
  return [...parts, isBad ? "" : 'All done. Try: quarry search "…"'].filter((part) => part !== "").join("\n");
}

/** What became of the files, in one line. */
function takenText({ changes, skipped, removed, failed }: ItemsOutcome): string {
  const told = [
    ...DOCUMENT_CHANGES.map((change) => [change.replace("_", " "), changes[change] ?? 0] as const),
    ["skipped", skipped],
    ["removed", removed],
    ["failed", failed],
  ] as const;
  const some = told.filter(([, number]) => number > 0).map(([what, number]) => `${number} ${what}`);
  return `Taken in: ${some.length > 0 ? some.join(", ") : "nothing; there is no document in there"}`;
}

function skippedText(items: readonly Item[]): string {
  const some = items.flatMap(({ result }) => (result?.skipped_some ?? []) as { path: string; why: string }[]);
  return some
    .slice(0, TOLD_MAX)
    .map(({ path, why }) => `  skipped: ${plain(path)}: ${plain(why)}`)
    .join("\n");
}

function blankText(documents: readonly DocumentSummary[]): string {
  const blank = documents.filter(({ state, chunks }) => state === "completed" && chunks === 0);
  if (blank.length === 0) return "";
  const rows = blank
    .slice(0, TOLD_MAX)
    .map(({ id, filename }) => [id, shortened(filename, 30), "no text found"]);
  const more = blank.length > TOLD_MAX ? `\n  … and ${blank.length - TOLD_MAX} more` : "";
  return `Nothing to search in:\n${table(rows)}${more}`;
}

function badText(quarry: Quarry, items: readonly Item[], documents: readonly DocumentSummary[]): string {
  const bad = documents.filter(({ state }) => state === "failed" || state === "partial");
  const known = new Set(bad.map(({ id }) => id));
  const others = items.filter(
    ({ status, document_id: id }) => status === "failed" && !(id !== null && known.has(id)),
  );
  if (bad.length + others.length === 0) return "";
  const machineOf = machineCell(quarry, [
    ...bad.map(({ seenOn }) => seenOn),
    ...others.map(({ seen_on: machine }) => machine),
  ]);
  const rows = [
    ...bad.map((document) => [
      document.id,
      ...machineOf(document.seenOn),
      shortened(document.filename, 30),
      document.state,
      shortened(noteOn(document), 100),
    ]),
    ...others.map((item) => [
      item.queue_id,
      ...machineOf(item.seen_on),
      shortened(String(item.payload.file_path ?? item.payload.folder_path ?? item.item_type), 30),
      "failed",
      shortened(item.error_message ?? "", 100),
    ]),
  ];
  const rest = documents.some(({ state }) => state === "completed" || state === "partial")
    ? "The rest can be searched. "
    : "";
  return `Not everything could be read:\n${table(rows)}\n${rest}\`quarry documents show ID\` says more, \`quarry documents retry ID\` tries again.`;
}
