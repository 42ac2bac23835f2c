/** How long a row waits after its nth failed attempt (1 for the first). */
export interface RetryPolicy {
  delayMs(attempt: number, random: () => number): number;
}

/** 5 s, then 10 s, then 30 s …; the last one repeats. */
export function fixedDelays(...delaysMs: readonly number[]): RetryPolicy {
  return { delayMs: (attempt) => delaysMs[Math.min(attempt, delaysMs.length) - 1] ?? 0 };
}

/** `baseMs`, doubled with every attempt, never more than `capMs`. */
export function exponential(options: {
  baseMs: number;
  capMs: number;
  factor?: number;
  /** The share of the delay that is left to chance, so that rows that failed together do not return together. */
  jitter?: number;
}): RetryPolicy {
  const { baseMs, capMs, factor = 2, jitter = 0.1 } = options;
  return {
    delayMs: (attempt, random) => {
      const delayMs = Math.min(capMs, baseMs * factor ** Math.max(0, attempt - 1));
      return Math.round(delayMs * (1 - jitter * random()));
    },
  };
}

export const immediately: RetryPolicy = { delayMs: () => 0 };
