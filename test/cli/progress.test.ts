import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ProgressBars } from "../../src/cli/progress.ts";
import type { Progress } from "../../src/documents/progress.ts";

const counts = (completed: number, total: number, failed = 0) => ({
  total,
  completed,
  failed,
  processing: 0,
});
const progress = (
  ocr: [number, number, number?],
  chunks: [number, number] = [0, 0],
  unsplit = 0,
): Progress => ({
  documents: 1,
  unsplit,
  open: 1,
  ocr: counts(...ocr),
  vector: counts(...chunks),
  graphrag: counts(...chunks),
});

describe("progress as it is shown", () => {
  /** Shows one state after the other, a second apart, and returns what was said last. */
  const shown = (states: Iterable<Progress>): string[] => {
    let atMs = 0;
    const bars = new ProgressBars(() => atMs);
    let lines: string[] = [];
    for (const state of states) {
      lines = bars.lines(state, { isWide: false }).split("\n");
      atMs += 1_000;
    }
    return lines;
  };
  const seconds = (count: number, state: (second: number) => Progress) =>
    Array.from({ length: count }, (_, second) => state(second));

  test("a steady pace tells how long it still takes, in every phase", () => {
    const lines = shown(seconds(12, (second) => progress([second * 2, 122])));
    assert.equal(lines[0], "OCR  22/122 pages  2.0/s  0:50 left");
    const later = shown(seconds(12, (second) => progress([5, 5], [second * 10, 710])));
    assert.deepEqual(later.slice(1), [
      "Vector  110/710 chunks  10.0/s  1:00 left",
      "GraphRAG  110/710 chunks  10.0/s  1:00 left",
    ]);
  });

  test("a pace that changes, as from text to scans, tells no time until it is steady again", () => {
    const burst = (second: number) => progress([second === 0 ? 0 : 100 + second, 200]);
    assert.match(shown(seconds(12, burst))[0]!, /^OCR {2}111\/200 pages {2}[\d.]+\/s$/);
    assert.match(shown(seconds(60, burst))[0]!, /1\.0\/s {2}0:41 left$/);
  });

  test("nothing is foretold in the first seconds, nor while files are not opened yet", () => {
    assert.match(shown(seconds(3, (second) => progress([second, 100])))[0]!, /1\.0\/s$/);
    const lines = shown(seconds(20, (second) => progress([second, 100], [0, 0], 3)));
    assert.deepEqual(lines, ["OCR  19/100+ pages  1.0/s", "Vector  waiting", "GraphRAG  waiting"]);
  });

  test("a phase that is over has no pace any more", () => {
    const lines = shown([...seconds(5, (second) => progress([second, 5, 1])), progress([4, 5, 1], [3, 4])]);
    assert.equal(lines[0], "OCR  4/5 pages  1 failed");
  });
});
