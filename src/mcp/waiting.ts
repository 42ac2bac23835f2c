import { type Clock, pause } from "../clock.ts";
import { isQuarryError } from "../errors.ts";
import type { Item } from "../ingest/item-rows.ts";
import type { Items } from "../ingest/items.ts";
import type { Hands, Working } from "./hands.ts";
import type { ToolCall } from "./tool.ts";

/** Most clients give up on a call after 60 s. */
export const WAIT_MAX_MS = 50_000;
const LOOK_EVERY_MS = 200;
const LOOK_AT_FILES_EVERY_MS = 1_000;
/** Whoever works may go away meanwhile. */
const LOOK_FOR_WORKERS_EVERY_MS = 5_000;
const TELL_EVERY_MS = 500;
const HALF_WAY_MS = 5_000;

export interface WaitingParts {
  readonly queue: Items;
  readonly hands: Hands;
  readonly clock: Clock;
}

/** How far an item is, and the files that it brought in. */
export interface ReachedItem {
  /** Undefined when it was cancelled. */
  readonly item: Item | undefined;
  readonly files: FileCounts | undefined;
  readonly working: Working;
  readonly isOver: boolean;
}

export interface FileCounts {
  readonly total: number;
  readonly open: number;
}

/** Waits until an item and the files it brought in are done, the time is over, or nobody works. */
export async function waitFor(parts: WaitingParts, id: string, call: ToolCall): Promise<ReachedItem> {
  const { clock, hands } = parts;
  const startedAt = clock.monotonic();
  let working = await hands.needed();
  let lookedForWorkersAt = startedAt;
  const progress = rising(call);
  for (;;) {
    const reached = await look(parts, id, working);
    const waitedMs = clock.monotonic() - startedAt;
    if (reached.isOver || waitedMs >= WAIT_MAX_MS || working.by === "nobody" || call.signal.aborted)
      return reached;
    progress(reached, waitedMs);
    await pause(reached.files ? LOOK_AT_FILES_EVERY_MS : LOOK_EVERY_MS, call.signal);
    if (clock.monotonic() - lookedForWorkersAt < LOOK_FOR_WORKERS_EVERY_MS) continue;
    lookedForWorkersAt = clock.monotonic();
    working = await hands.needed();
  }
}

/** How far it is just now. */
export async function look({ queue }: WaitingParts, id: string, working: Working): Promise<ReachedItem> {
  const item = await queue.read(id).catch((error) => {
    if (isQuarryError(error, "not_found")) return undefined;
    throw error;
  });
  if (!item) return { item, files: undefined, working, isOver: true };
  const isEnded = item.status === "done" || item.status === "failed";
  const isFolder = item.item_type === "folder" || item.item_type === "project";
  if (!(isEnded && isFolder)) return { item, files: undefined, working, isOver: isEnded };
  const files = await countFiles(queue, item);
  return { item, files, working, isOver: files.open === 0 };
}

async function countFiles(queue: Items, { queue_id: id, result }: Item): Promise<FileCounts> {
  const { pending, inProgress } = await queue.progress([id]);
  const open = pending + inProgress;
  const total = Number(result?.files ?? 0) + Number(result?.gone ?? 0);
  return { total: Math.max(total, open), open };
}

/**
 * The item itself is one step, each of its files another. How far the first one is nobody knows, so it comes closer to
 * its end without reaching it: a client that sees it rise knows that somebody is there.
 */
function rising(call: ToolCall): (reached: ReachedItem, waitedMs: number) => void {
  let lastSteps = 0;
  let lastAtMs = 0;
  return ({ item, files }, waitedMs) => {
    const steps = files ? 1 + files.total - files.open : waitedMs / (waitedMs + HALF_WAY_MS);
    if (steps <= lastSteps || (!files && waitedMs - lastAtMs < TELL_EVERY_MS)) return;
    [lastSteps, lastAtMs] = [steps, waitedMs];
    const state = item?.status === "in_progress" ? "being worked on" : "waiting in line";
    const message = files ? `${files.total - files.open} of ${files.total} files` : state;
    call.progress({ progress: steps, ...(files && { total: 1 + files.total }), message });
  };
}
