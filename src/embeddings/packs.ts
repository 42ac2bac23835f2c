export interface PackLimits {
  readonly textsMax: number;
  readonly tokensMax: number;
}

/**
 * Puts texts into as few calls as the limits allow. Long ones first, each into the first call that has room: texts of
 * like length end up together, which is what models are quickest with.
 */
export function packed<T>(items: readonly T[], tokensOf: (item: T) => number, limits: PackLimits): T[][] {
  const packs: { items: T[]; tokens: number }[] = [];
  const weighed = items.map((item) => ({ item, tokens: tokensOf(item) }));
  for (const { item, tokens } of weighed.sort((a, b) => b.tokens - a.tokens)) {
    const pack = packs.find(
      (some) => some.items.length < limits.textsMax && some.tokens + tokens <= limits.tokensMax,
    );
    if (pack) {
      pack.items.push(item);
      pack.tokens += tokens;
    } else packs.push({ items: [item], tokens });
  }
  return packs.map((pack) => pack.items);
}
