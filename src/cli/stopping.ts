/** What somebody wants who presses Ctrl-C once, and then again. The third time ends the process as usual. */
export interface Stopping {
  /** The first: come to an end. */
  readonly soon: AbortSignal;
  /** The second: end without finishing what runs. */
  readonly now: AbortSignal;
  /** Listens no longer. */
  end(): void;
}

export function stopOnSignals(): Stopping {
  const soon = new AbortController();
  const now = new AbortController();
  const onSignal = () => {
    if (!soon.signal.aborted) return soon.abort();
    end();
    now.abort();
  };
  const end = () => {
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
  };
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  return { soon: soon.signal, now: now.signal, end };
}

export function sayStopping(graceMs: number): string {
  return `Stopping: what runs may finish, for up to ${graceMs / 1000} s. Ctrl-C again does not wait for it.`;
}
