/** How many characters have to be changed, left out or put in per character that is really there. */
export function characterErrorRate(options: { readonly expected: string; readonly read: string }): number {
  const [expected, read] = [plain(options.expected), plain(options.read)];
  return editDistance(expected, read) / Math.max(1, expected.length);
}

/** Line breaks and the direction of quotation marks are the typesetter's, not the writer's. */
function plain(text: string): string {
  return text.replaceAll(/[“”„]/g, '"').replaceAll(/[‘’]/g, "'").replaceAll(/\s+/g, " ").trim();
}

/** Levenshtein's, in one row of memory. */
function editDistance(left: string, right: string): number {
  const row = Uint32Array.from({ length: right.length + 1 }, (_, position) => position);
  for (let at = 1; at <= left.length; at++) {
    let diagonal = row[0]!;
    row[0] = at;
    for (let other = 1; other <= right.length; other++) {
      const substituted = diagonal + (left[at - 1] === right[other - 1] ? 0 : 1);
      diagonal = row[other]!;
      row[other] = Math.min(substituted, diagonal + 1, row[other - 1]! + 1);
    }
  }
  return row[right.length]!;
}
