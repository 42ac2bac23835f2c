import { type Clock, isoTime } from "../clock.ts";
import type { Log } from "../log.ts";
import { Outage } from "./outage.ts";
import type { Outcome } from "./outcome.ts";

/** A lane whose tasks need something that is away. */
export interface LaneWait {
  readonly lane: string;
  readonly reason: string;
  readonly since: string;
}

/** What waits looks again more often than this. */
const WAIT_ENDS_AFTER_MS = 60_000;
const REASON_LENGTH_MAX = 500;

/** Learns from the outcomes of a lane's tasks whether they wait for what is away, and says when that begins and ends. */
export class WaitWatch {
  readonly #lane: string;
  readonly #clock: Clock;
  readonly #outage: Outage;
  readonly #onWait: () => void;
  #wait: (LaneWait & { metAt: number }) | undefined;

  constructor(lane: string, options: { clock: Clock; log: Log; onWait: () => void }) {
    this.#lane = lane;
    this.#clock = options.clock;
    this.#outage = new Outage(options);
    this.#onWait = options.onWait;
  }

  /** Of what nobody has met for long, nothing is known any more. */
  get wait(): LaneWait | undefined {
    if (this.#wait && this.#clock.monotonic() - this.#wait.metAt > WAIT_ENDS_AFTER_MS) this.#goOn();
    if (!this.#wait) return undefined;
    const { metAt: _, ...wait } = this.#wait;
    return wait;
  }

  /** Whatever began before the last task that had to wait says nothing about now. */
  heed(outcome: Outcome, startedAt: number): void {
    if (outcome.kind !== "released") {
      if (this.#wait && startedAt > this.#wait.metAt) this.#goOn();
      return;
    }
    if (outcome.reason === undefined) return;
    const reason = outcome.reason.slice(0, REASON_LENGTH_MAX);
    const before = this.#wait;
    const since = before?.since ?? isoTime(this.#clock.now());
    this.#wait = { lane: this.#lane, reason, since, metAt: this.#clock.monotonic() };
    if (before?.reason === reason) return;
    this.#outage.meet({ queue: this.#lane, error: reason }, "waits for what is away");
    this.#onWait();
  }

  #goOn(): void {
    this.#wait = undefined;
    this.#outage.pass({ queue: this.#lane }, "waits no longer");
    this.#onWait();
  }
}
