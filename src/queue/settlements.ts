import { pause } from "../clock.ts";
import { isQuarryError, messageOf, QuarryError } from "../errors.ts";
import type { Held } from "./held.ts";
import type { LaneStore } from "./lane-store.ts";
import type { StoreOutages } from "./outage.ts";
import type { Outcome, Settlement, Verdict } from "./outcome.ts";

const BATCH_MAX = 2_000;
const PAUSE_MAX_MS = 5_000;
const FAILURES_MAX = 10;

/** A settlement whose claim is still in a lane's hands. */
interface Finished extends Settlement {
  readonly claim: Held;
}

export interface Settled {
  readonly held: Held;
  readonly verdict: Verdict;
}

/**
 * Writes outcomes down, many in one statement: what finishes while one write is under way goes with the next.
 * When the database is away, outcomes are kept and written when it is back.
 */
export class Settlements {
  readonly verdicts: Record<Verdict, number> = { done: 0, retrying: 0, failed: 0, released: 0, lost: 0 };
  readonly #store: LaneStore<object>;
  readonly #outages: StoreOutages;
  readonly #onWriting: () => void;
  readonly #onSettled: (settled: readonly Settled[]) => void;
  readonly #stopping = new AbortController();
  #hurry = new AbortController();
  #finished: Finished[] = [];
  #inFlight = 0;
  #isWriting = false;
  #isAboutToWrite = false;

  constructor(options: {
    store: LaneStore<object>;
    outages: StoreOutages;
    /** What is asked of the database here shares a commit with what is about to be written, where commits are shared. */
    onWriting: () => void;
    onSettled: (settled: readonly Settled[]) => void;
  }) {
    this.#store = options.store;
    this.#outages = options.outages;
    this.#onWriting = options.onWriting;
    this.#onSettled = options.onSettled;
  }

  /** `onWriting` will be called in this turn of the event loop. */
  get isAboutToWrite(): boolean {
    return this.#isAboutToWrite;
  }

  get unwritten(): number {
    return this.#finished.length + this.#inFlight;
  }

  add(held: Held, outcome: Outcome): void {
    this.#finished.push({ claim: held, outcome });
    if (this.#isWriting) return;
    this.#isWriting = true;
    this.#isAboutToWrite = true;
    // Handlers that end in this turn of the event loop are written together.
    setImmediate(() => {
      this.#isAboutToWrite = false;
      this.#onWriting();
      void this.#writeAll();
    });
  }

  /** Ends a pause after an error, for one more try. */
  hurry(): void {
    this.#hurry.abort();
    this.#hurry = new AbortController();
  }

  stop(): void {
    this.#stopping.abort();
  }

  async #writeAll(): Promise<void> {
    while (this.#finished.length > 0 && !this.#stopping.signal.aborted) {
      const batch = this.#finished.splice(0, BATCH_MAX);
      this.#inFlight = batch.length;
      const verdicts = await this.#write(batch);
      this.#inFlight = 0;
      const settled = batch.map(({ claim }, index) => ({ held: claim, verdict: verdicts[index] ?? "lost" }));
      for (const { verdict } of settled) this.verdicts[verdict]++;
      this.#onSettled(settled);
    }
    this.#isWriting = false;
  }

  async #write(settlements: readonly Settlement[]): Promise<readonly Verdict[]> {
    for (let failures = 0; !this.#stopping.signal.aborted; failures++) {
      try {
        return await this.#store.settle(settlements, { isRepeat: failures > 0 });
      } catch (error) {
        const fields = { queue: this.#store.queue.name, count: settlements.length };
        this.#outages.meet(error, fields, "settling failed");
        const [only, ...others] = settlements;
        if (isAway(error) || (isUnclear(error) && failures < FAILURES_MAX)) await this.#wait(failures);
        else if (others.length > 0) return this.#writeApart(settlements);
        else return this.#writeRefused(only!, error);
      }
    }
    return [];
  }

  /** One outcome that the database refuses must not hold up the others. */
  async #writeApart(settlements: readonly Settlement[]): Promise<Verdict[]> {
    const verdicts: Verdict[] = [];
    for (const settlement of settlements) verdicts.push(...(await this.#write([settlement])));
    return verdicts;
  }

  /** It becomes that row's failure; an effect that threw is retried, as a handler that throws is. */
  async #writeRefused({ claim }: Settlement, error: unknown): Promise<Verdict[]> {
    const reason = `the outcome could not be written: ${messageOf(error)}`;
    const outcome: Outcome = { kind: error instanceof QuarryError ? "failed" : "retry", reason };
    return this.#store.settle([{ claim, outcome }], { isRepeat: true }).catch((): Verdict[] => ["lost"]);
  }

  async #wait(failures: number): Promise<void> {
    const signal = AbortSignal.any([this.#stopping.signal, this.#hurry.signal]);
    await pause(Math.min(PAUSE_MAX_MS, 50 * 2 ** failures) * (0.5 + Math.random()), signal);
  }
}

/** Comes back by itself. */
function isAway(error: unknown): boolean {
  return isQuarryError(
    error,
    "database_unavailable",
    "redis_unavailable",
    "commit_unknown",
    "disk_full",
    "timeout",
  );
}

/** A statement that timed out, a server that is read-only for a moment: worth some more tries. */
function isUnclear(error: unknown): boolean {
  return isQuarryError(error, "database_failed", "internal");
}
