import type { Clock } from "../clock.ts";
import { messageOf, QuarryError } from "../errors.ts";
import type { Log } from "../log.ts";
import type { Held } from "./held.ts";
import type { LaneStore } from "./lane-store.ts";
import type { StoreOutages } from "./outage.ts";
import type { Key } from "./roll-up.ts";

const RENEWED_AT_ONCE_MAX = 1_000;
const LOOK_EVERY_MS = 200;

interface LeaseSettings {
  readonly store: LaneStore<object>;
  readonly clock: Clock;
  readonly log: Log;
  readonly outages: StoreOutages;
  /** The claim is not ours any more; its handler was told. */
  readonly onLost: (held: Held, wasWaiting: boolean) => void;
}

/** Every claim that a lane answers for, until its settlement is written, and what keeps it ours. */
export class Leases {
  readonly #held = new Map<Key, Held>();
  readonly #settings: LeaseSettings;
  #lookTimer: NodeJS.Timeout | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(settings: LeaseSettings) {
    this.#settings = settings;
  }

  get size(): number {
    return this.#held.size;
  }

  get all(): Held[] {
    return [...this.#held.values()];
  }

  add(held: Held): void {
    this.#held.set(held.key, held);
  }

  /** A newer claim of the same row may stand in its place; that one stays. */
  forget(held: Held): void {
    if (this.#held.get(held.key) === held) this.#held.delete(held.key);
  }

  abortAll(reason: string): void {
    for (const held of this.all) held.abort(new QuarryError("shutting_down", reason));
  }

  /** Renews all of them, in one statement, and drops those that did not come back. */
  async renew(): Promise<void> {
    const { clock, store, outages } = this.#settings;
    const ours = this.all.filter((held) => held.state !== "lost");
    for (let start = 0; start < ours.length; start += RENEWED_AT_ONCE_MAX) {
      const some = ours.slice(start, start + RENEWED_AT_ONCE_MAX);
      const askedAt = clock.monotonic();
      try {
        const kept = await store.extend(some);
        for (const held of some) {
          if (kept.has(held.key)) held.leaseEndsAt = askedAt + store.queue.lease.ms;
          else this.#lose(held);
        }
      } catch (error) {
        outages.meet(error, { queue: store.queue.name }, "leases could not be renewed");
        this.dropExpired();
      }
    }
  }

  /** For when renewing does not come back: what is past its lease by our own clock is not ours any more. */
  dropExpired(): void {
    const now = this.#settings.clock.monotonic();
    for (const held of this.all) if (now >= held.leaseEndsAt) this.#lose(held);
  }

  /**
   * Drops what was cancelled or taken, without waiting for the next heartbeat. Only reads, and not too often: on
   * SQLite every commit of another process ends up here.
   */
  lookSoon(): void {
    if (this.#lookTimer || this.#held.size === 0) return;
    const { clock } = this.#settings;
    const waitMs = Math.max(0, this.#lookedAt + LOOK_EVERY_MS - clock.monotonic());
    this.#lookTimer = setTimeout(() => {
      this.#lookTimer = undefined;
      this.#lookedAt = clock.monotonic();
      void this.#look();
    }, waitMs);
  }

  stopLooking(): void {
    clearTimeout(this.#lookTimer);
  }

  async #look(): Promise<void> {
    const { store, log } = this.#settings;
    const ours = this.all.filter((held) => held.state !== "lost");
    try {
      const kept = await store.stillHeld(ours);
      for (const held of ours) if (!kept.has(held.key)) this.#lose(held);
    } catch (error) {
      log.debug({ queue: store.queue.name, error: messageOf(error) }, "claims could not be looked at");
    }
  }

  /** A claim that is being settled is not lost: its settlement may have been what ended the lease. */
  #lose(held: Held): void {
    if (this.#held.get(held.key) !== held || held.state === "settling" || held.state === "lost") return;
    const wasWaiting = held.state === "waiting";
    held.state = "lost";
    held.abort(
      new QuarryError("lease_lost", `${this.#settings.store.queue.name} ${held.key}: the lease was lost`),
    );
    this.#settings.onLost(held, wasWaiting);
  }
}
