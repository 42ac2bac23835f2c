import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

/** One line of a results file. */
export interface Figure {
  readonly measure: string;
  readonly unit: string;
  readonly quarry: number;
  readonly peer: string;
  readonly peerValue: number;
  /** How many times better Quarry is: higher is better, for times and growth too. */
  readonly ratio: number;
  /** The ratio to reach; null where a figure is only for information. */
  readonly goal: number | null;
  /** In what the two are not the same. */
  readonly note?: string;
}

export interface Comparison {
  readonly measure: string;
  readonly unit: string;
  readonly quarry: number;
  readonly peer: string;
  readonly peerValue: number;
  readonly goal: number | null;
  readonly note?: string;
}

/** A cost may grow by this much between the smallest and the largest size, and counts as flat. */
export const GROWTH_GOAL = rounded(1 / 1.3);

/** More is better: so many per second. */
export function compareRates(comparison: Comparison): Figure {
  return figure(comparison, comparison.quarry / comparison.peerValue);
}

/** Less is better: times, memory. */
export function compareTimes(comparison: Comparison): Figure {
  return figure(comparison, comparison.peerValue / comparison.quarry);
}

function figure(comparison: Comparison, ratio: number): Figure {
  const { measure, unit, quarry, peer, peerValue, goal, note } = comparison;
  return {
    measure,
    unit,
    quarry: rounded(quarry),
    peer,
    peerValue: rounded(peerValue),
    ratio: rounded(ratio),
    goal,
    ...(note !== undefined && { note }),
  };
}

export function isReached({ ratio, goal }: Figure): boolean {
  return goal === null || ratio >= goal;
}

export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const position = ((sorted.length - 1) * percent) / 100;
  const [below, above] = [sorted[Math.floor(position)]!, sorted[Math.ceil(position)]!];
  return below + (above - below) * (position - Math.floor(position));
}

export function formatFigures(figures: readonly Figure[]): string {
  const head = ["measure", "unit", "quarry", "peer", "peer value", "ratio", "goal", "reached"];
  const rows = figures.map((figure) => [
    figure.measure,
    figure.unit,
    shown(figure.quarry),
    figure.peer,
    shown(figure.peerValue),
    figure.ratio.toFixed(2),
    figure.goal === null ? "–" : figure.goal.toFixed(2),
    figure.goal === null ? "–" : isReached(figure) ? "yes" : "no",
  ]);
  const isNumber = [false, false, true, false, true, true, true, false];
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]!.length)),
  );
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) =>
        isNumber[column] ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!),
      )
      .join("  ")
      .trimEnd();
  const table = [line(head), widths.map((width) => "-".repeat(width)).join("  "), ...rows.map(line)];
  return [...table, ...notesOf(figures)].join("\n");
}

function notesOf(figures: readonly Figure[]): string[] {
  const notes = figures
    .filter(({ note }) => note)
    .map(({ measure, peer, note }) => `${measure}, ${peer}: ${note}`);
  return notes.length === 0 ? [] : ["", ...notes];
}

function shown(value: number): string {
  return value.toLocaleString("en", { maximumFractionDigits: 6 });
}

export async function writeFigures(path: string, figures: readonly Figure[]): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `${JSON.stringify(figures, null, 2)}\n`);
}

/** Four digits that count; whole numbers above a thousand. */
function rounded(value: number): number {
  return value >= 1_000 ? Math.round(value) : Number(value.toPrecision(4));
}

export async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return (performance.now() - startedAt) / 1_000;
}

/** Whoever comes first in a round finds a disk that is still writing its files. */
export function inTurn<T>(all: readonly T[], round: number): T[] {
  const first = round % all.length;
  return [...all.slice(first), ...all.slice(0, first)];
}
