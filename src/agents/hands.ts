import type { Crew } from "../queue/crew.ts";

/**
 * The lane of tasks for the time that somebody in this process waits for an answer: one for all who wait, since a lane
 * takes whatever is next, and whoever has an answer first must not stop what runs for the others.
 */
export class Hands {
  readonly #work: () => Promise<Crew>;
  #crew: Promise<Crew> | undefined;
  #users = 0;

  constructor(work: () => Promise<Crew>) {
    this.#work = work;
  }

  get areAtIt(): boolean {
    return this.#crew !== undefined;
  }

  async join(): Promise<void> {
    this.#crew ??= this.#work();
    const crew = this.#crew;
    this.#users++;
    try {
      await crew;
    } catch (error) {
      if (this.#crew === crew) this.#crew = undefined;
      this.#users--;
      throw error;
    }
  }

  /** The last one to leave stops the work; in a hurry without waiting for what runs. */
  async leave({ isHurried }: { isHurried: boolean }): Promise<void> {
    if (--this.#users > 0) return;
    const crew = await this.#take();
    if (isHurried) await crew?.worker.hurry();
    await crew?.stop();
  }

  async close(): Promise<void> {
    await (await this.#take())?.stop();
  }

  /** Whoever asks from now on needs new ones. */
  #take(): Promise<Crew> | undefined {
    const crew = this.#crew;
    this.#crew = undefined;
    return crew;
  }
}
