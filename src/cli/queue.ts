import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import type { Quarry } from "../app.ts";
import { QuarryError } from "../errors.ts";
import type { Item } from "../ingest/item-rows.ts";
import { ITEM_STATUSES, ITEM_TYPES, type ItemStatus, type ItemType } from "../ingest/queue.ts";
import { takesItems } from "../ingest/waiting.ts";
import type { QueueHealth } from "../rag/jobs.ts";
import { waitsOf } from "../status.ts";
import { machineCell, unreachedText } from "./machines.ts";
import { counted, type Output, plain, shortened, table } from "./output.ts";
import { type CommonOptions, oneOf, wholeNumber, withCommonOptions, withQuarry } from "./session.ts";
import { waitRows } from "./status.ts";

interface ListFlags extends CommonOptions {
  readonly status?: string;
  readonly type?: string;
  readonly tenant?: string;
  readonly collection?: string;
  readonly parent?: string;
  readonly machine?: string;
  readonly limit: number;
  readonly after?: string;
}

interface RetryFlags extends CommonOptions {
  readonly allFailed?: boolean;
  readonly tenant?: string;
  readonly collection?: string;
}

const WATCH_EVERY_MS = 1_000;
const ABOUT_SHOWN = 60;

/** Items of the unified queue. */
export function addQueue(program: Command): void {
  const queue = program
    .command("queue")
    .description("Items of the queue: everything that came in.")
    .addHelpText("after", "\nExample:\n  quarry queue status --watch");
  const command = (usage: string, about: string, example: string) =>
    withCommonOptions(queue.command(usage))
      .description(about)
      .addHelpText("after", `\nExample:\n  quarry queue ${example}`);
  const reading = { isReader: true };

  command("status", "Shows how many items wait, run, are done and failed, and who works.", "status --watch")
    .option("--watch", "go on showing it until Ctrl-C")
    .action((options: CommonOptions & { watch?: boolean }) =>
      withQuarry(options, (quarry, output) => status(quarry, output, options.watch ?? false), reading),
    );
  command("list", "Lists items, newest first.", "list --status failed")
    .option("--status <status>", ITEM_STATUSES.join(", "))
    .option("--type <type>", ITEM_TYPES.join(", "))
    .option("--tenant <name>", "of one tenant")
    .option("--collection <name>", "of one collection")
    .option("--parent <id>", "found by one scan")
    .option("--machine <name>", "about paths of one machine")
    .option("--limit <count>", "how many at most", wholeNumber, 50)
    .option("--after <cursor>", "the next page; the cursor is in the page before")
    .action((options: ListFlags) =>
      withQuarry(options, (quarry, output) => list(quarry, output, options), reading),
    );
  command(
    "show <id...>",
    "Shows items: what they are about and what they came to.",
    "show 01990b0e-…",
  ).action((ids: string[], options: CommonOptions) =>
    withQuarry(
      options,
      async (quarry, output) => {
        for (const id of ids) {
          const item = await quarry.queue.read(id);
          output.result(item, shown(item));
        }
      },
      reading,
    ),
  );
  command("retry [id...]", "Puts items back into line, with fresh counters.", "retry --all-failed")
    .option("--all-failed", "all that failed")
    .option("--tenant <name>", "with --all-failed: of one tenant")
    .option("--collection <name>", "with --all-failed: of one collection")
    .action((ids: string[], options: RetryFlags) =>
      withQuarry(options, async (quarry, output) => {
        if (ids.length === 0 && !options.allFailed)
          throw new QuarryError("invalid_input", "name the items, or say --all-failed");
        for (const id of ids) {
          const { status } = await quarry.queue.retry(id);
          output.result({ queue_id: id, status }, `${id}: ${status}`);
        }
        if (!options.allFailed) return;
        const retried = await quarry.queue.retryFailed({
          tenant_id: options.tenant,
          collection: options.collection,
        });
        output.result({ retried }, `${retried} will be tried again`);
      }),
    );
  command("cancel <id...>", "Takes items back that are not finished.", "cancel 01990b0e-…").action(
    (ids: string[], options: CommonOptions) =>
      withQuarry(options, async (quarry, output) => {
        for (const id of ids) {
          const verdict = await quarry.queue.cancel(id);
          output.result({ queue_id: id, verdict }, `${id}: ${verdict}`);
        }
      }),
  );
  command("prune", "Deletes finished items from the list. Their documents stay.", "prune --older-than 24")
    .option("--older-than <hours>", "only those that ended longer ago", wholeNumber)
    .option("--failed", "also those that failed")
    .action((options: CommonOptions & { olderThan?: number; failed?: boolean }) =>
      withQuarry(options, async (quarry, output) => {
        const ageMs = (options.olderThan ?? 0) * 3_600_000;
        let pruned = 0;
        for (let last = -1; last !== 0; pruned += last)
          last = await quarry.queue.prune({
            doneOlderThanMs: ageMs,
            ...(options.failed && { failedOlderThanMs: ageMs }),
          });
        output.result({ pruned }, `${pruned} deleted`);
      }),
    );
}

