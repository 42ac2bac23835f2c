/** Said in many texts, and of none. The words that models want before a text are among them. */
const EMPTY_WORDS = new Set(
  `a an and are as at be by do for from get how i in is it its my of on or our that the their they this to was we were
  what when where which who with you your search_query search_document query passage represent sentence searching
  relevant`.split(/\s+/),
);

/** Words that mean the same here. */
const SYNONYMS: Readonly<Record<string, string>> = {
  money: "payment",
  refund: "payment",
  paid: "payment",
};

/** A vector of unit length with a place for each word of a text: texts that share words lie near each other. */
export function meaningOf(text: string, dimensions: number): Float32Array {
  const vector = new Float32Array(dimensions);
  const words = (text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []).filter((word) => !EMPTY_WORDS.has(word));
  for (const word of words.length > 0 ? words : ["nothing said"]) {
    const hash = hashOf(SYNONYMS[stemOf(word)] ?? stemOf(word));
    vector[(hash >>> 1) % dimensions]! += hash & 1 ? 1 : -1;
  }
  const length = Math.hypot(...vector);
  // Two words in one place may cancel each other out.
  if (length === 0) vector[0] = 1;
  return length === 0 ? vector : vector.map((value) => value / length);
}

function stemOf(word: string): string {
  return word.length > 3 ? word.replace(/(ing|ed|s)$/, "") : word;
}

/** FNV-1a. */
function hashOf(word: string): number {
  let hash = 0x811c9dc5;
  for (const char of word) hash = Math.imul(hash ^ char.codePointAt(0)!, 0x01000193) >>> 0;
  return hash;
}
