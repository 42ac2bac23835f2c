import type { Counts, Progress } from "../documents/progress.ts";
import { bar } from "./output.ts";

const PHASES = [
  { key: "ocr", name: "OCR", unit: "pages" },
  { key: "vector", name: "Vector", unit: "chunks" },
  { key: "graphrag", name: "GraphRAG", unit: "chunks" },
] as const;
type PhaseKey = (typeof PHASES)[number]["key"];

/** The rate is that of the last while; one long page must not make it jump. */
const WINDOW_MS = 30_000;
const RATE_AFTER_MS = 500;
/** Pages that bring their text fly past and scans take seconds each: before this, and while the pace changes, no time is foretold. */
const FORETOLD_AFTER_MS = 8_000;
const PACE_CHANGES_BY = 2;

/** What the plus sign behind a total means, for the help of commands that show it. */
export const PLUS_MEANS = "A + behind a total means that more may come: not every file has been opened yet.";

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
      const isKnown = progress.unsplit === 0 && (key === "ocr" || leftOf(progress.ocr) === 0);
      const parts = [
        ...(options.isWide ? [name.padEnd(8), bar(completed + failed, total, 24)] : [name]),
        total === 0 && !isKnown ? "waiting" : `${completed}/${total}${isKnown ? "" : "+"} ${unit}`,
        ...(failed > 0 ? [`${failed} failed`] : []),
        ...(leftOf(progress[key]) > 0 ? this.#pace(key, isKnown) : []),
      ];
      return parts.join("  ");
    }).join("\n");
  }

  #pace(key: PhaseKey, isKnown: boolean): string[] {
    const first = this.#seen[0]!;
    const last = this.#seen.at(-1)!;
    const rate = this.#rate(key, first, last);
    if (last.atMs - first.atMs < RATE_AFTER_MS || rate === 0) return [];
    const isForetold = isKnown && this.#isSteady(key);
    const left = isForetold ? [`${clockTime(leftOf(last.progress[key]) / rate)} left`] : [];
    return [`${rate.toFixed(1)}/s`, ...left];
  }

  #isSteady(key: PhaseKey): boolean {
    const first = this.#seen[0]!;
    const last = this.#seen.at(-1)!;
    if (last.atMs - first.atMs < FORETOLD_AFTER_MS) return false;
    const middle = this.#seen.find(({ atMs }) => atMs >= (first.atMs + last.atMs) / 2)!;
    const halves = [this.#rate(key, first, middle), this.#rate(key, middle, last)];
    return Math.max(...halves) <= PACE_CHANGES_BY * Math.min(...halves);
  }

  #rate(key: PhaseKey, from: { atMs: number; progress: Progress }, to: typeof from): number {
    const made = endedOf(to.progress[key]) - endedOf(from.progress[key]);
    return to.atMs > from.atMs ? Math.max(0, made / ((to.atMs - from.atMs) / 1000)) : 0;
  }
}

function endedOf({ completed, failed }: Counts): number {
  return completed + failed;
}

function leftOf(counts: Counts): number {
  return counts.total - endedOf(counts);
}

function clockTime(seconds: number): string {
  const whole = Math.ceil(seconds);
  const minutes = Math.floor(whole / 60);
  return `${minutes}:${String(whole % 60).padStart(2, "0")}`;
}
