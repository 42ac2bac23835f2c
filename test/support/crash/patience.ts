import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { isQuarryError } from "../../../src/index.ts";

export const STALLED_MS = 30_000;
export const POLL_MS = 20;

/** Polls, with a bound: what never comes must not keep the test file running after its time limit. */
export async function eventually(
  isSo: () => boolean | Promise<boolean>,
  complaint: () => string,
): Promise<void> {
  const giveUpAt = performance.now() + STALLED_MS;
  while (!(await isSo())) {
    if (performance.now() > giveUpAt) assert.fail(complaint());
    await sleep(5);
  }
}

/** The harness asks the same database that the faults hit; it only has to wait until it is back. */
export async function steadily<T>(work: () => Promise<T>): Promise<T> {
  const giveUpAt = performance.now() + STALLED_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const isAway = isQuarryError(error, "database_unavailable", "commit_unknown");
      if (!isAway || performance.now() > giveUpAt) throw error;
      await sleep(POLL_MS);
    }
  }
}
