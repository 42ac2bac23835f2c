/**
 * Words as the text index knows them. Its tokenizer splits at whatever is neither letter nor digit; scripts that
 * write without spaces come one character at a time and are searched by pairs of neighbours.
 */
export const TOKENIZER = "porter unicode61 remove_diacritics 2";

/** The long vowel of Katakana belongs to no script of its own. */
const UNSPACED =
  "ーｰ\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}\\p{Script=Myanmar}";
const UNSPACED_CHARACTER = new RegExp(`[${UNSPACED}]`, "gu");
const UNSPACED_RUN = new RegExp(`^[${UNSPACED}]+$`, "u");
/** Marks alone are no word: every other emoji has one behind it. */
export const WORD = new RegExp(
  `[${UNSPACED}]+|(?![${UNSPACED}])[\\p{L}\\p{N}](?:(?![${UNSPACED}])[\\p{L}\\p{N}\\p{M}])*`,
  "gu",
);
/** Words that punctuation joins and that mean more together: node.js, state-of-the-art, a@b.org, 3.14. */
const COMPOUND = /(?<![\p{L}\p{N}])[\p{L}\p{N}]+(?:[.\-_/@:+#]+[\p{L}\p{N}]+){1,7}/gu;
const CLITIC = /['’](?:s|t|d|m|ll|re|ve)\b/giu;

/** What stands around the other words of a question. A word that only the text can show to be common is no such. */
const STOP_WORDS = new Set(
  `a about an and any are as at be been but by can could did do does for from give had has have how i if in into is
  it its let may me my of on or our please shall should show so some tell than that the their them then there these
  they this those to us was we were what when where which who whom whose why will with would you your`.split(
    /\s+/,
  ),
);

export const TERMS_MAX = 40;
const QUERY_LENGTH_MAX = 20_000;

/** Invisible, and a border between words for the tokenizer. */
export const BORDER = "\u200b";

/** Text as it is to be indexed or highlighted: characters of scripts without spaces stand apart. */
export function withBorders(text: string): string {
  return narrowed(text).replaceAll(BORDER, "").replace(UNSPACED_CHARACTER, `${BORDER}$&${BORDER}`);
}

const WIDE = /[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]/g;

/** Latin letters and digits that were written as wide as Chinese characters. Each stays one character. */
function narrowed(text: string): string {
  return text.replaceAll(WIDE, (letter) => letter.normalize("NFKC"));
}

/**
 * What to look for: each entry is one word or a few that belong together. Stop words count only when there is
 * nothing else; of a text that is pasted in whole, the longest words say the most.
 */
export function termsOf(query: string): string[] {
  const typed = query.slice(0, QUERY_LENGTH_MAX).toWellFormed().normalize("NFC");
  const text = narrowed(typed).replace(CLITIC, "").toLowerCase();
  const words = [...new Set(text.match(WORD))].flatMap(pairsOf);
  const telling = words.filter((word) => !STOP_WORDS.has(word));
  const compounds = (text.match(COMPOUND) ?? []).map((compound) => compound.match(WORD)!.join(" "));
  const terms = [...new Set([...(telling.length > 0 ? telling : words), ...compounds])];
  return terms.length <= TERMS_MAX ? terms : terms.sort((a, b) => b.length - a.length).slice(0, TERMS_MAX);
}

/** As FTS5 takes it. Terms hold letters, digits and spaces only, so nothing in quotes can end them. */
export function anyOf(terms: readonly string[]): string {
  return terms.map((term) => `"${term}"`).join(" OR ");
}

export function allOf(terms: readonly string[]): string {
  return terms.map((term) => `"${term}"`).join(" AND ");
}

function pairsOf(word: string): string[] {
  if (!UNSPACED_RUN.test(word)) return [word];
  const characters = [...word];
  if (characters.length === 1) return [word];
  return characters.slice(1).map((character, index) => `${characters[index]} ${character}`);
}
