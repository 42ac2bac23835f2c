import type { Counts, Progress } from "../documents/progress.ts";
import { bar } from "./output.ts";

const PHASES = [
  { key: "ocr", name: "OCR", unit: "pages" },
  { key: "vector", name: "Vector", unit: "chunks" },
  { key: "graphrag", name: "GraphRAG", unit: "chunks" },
] as const;
/** The rate is that of the last while; one long page must not make it jump. */
const WINDOW_MS = 15_000;

/** Turns counts into bars with rate and time left. */
export class ProgressBars {
  readonly #monotonic: () => number;
  readonly #seen: { atMs: number; progress: Progress }[] = [];

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  lines(progress: Progress, options: { isWide: boolean }): string {
    const atMs = this.#monotonic();
    this.#seen.push({ atMs, progress });
    while (this.#seen.length > 2 && atMs - this.#seen[0]!.atMs > WINDOW_MS) this.#seen.shift();
    return PHASES.map(({ key, name, unit }) => {
      const { total, completed, failed } = progress[key];
      // While documents are still being split, nobody knows how much there is.
      const isKnown = progress.unsplit === 0 && (key === "ocr" || isOver(progress.ocr));
      const parts = [
        name.padEnd(8),
        ...(options.isWide ? [bar(completed + failed, total, 24)] : []),
        `${completed}/${total}${isKnown ? "" : "+"} ${unit}`,
        ...(failed > 0 ? [`${failed} failed`] : []),
        ...this.#pace(key, progress[key], isKnown),
      ];
      return parts.join("  ");
    }).join("\n");
  }

  #pace(key: "ocr" | "vector" | "graphrag", counts: Counts, isKnown: boolean): string[] {
    const first = this.#seen[0]!;
    const last = this.#seen.at(-1)!;
    const seconds = (last.atMs - first.atMs) / 1000;
    const made = counts.completed - first.progress[key].completed;
    if (seconds < 0.5 || made <= 0) return [];
    const rate = made / seconds;
    const left = counts.total - counts.completed - counts.failed;
    return [`${rate.toFixed(1)}/s`, ...(isKnown && left > 0 ? [`${clockTime(left / rate)} left`] : [])];
  }
}

function isOver({ total, completed, failed }: Counts): boolean {
  return completed + failed >= total;
}

function clockTime(seconds: number): string {
  const whole = Math.ceil(seconds);
  const minutes = Math.floor(whole / 60);
  return `${minutes}:${String(whole % 60).padStart(2, "0")}`;
}