async function status(quarry: Quarry, output: Output, isWatched: boolean): Promise<void> {
  const stopping = new AbortController();
  const onSignal = () => stopping.abort();
  if (isWatched) process.once("SIGINT", onSignal).once("SIGTERM", onSignal);
  do {
    const workers = await quarry.workers();
    const [counts, waiting, rag] = await Promise.all([
      quarry.queue.counts(),
      quarry.queue.waiting(workers),
      quarry.rag.rags.size > 0 ? quarry.rag.health() : undefined,
    ]);
    const known = Object.fromEntries(ITEM_STATUSES.map((word) => [word, counts[word] ?? 0]));
    const atWork = workers.filter((worker) => takesItems(worker)).length;
    const rows = [
      ...Object.entries(known).map(([word, count]) => {
        const said = [String(count), ...(word === "pending" ? unreachedText(waiting) : [])];
        return [word.replace("_", " "), said.join(", ")];
      }),
      ["workers", atWork === 0 && known.pending! > 0 ? "0 (run quarry up)" : String(atWork)],
      ...waitRows(waitsOf(workers)),
    ];
    const text = rag ? `${table(rows)}\n\n${ragText(rag)}` : table(rows);
    const without_workers = waiting.withoutWorkers;
    output.result({ ...known, workers: atWork, without_workers, ...(rag && { rag }) }, text);
    if (isWatched) await sleep(WATCH_EVERY_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
  } while (isWatched && !stopping.signal.aborted && !process.stdout.destroyed);
}

/** In the words of the contract. */
function ragText(rag: QueueHealth): string {
  const heard =
    rag.lastHeartbeatMsAgo === null
      ? ""
      : ` (last heartbeat ${Math.round(rag.lastHeartbeatMsAgo / 1000)} s ago)`;
  const oldest =
    rag.oldestDeadLetterAt === null
      ? ""
      : ` (the oldest of ${rag.oldestDeadLetterAt}; kept for ${counted(rag.deadLetterDays, "day")})`;
  return [
    `Queue name: ${rag.queue}`,
    `Connection: ${rag.connection}`,
    `Queue length: ${rag.length}`,
    `Processing: ${rag.processing}`,
    `Queued: ${rag.queued}`,
    `Dead letters: ${rag.deadLetters}${oldest}`,
    `Worker connected: ${rag.workerConnected ? "yes" : "no"}${heard}`,
  ]
    .map((line) => `  ${line}`)
    .join("\n");
}

async function list(quarry: Quarry, output: Output, flags: ListFlags): Promise<void> {
  const page = await quarry.queue.list({
    status: flags.status === undefined ? undefined : oneOf<ItemStatus>(flags.status, ITEM_STATUSES, "status"),
    item_type: flags.type === undefined ? undefined : oneOf<ItemType>(flags.type, ITEM_TYPES, "type"),
    tenant_id: flags.tenant,
    collection: flags.collection,
    parent_id: flags.parent,
    seen_on: flags.machine,
    limit: flags.limit,
    after: flags.after,
  });
  const machineOf = machineCell(
    quarry,
    page.items.map(({ seen_on: machine }) => machine),
  );
  const rows = page.items.map((item) => [
    item.queue_id,
    item.status.replace("_", " "),
    `${item.item_type} ${item.op}`,
    String(item.priority),
    ...machineOf(item.seen_on),
    shortened(item.error_message ?? about(item), ABOUT_SHOWN),
  ]);
  const head = ["id", "status", "what", "priority", ...machineOf("machine"), "about, or what went wrong"];
  const more = page.next === undefined ? "" : `\nMore: --after ${page.next}`;
  output.result(page, rows.length === 0 ? "No items." : `${table([head, ...rows])}${more}`);
}

/** The field that says most. */
function about({ payload }: Item): string {
  const [, value] =
    Object.entries(payload).find(([name]) => /path|root|content|name|tenant|document/.test(name)) ?? [];
  return String(value ?? JSON.stringify(payload));
}

function shown(item: Item): string {
  const { payload, metadata, result, ...rest } = item;
  const json = { payload, metadata, result };
  return table([
    ...Object.entries(rest)
      .filter(([, value]) => value !== null)
      .map(([name, value]) => [name, plain(String(value))]),
    ...Object.entries(json).map(([name, value]) => [name, shortened(JSON.stringify(value), 500)]),
  ]);
}
