import type { Quarry } from "./app.ts";
import type { Progress } from "./documents/progress.ts";
import type { DocumentState } from "./documents/views.ts";
import type { WaitingItems } from "./ingest/waiting.ts";
import type { LaneWait } from "./queue/lane-wait.ts";
import type { WorkerProcess } from "./queue/worker-processes.ts";

/** How far the work is, and who is at it. */
export interface Status {
  readonly progress: Progress;
  readonly states: Readonly<Record<DocumentState, number>>;
  readonly items: WaitingItems;
  readonly workers: readonly WorkerProcess[];
  readonly paused: readonly string[];
  /** Lanes that need something that is away, each with how many processes say so. */
  readonly waits: readonly (LaneWait & { readonly workers: number })[];
}

export async function readStatus(quarry: Quarry): Promise<Status> {
  const workers = await quarry.workers();
  const [progress, states, items, paused] = await Promise.all([
    quarry.documents.progress(),
    quarry.documents.states(),
    quarry.queue.waiting(workers),
    quarry.lanes.paused(),
  ]);
  return { progress, states, items, workers, paused: [...paused], waits: waitsOf(workers) };
}

/** What several processes say of a lane in the same words is said once, since the first of them. */
export function waitsOf(workers: readonly Pick<WorkerProcess, "waits">[]): Status["waits"] {
  const all = workers.flatMap(({ waits }) => waits);
  const groups = Map.groupBy(all, ({ lane, reason }) => `${lane} ${reason}`);
  return [...groups.values()].map((group) => {
    const { lane, reason } = group[0]!;
    const since = group.map((wait) => wait.since).sort()[0]!;
    return { lane, reason, since, workers: group.length };
  });
}
