const ARTICLE = /^(?:the|a|an) /;
const TITLES = /^(?:(?:mr|mrs|ms|miss|dr|prof|professor|sir|lady) )+/;

/**
 * Names that mean the same become the same: case, form, articles, titles, possessives and punctuation do not count.
 * Graphs merge by it.
 */
export function normaliseName(name: string): string {
  const plain = name
    .normalize("NFKC")
    // Down, up and down again: "STRASSE", "Straße" and "STRAẞE" meet that way.
    .toLowerCase()
    .toUpperCase()
    .toLowerCase()
    // What that makes of the Turkish "İ".
    .replaceAll("i\u0307", "i")
    // The sigma at the end of a word.
    .replaceAll("ς", "σ")
    // "J. R. R." is "J.R.R.".
    .replaceAll(/(?<=\b\p{L}\.)\s+(?=\p{L}\.)/gu, "")
    .replaceAll(/(?<=\b\p{L})\.(?=\p{L}\b)|(?<=\.\p{L})\./gu, "")
    .replaceAll(/['’]s?\b/g, "")
    .replaceAll(/[^\p{L}\p{M}\p{N}&+#]+/gu, " ")
    .trim();
  return plain.replace(ARTICLE, "").replace(TITLES, "") || plain;
}
