/** Services count tokens for a whole call; each text is charged by its length. The shares add up to the whole. */
export function tokenShares(whole: number, lengths: readonly number[]): number[] {
  let weightLeft = lengths.reduce((sum, length) => sum + length + 1, 0);
  let left = whole;
  return lengths.map((length) => {
    const weight = length + 1;
    const share = Math.round((left * weight) / weightLeft);
    weightLeft -= weight;
    left -= share;
    return share;
  });
}
