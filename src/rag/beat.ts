import type { LaneListeners } from "../queue/lane-store.ts";

/** Connected means heard within five seconds, so this is often enough to miss one. */
const EVERY_MS = 2_000;

/** Says every two seconds that the workers of this process live, from their first claim until their lanes stop. */
export class Beat {
  readonly #say: (worker: string) => Promise<unknown>;
  readonly #workers = new Set<string>();
  readonly #lanes = new Set<LaneListeners>();
  #timer: NodeJS.Timeout | undefined;

  constructor(say: (worker: string) => Promise<unknown>) {
    this.#say = say;
  }

  heard(worker: string): void {
    if (this.#workers.has(worker)) return;
    this.#workers.add(worker);
    this.#beat();
    if (this.#lanes.size > 0) this.#timer ??= setInterval(() => this.#beat(), EVERY_MS).unref();
  }

  add(lane: LaneListeners): void {
    this.#lanes.add(lane);
  }

  delete(lane: LaneListeners): void {
    this.#lanes.delete(lane);
    if (this.#lanes.size === 0) this.stop();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#workers.clear();
  }

  #beat(): void {
    // Whoever cannot be told will see that nothing is heard.
    for (const worker of this.#workers) void this.#say(worker).catch(() => undefined);
  }
}
