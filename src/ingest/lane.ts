import { attempt } from "../outcomes.ts";
import type { Queue } from "../queue/declaration.ts";
import type { Task } from "../queue/held.ts";
import { defineLane, type LaneDeclaration } from "../queue/lane.ts";
import { done, type Outcome, released } from "../queue/outcome.ts";
import { isLeftToOthers } from "./elsewhere.ts";
import { handleItem, type ItemParts, jobOf } from "./handle.ts";
import type { ItemPayload, ItemQueues } from "./queue.ts";

/**
 * An item of a file is done when its document can be searched, so most handlers wait for the pipeline. This many
 * documents are in it at once: enough to keep it busy, few enough that whoever comes next is served soon.
 */
const ITEMS_AT_ONCE = 48;
/** Handlers that always take the item that has waited longest. */
const OLDEST_AT_ONCE = 4;

export function itemLanes(
  parts: ItemParts & { queues: ItemQueues; pollMs: number },
): LaneDeclaration<object>[] {
  const lane = (queue: Queue<ItemPayload>, concurrency: number) =>
    defineLane({
      queue,
      concurrency,
      // Held in advance, an item would stand in line here while others who could take it have nothing to do.
      prefetchMax: 0,
      pollMs: parts.pollMs,
      isWaitingForOthers: true,
      handle: (task) => attempt(task, () => work(parts, task)),
    });
  return [lane(parts.queues.items, ITEMS_AT_ONCE), lane(parts.queues.oldest, OLDEST_AT_ONCE)];
}

async function work(parts: ItemParts, task: Task<ItemPayload>): Promise<Outcome> {
  const job = jobOf(task);
  if (await isLeftToOthers(parts, job)) return released();
  const result = await handleItem(parts, job);
  return done({ result_json: JSON.stringify(result) });
}
