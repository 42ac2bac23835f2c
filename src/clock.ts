/** The only file that reads the time. Everything else is handed a clock. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds that only ever rise; for measuring how long something took. */
  monotonic(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};

/** A clock that stands still until it is moved. Both readings move together. */
export function manualClock(startMs = Date.UTC(2026, 0, 1)): Clock & { advance(ms: number): void } {
  let nowMs = startMs;
  return {
    now: () => nowMs,
    monotonic: () => nowMs - startMs,
    advance: (ms) => {
      nowMs += ms;
    },
  };
}

export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** Resolves after `ms`, or at once when the signal aborts. Never rejects. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done, { once: true });
  });
}

/** Waits for `work`, but no longer than `ms`; what is left of the time keeps no process alive. */
export async function atMost(ms: number, work: Promise<unknown> | undefined): Promise<void> {
  const over = new AbortController();
  await Promise.race([work, pause(ms, over.signal)]).finally(() => over.abort());
}
