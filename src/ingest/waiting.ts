import type { Database } from "../database/database.ts";
import type { WorkerProcess } from "../queue/worker-processes.ts";
import { ITEM_LANES } from "./queue.ts";

export interface WaitingItems {
  /** How many nobody has taken up yet. */
  readonly waiting: number;
  /** Machines with paths that some of these are about, and without workers: nobody else takes them. */
  readonly withoutWorkers: readonly { readonly machine: string; readonly items: number }[];
}

export async function waitingItems(
  database: Database,
  workers: readonly WorkerProcess[],
): Promise<WaitingItems> {
  const rows = await database.query({
    name: "items.waiting",
    sql: "select seen_on, count(*) as total from unified_queue where status = 'pending' group by seen_on order by seen_on",
  });
  const byMachine = rows.map((row) => ({ machine: String(row.seen_on), items: Number(row.total) }));
  return {
    waiting: byMachine.reduce((all, { items }) => all + items, 0),
    withoutWorkers: byMachine.filter(
      ({ machine }) => machine !== "" && !workers.some((worker) => takesItems(worker, machine)),
    ),
  };
}

/** With a machine: also items about its paths. */
export function takesItems({ host, lanes }: WorkerProcess, machine?: string): boolean {
  return ITEM_LANES.some((lane) => lanes.includes(lane)) && (machine === undefined || host === machine);
}
