import type { Database } from "../database/database.ts";
import type { LaneStore, PruneOptions } from "../queue/lane-store.ts";
import { altered } from "../queue/lane-store.ts";
import type { FunctionTaskPayload } from "./queue.ts";

const ENTITIES_MAX = 500;

/** The tasks' store, whose janitor also deletes the planners and workers that have none left. */
export function alsoForgetting(
  store: LaneStore<FunctionTaskPayload>,
  database: Database,
): LaneStore<FunctionTaskPayload> {
  const prune = async (options: PruneOptions) =>
    (await store.prune(options)) + (await forgetEntities(database, options));
  return altered(store, { prune });
}

/**
 * Deletes planners, with their workers, and workers of no plan that are over for so long and have no task left, be it
 * one that is kept or one that waits: an entity in use never goes. Returns how many.
 */
export async function forgetEntities(
  database: Database,
  { doneOlderThanMs, failedOlderThanMs, limit = ENTITIES_MAX }: PruneOptions,
): Promise<number> {
  const ages = [
    ["COMPLETED", doneOlderThanMs],
    ["FAILED", failedOlderThanMs],
  ] as const;
  let forgotten = 0;
  for (const [status, ageMs] of ages) {
    if (ageMs === undefined) continue;
    for (const { name, sql } of statements(database, status))
      forgotten += (await database.query({ name, sql }, [database.now(), ageMs, limit])).length;
  }
  return forgotten;
}

/** $1 now, $2 age in milliseconds, $3 how many at most. Who was put back into line meanwhile is looked at again. */
function statements({ dialect }: Database, status: "COMPLETED" | "FAILED"): { name: string; sql: string }[] {
  const { now, param, shift } = dialect;
  const before = shift(now, `-${param(2, "real")}`);
  const isOver = `status = '${status}' and updated_at < ${before}`;
  const limited = `order by updated_at limit ${param(3, "integer")}${dialect.name === "postgres" ? " for update skip locked" : ""}`;
  const hasTask = (type: string, id: string) =>
    `exists (select 1 from task_queue where entity_type = '${type}' and entity_id = ${id})`;
  const workerHasTask = `exists (select 1 from workers as w where w.planner_id = p.planner_id and ${hasTask("worker", "w.worker_id")})`;
  return [
    {
      name: `planners.forget.${status}`,
      sql: `delete from planners where planner_id in (select planner_id from planners as p where ${isOver} and not ${hasTask("planner", "p.planner_id")} and not ${workerHasTask} ${limited}) returning planner_id`,
    },
    {
      name: `workers.forget.${status}`,
      sql: `delete from workers where worker_id in (select worker_id from workers as w where planner_id is null and ${isOver} and not ${hasTask("worker", "w.worker_id")} ${limited}) returning worker_id`,
    },
  ];
}
