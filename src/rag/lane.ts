import { defineLane, type LaneDeclaration } from "../queue/lane.ts";
import { handleJob, type RagParts } from "./handle.ts";
import { alsoTidying } from "./leftovers.ts";
import type { RagPayload } from "./queue.ts";

/** Most handlers wait for the pipeline; this many documents are in it at once. */
const JOBS_AT_ONCE = 48;

export function ragLane(parts: RagParts & { readonly pollMs: number }): LaneDeclaration<object> {
  return defineLane<RagPayload>({
    queue: parts.queue.store.queue,
    store: alsoTidying(parts),
    concurrency: JOBS_AT_ONCE,
    // Held in advance, a job would stand in line here while others who could take it have nothing to do.
    prefetchMax: 0,
    pollMs: parts.pollMs,
    isWaitingForOthers: true,
    handle: (task) => handleJob(parts, task),
  });
}
