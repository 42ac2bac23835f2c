import { type Clock, isoTime, pause, systemClock } from "../clock.ts";
import type { Log } from "../log.ts";

/** For status pages. */
export interface ServicePause {
  /** Milliseconds since the epoch. */
  readonly untilMs: number;
  readonly reason: string;
}

/** How a service waits; tests hand in their own. */
export interface ServiceTime {
  readonly clock: Clock;
  /** Resolves after `ms`, or at once when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly random: () => number;
}

export const realTime: ServiceTime = { clock: systemClock, sleep: pause, random: Math.random };

const BUSY_MS_MIN = 1000;
const BUSY_MS_MAX = 60_000;
/** However long a service asks for. */
const ASKED_MS_MAX = 600_000;
const BUSY_JITTER = 0.25;
const LOST_MS_MIN = 500;
const LOST_MS_MAX = 15_000;
/** Beyond it every pause has its longest length. */
const DOUBLINGS_MAX = 16;

/**
 * What all who ask one service know of its troubles: when one of them is told to wait, or finds nobody there, all
 * wait. Pauses grow until the service answers.
 */
export class SharedPause {
  readonly #service: string;
  readonly #time: ServiceTime;
  readonly #log: Log | undefined;
  /** On the clock that only rises, as all times here. */
  #untilMs = Number.NEGATIVE_INFINITY;
  #reason = "";
  #pausesInRow = 0;
  #lostSinceMs: number | undefined;
  #answeredMs = Number.NEGATIVE_INFINITY;

  constructor(options: { service: string; time: ServiceTime; log: Log | undefined }) {
    this.#service = options.service;
    this.#time = options.time;
    this.#log = options.log;
  }

  get current(): ServicePause | undefined {
    const leftMs = this.#untilMs - this.#nowMs();
    if (leftMs <= 0) return undefined;
    return { untilMs: Math.ceil(this.#time.clock.now() + leftMs), reason: this.#reason };
  }

  /** Waits until the pause is over, however often it is made longer. Rejects with the signal's reason. */
  async over(signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted();
      const leftMs = this.#untilMs - this.#nowMs();
      if (leftMs <= 0) return;
      await this.#time.sleep(leftMs, signal);
    }
  }

  /** The service asks for time: as long as it says, or longer and longer when it does not say. */
  busy(reason: string, askedMs: number | undefined): void {
    this.#lostSinceMs = undefined;
    const isUnderWay = this.#count();
    const grownMs = doubled(BUSY_MS_MIN, BUSY_MS_MAX, this.#pausesInRow);
    const ms =
      askedMs === undefined
        ? grownMs * (1 + BUSY_JITTER * this.#time.random())
        : Math.min(Math.max(askedMs, BUSY_MS_MIN), ASKED_MS_MAX);
    this.#begin(reason, { ms, isUnderWay });
  }

  /** Nobody answers. `failures`: how often the one who says so has found that by now. */
  lost(reason: string, failures: number): void {
    this.#lostSinceMs ??= this.#nowMs();
    const isUnderWay = this.#count();
    const ms = doubled(LOST_MS_MIN, LOST_MS_MAX, Math.max(failures, this.#pausesInRow));
    this.#begin(reason, { ms, isUnderWay });
  }

  /** An answer to what was asked before the pause says nothing about now. */
  answered(askedAtMs: number): void {
    this.#answeredMs = this.#nowMs();
    if (askedAtMs < this.#untilMs) return;
    this.#lostSinceMs = undefined;
    this.#pausesInRow = 0;
  }

  hasAnsweredSince(ms: number): boolean {
    return this.#answeredMs > ms;
  }

  /** Why there is no point in waiting, when nobody has answered for `ms` and it is not yet time to look again. */
  lostFor(ms: number): string | undefined {
    const isLong = this.#lostSinceMs !== undefined && this.#nowMs() - this.#lostSinceMs >= ms;
    return isLong && this.current ? this.#reason : undefined;
  }

  /** Those who were on their way when a pause began do not make it a longer one. */
  #count(): boolean {
    const isUnderWay = this.current !== undefined;
    if (!isUnderWay) this.#pausesInRow++;
    return isUnderWay;
  }

  #begin(reason: string, { ms, isUnderWay }: { ms: number; isUnderWay: boolean }): void {
    this.#untilMs = Math.max(this.#untilMs, this.#nowMs() + ms);
    this.#reason = reason;
    if (isUnderWay) return;
    const until = isoTime(this.#time.clock.now() + ms);
    this.#log?.warn(
      { service: this.#service, pauseMs: Math.round(ms), until, reason },
      "a model service is given time",
    );
  }

  #nowMs(): number {
    return this.#time.clock.monotonic();
  }
}

function doubled(minMs: number, maxMs: number, count: number): number {
  return Math.min(minMs * 2 ** Math.min(count - 1, DOUBLINGS_MAX), maxMs);
}
