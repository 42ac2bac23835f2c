/** Listeners by topic, called in the process that subscribed. */
export class Topics {
  readonly #listeners = new Map<string, Set<() => void>>();

  get isEmpty(): boolean {
    return this.#listeners.size === 0;
  }

  add(topic: string, listener: () => void): () => void {
    const listeners = this.#listeners.get(topic) ?? new Set();
    this.#listeners.set(topic, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(topic);
    };
  }

  fire(topic: string): void {
    for (const listener of this.#listeners.get(topic) ?? []) listener();
  }

  fireAll(): void {
    for (const topic of this.#listeners.keys()) this.fire(topic);
  }
}
