import type { ChunkCounts } from "../documents/searchable.ts";
import type { JobReport } from "./queue.ts";

/** Writes how far a job is, as it grows: one report at a time, and the newest figures when it is done. */
export class JobProgress {
  readonly #report: (fields: JobReport) => Promise<boolean>;
  #latest: ChunkCounts | undefined;
  #last = "";
  #writing: Promise<void> | undefined;

  constructor(report: (fields: JobReport) => Promise<boolean>) {
    this.#report = report;
  }

  told(counts: ChunkCounts): void {
    this.#latest = counts;
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  /** Resolves when what was told is written. */
  async written(): Promise<void> {
    await this.#writing;
  }

  async #write(): Promise<void> {
    while (this.#latest) {
      const { chunks, embedded, tokens } = this.#latest;
      this.#latest = undefined;
      const now = `${chunks} ${embedded} ${tokens}`;
      if (now === this.#last) return;
      this.#last = now;
      // Figures are not worth a failure: the next ones are told in a moment.
      await this.#report({
        chunks_created: chunks,
        embeddings_generated: embedded,
        tokens_used: tokens,
      }).catch(() => undefined);
    }
  }
}
