import { isQuarryError, messageOf } from "./errors.ts";
import type { Task } from "./queue/held.ts";
import type { MaybeOutcome } from "./queue/lane.ts";
import { failed, type Outcome, released, retry } from "./queue/outcome.ts";

/** Trying again does not mend the file or the text. */
const PERMANENT = [
  "not_found",
  "file_unreadable",
  "file_unsupported",
  "file_too_large",
  "file_encrypted",
  "invalid_input",
] as const;

/** No fault of the task's, and over some time: it costs no attempt. */
const OUTAGE = [
  "model_unavailable",
  "disk_full",
  "database_unavailable",
  "redis_unavailable",
  "store_unavailable",
] as const;
const OUTAGE_PAUSE_MS = 15_000;

export function isOutage(error: unknown): boolean {
  return isQuarryError(error, ...OUTAGE);
}

/** What can never succeed is not tried again. A task that was told to stop leaves the answer to the engine. */
export async function attempt(
  task: Task<object>,
  work: () => Promise<MaybeOutcome>,
  what = "",
): Promise<MaybeOutcome> {
  try {
    return await work();
  } catch (error) {
    if (task.signal.aborted) throw error;
    return outcomeOf(error, what);
  }
}

/**
 * Works on tasks together. When that fails, on each half alone: one text that a model refuses must not fail its
 * neighbours, and a batch that is too large for a service must not be sent again as it was.
 */
export async function inHalves<Payload extends object>(
  tasks: readonly Task<Payload>[],
  work: (tasks: readonly Task<Payload>[], signal: AbortSignal) => Promise<readonly Outcome[]>,
): Promise<readonly Outcome[]> {
  const signal = whenAllAborted(tasks);
  try {
    return await work(tasks, signal);
  } catch (error) {
    if (signal.aborted) throw error;
    if (tasks.length === 1 || isOutage(error)) return tasks.map(() => outcomeOf(error));
    const middle = Math.ceil(tasks.length / 2);
    return [
      ...(await inHalves(tasks.slice(0, middle), work)),
      ...(await inHalves(tasks.slice(middle), work)),
    ];
  }
}

/** What an error means for the task that met it. */
export function outcomeOf(error: unknown, what = ""): Outcome {
  const reason = what === "" ? messageOf(error) : `${what}: ${messageOf(error)}`;
  if (isOutage(error)) return untilBack(error);
  return isQuarryError(error, ...PERMANENT) ? failed(reason) : retry(reason);
}

/** A lane says what its tasks wait for, unless that is what rows are kept in: it meets that itself. */
export function untilBack(outage: unknown): Outcome {
  const isStore = isQuarryError(outage, "database_unavailable", "redis_unavailable", "commit_unknown");
  return released(OUTAGE_PAUSE_MS, isStore ? undefined : messageOf(outage));
}

/** Work that tasks share ends when none of them is wanted any more. */
function whenAllAborted(tasks: readonly Task<object>[]): AbortSignal {
  const controller = new AbortController();
  let wanted = tasks.length;
  const onAbort = (reason: unknown) => {
    if (--wanted === 0) controller.abort(reason);
  };
  for (const { signal } of tasks) {
    if (signal.aborted) onAbort(signal.reason);
    else signal.addEventListener("abort", () => onAbort(signal.reason), { once: true });
  }
  return controller.signal;
}
