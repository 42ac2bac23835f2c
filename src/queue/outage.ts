import type { Clock } from "../clock.ts";
import { type ErrorCode, isQuarryError, messageOf } from "../errors.ts";
import type { Log } from "../log.ts";

const SAID_EVERY_MS = 60_000;

interface OutageSettings {
  readonly log: Log;
  readonly clock: Clock;
}

/** Something is away: said when it begins, then at most once a minute, and when it is over. Each time is for who debugs. */
export class Outage {
  readonly #settings: OutageSettings;
  #saidAt = Number.NEGATIVE_INFINITY;
  #isSaid = false;
  #isOn = false;

  constructor(settings: OutageSettings) {
    this.#settings = settings;
  }

  get isOn(): boolean {
    return this.#isOn;
  }

  meet(fields: object, message: string): void {
    const { log, clock } = this.#settings;
    const isDue = clock.monotonic() - this.#saidAt >= SAID_EVERY_MS;
    if (isDue) this.#saidAt = clock.monotonic();
    log[isDue ? "warn" : "debug"](fields, message);
    this.#isSaid ||= isDue;
    this.#isOn = true;
  }

  /** At the same level as what it ends: whoever read of the one wants to read of the other. */
  pass(fields: object, message: string): void {
    if (!this.#isOn) return;
    this.#settings.log[this.#isSaid ? "warn" : "debug"](fields, message);
    this.#isSaid = false;
    this.#isOn = false;
  }
}

interface Store {
  readonly name: string;
  readonly codes: readonly ErrorCode[];
  readonly outage: Outage;
  /** Those that have met it. */
  readonly queues: Set<string>;
}

/** Of what rows are kept in. When that is away, every lane of a process meets it again and again; it is one outage. */
export class StoreOutages {
  readonly #log: Log;
  readonly #stores: readonly Store[];

  constructor(settings: OutageSettings) {
    this.#log = settings.log;
    const store = (name: string, ...codes: ErrorCode[]): Store => ({
      ...{ name, codes, outage: new Outage(settings), queues: new Set() },
    });
    this.#stores = [
      store("the database", "database_unavailable", "commit_unknown"),
      store("Redis", "redis_unavailable"),
    ];
  }

  /** Says what failed, unless that is one more sign of the same outage. */
  meet(error: unknown, fields: { readonly queue?: string }, message: string): void {
    const store = this.#stores.find(({ codes }) => isQuarryError(error, ...codes));
    this.#log[store ? "debug" : "warn"]({ ...fields, error: messageOf(error) }, message);
    if (!store) return;
    if (fields.queue !== undefined) store.queues.add(fields.queue);
    store.outage.meet({ error: messageOf(error) }, `${store.name} is away: work waits until it is back`);
  }

  /** A queue could be reached. */
  pass(queue: string): void {
    for (const { name, outage, queues } of this.#stores) {
      if (!outage.isOn || (queues.size > 0 && !queues.has(queue))) continue;
      queues.clear();
      outage.pass({}, `${name} is back: work goes on`);
    }
  }
}
