/** Which of these words was most likely meant; undefined when none is like it. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const close = known
    .map((other) => ({ other, distance: distanceOf(word, other) }))
    // A third of the letters may be wrong: `passwrd` is meant to be `password`, `owner` is not meant to be `url`.
    .filter(({ other, distance }) => distance <= Math.max(1, Math.floor(other.length / 3)))
    .toSorted((a, b) => a.distance - b.distance);
  return close[0]?.other;
}

/** What is said of a key that there is none of. */
export function unknownKey(key: string, known: readonly string[]): string {
  const meant = nearest(key.toLowerCase(), known);
  const advice = meant === undefined ? `there are ${known.join(", ")}` : `did you mean ${meant}?`;
  return `${key}, which is no setting; ${advice}`;
}

/** How many letters must be added, left out, changed or swapped with the next one. */
function distanceOf(one: string, other: string): number {
  let before: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, j) => j);
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const change = last[j - 1]! + (one[i - 1] === other[j - 1] ? 0 : 1);
      const isSwap = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      const swap = isSwap ? before[j - 2]! + 1 : change;
      row.push(Math.min(last[j]! + 1, row[j - 1]! + 1, change, swap));
    }
    [before, last] = [last, row];
  }
  return last[other.length]!;
}
