import { constants } from "node:fs";
import { access, lstat } from "node:fs/promises";
import { QuarryError } from "../errors.ts";
import type { WorkerProcesses } from "../queue/worker-processes.ts";
import type { Job } from "./handle.ts";

/** The machine that this is, and what is known of the others. */
export interface Machines {
  readonly host: string;
  readonly workers: Pick<WorkerProcesses, "list">;
  /** Names of the lanes that take items. */
  readonly lanes: readonly string[];
}

/**
 * A path means something on the machine where somebody put it into line. A file that can be seen from here too, on a
 * folder that machines share, is taken in here; one that cannot is not gone for that. What is missing from a folder
 * only that machine can say.
 */
export async function leaveToOthers(machines: Machines, job: Job): Promise<void> {
  const { payload, op } = job;
  const { host } = machines;
  const seenOn = payload.seen_on as string | undefined;
  if (seenOn === undefined || seenOn === host) return;
  const path = pathOf(payload);
  if (path === undefined || (op === "delete" && payload.as_found !== true)) return;
  const isHere = await (payload.file_path === undefined ? isThere(path) : isReadable(path));
  if (isHere && payload.file_path !== undefined) return;
  if (await hasWorkers(machines, seenOn))
    throw new QuarryError("store_unavailable", `${path} is left to the workers on ${seenOn}`);
  if (isHere) return;
  throw new QuarryError(
    "not_found",
    `${path} was put into line on ${seenOn} and is not here, on ${host}: run "quarry worker --lanes ${machines.lanes.join(",")}" there, or put it where both can see it`,
  );
}

function pathOf(payload: Job["payload"]): string | undefined {
  const path = payload.file_path ?? payload.folder_path ?? payload.project_root ?? payload.source_path;
  return path as string | undefined;
}

/** Those that are silent may come back. */
async function hasWorkers({ workers, lanes }: Machines, host: string): Promise<boolean> {
  const known = await workers.list(["active", "stale"]);
  return known.some((worker) => worker.host === host && worker.lanes.some((lane) => lanes.includes(lane)));
}

/** As a file: a link or a folder of that name is something else. */
async function isReadable(path: string): Promise<boolean> {
  const info = await lstat(path).catch(() => undefined);
  if (!info?.isFile()) return false;
  return access(path, constants.R_OK).then(
    () => true,
    () => false,
  );
}

/** What cannot be looked at may be there. */
function isThere(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== "ENOENT" && error.code !== "ENOTDIR",
  );
}
