/** Calls `work` for each, a few at once. */
export async function eachOf<T>(
  all: readonly T[],
  atOnce: number,
  work: (one: T) => Promise<void>,
): Promise<void> {
  const left = all.values();
  const worker = async () => {
    for (const one of left) await work(one);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

export interface BatchesOptions<T> {
  readonly size: number;
  readonly atOnce: number;
  readonly work: (batch: readonly T[]) => Promise<void>;
}

/** Gathers what comes in until there is enough for a batch. Whoever adds waits while all hands are busy. */
export class Batches<T> {
  readonly #options: BatchesOptions<T>;
  readonly #running = new Set<Promise<void>>();
  #waiting: T[] = [];

  constructor(options: BatchesOptions<T>) {
    this.#options = options;
  }

  async add(some: readonly T[]): Promise<void> {
    this.#waiting.push(...some);
    while (this.#waiting.length >= this.#options.size) await this.#start();
  }

  async end(): Promise<void> {
    while (this.#waiting.length > 0) await this.#start();
    await Promise.all(this.#running);
  }

  async #start(): Promise<void> {
    while (this.#running.size >= this.#options.atOnce) await Promise.race(this.#running);
    const batch = this.#waiting.splice(0, this.#options.size);
    if (batch.length === 0) return;
    const run = this.#options.work(batch).finally(() => this.#running.delete(run));
    this.#running.add(run);
  }
}
