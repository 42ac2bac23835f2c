import { pause } from "../clock.ts";
import type { Database } from "../database/database.ts";
import { type Log, silentLog } from "../log.ts";
import type { Queue } from "./declaration.ts";
import type { LaneStore } from "./lane-store.ts";
import { StoreOutages } from "./outage.ts";
import { openQueue } from "./store.ts";

export interface JanitorSettings {
  readonly database: Database;
  readonly queues: readonly Tended[];
  readonly everyMs?: number;
  readonly log?: Log;
  /** Those of the process; its own, unless said. */
  readonly outages?: StoreOutages;
}

/** A queue over a table, or the store of one that is kept elsewhere. */
export type Tended = Queue | LaneStore<object>;

export function openTended(database: Database, tended: Tended): LaneStore<object> {
  return "claim" in tended ? tended : openQueue<object>(database, tended);
}

export interface Sweep {
  readonly rescued: number;
  readonly failed: number;
  readonly promoted: number;
  readonly pruned: number;
  readonly mended: number;
}

const EVERY_DEFAULT_MS = 15_000;
const SWEEP_LIMIT = 500;
/** A sweep works in bounded steps and leaves the rest to the next one. */
const STEPS_MAX = 200;

/**
 * Puts right what workers left behind: releases rows of silent workers, promotes delayed rows, deletes old
 * finished ones, re-derives parents and passes stranded turns. Every process may run one: each step takes only
 * rows that nobody else holds and repeats its condition when it writes.
 */
export class Janitor {
  readonly #stores: readonly LaneStore<object>[];
  readonly #everyMs: number;
  readonly #log: Log;
  readonly #outages: StoreOutages;
  readonly #stopping = new AbortController();
  #loop: Promise<void> | undefined;

  constructor(settings: JanitorSettings) {
    this.#stores = settings.queues.map((queue) => openTended(settings.database, queue));
    this.#everyMs = settings.everyMs ?? EVERY_DEFAULT_MS;
    this.#log = settings.log ?? silentLog;
    this.#outages = settings.outages ?? new StoreOutages({ log: this.#log, clock: settings.database.clock });
  }

  start(): this {
    this.#loop ??= this.#run();
    return this;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
  }

  async sweep(): Promise<Sweep> {
    const total = { rescued: 0, failed: 0, promoted: 0, pruned: 0, mended: 0 };
    for (const store of this.#stores) {
      // One queue that cannot be swept must not keep the others' rows from being rescued.
      const queue = store.queue.name;
      await this.#sweepQueue(store, total).then(
        () => this.#outages.pass(queue),
        (error) => this.#outages.meet(error, { queue }, "the janitor's sweep failed"),
      );
    }
    return total;
  }

  async #sweepQueue(
    store: LaneStore<object>,
    total: { -readonly [K in keyof Sweep]: number },
  ): Promise<void> {
    await this.#inSteps(async () => {
      const rescued = await store.rescueStale({ limit: SWEEP_LIMIT });
      total.rescued += rescued.length;
      total.failed += rescued.filter((row) => row.isFailed).length;
      return rescued.length;
    });
    await this.#inSteps(async () => {
      const promoted = await store.promoteDelayed({ limit: SWEEP_LIMIT });
      total.promoted += promoted;
      return promoted;
    });
    total.pruned += await this.#prune(store);
    total.mended += await store.repair({ limit: SWEEP_LIMIT });
  }

  async #prune(store: LaneStore<object>): Promise<number> {
    const { retention } = store.queue;
    let pruned = 0;
    const ages = [
      retention?.doneMs === undefined ? undefined : { doneOlderThanMs: retention.doneMs },
      retention?.failedMs === undefined ? undefined : { failedOlderThanMs: retention.failedMs },
    ];
    for (const age of ages) {
      if (!age) continue;
      await this.#inSteps(async () => {
        const count = await store.prune({ ...age, limit: SWEEP_LIMIT });
        pruned += count;
        return count;
      });
    }
    return pruned;
  }

  async #inSteps(step: () => Promise<number>): Promise<void> {
    for (let round = 0; round < STEPS_MAX && !this.#stopping.signal.aborted; round++) {
      if ((await step()) < SWEEP_LIMIT) return;
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const sweep = await this.sweep();
      if (sweep.rescued + sweep.mended > 0) this.#log.info(sweep, "janitor mended rows");
      // Not all processes at the same moment.
      await pause(this.#everyMs * (0.8 + 0.4 * Math.random()), signal);
    }
  }
}

export function createJanitor(settings: JanitorSettings): Janitor {
  return new Janitor(settings);
}
