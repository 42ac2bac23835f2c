/** Work that others in this process are at already is waited for instead of being done again. */
export class InFlight<T> {
  readonly #running = new Map<string, Promise<T>>();

  /** `make` is given the keys that nobody is at, and answers for all of them. */
  async many(
    keys: Iterable<string>,
    make: (missing: readonly string[]) => Promise<ReadonlyMap<string, T>>,
  ): Promise<Map<string, T>> {
    const wanted = [...new Set(keys)];
    const mine = wanted.filter((key) => !this.#running.has(key));
    if (mine.length > 0) {
      const made = make(mine);
      for (const key of mine) {
        const one = made.then((results) => results.get(key)!);
        // Whoever waits hears of the failure; if nobody does, it is no unhandled one.
        one.catch(() => undefined);
        this.#running.set(key, one);
      }
    }
    try {
      const pairs = wanted.map(async (key) => [key, await this.#running.get(key)!] as const);
      return new Map(await Promise.all(pairs));
    } finally {
      for (const key of mine) this.#running.delete(key);
    }
  }
}
