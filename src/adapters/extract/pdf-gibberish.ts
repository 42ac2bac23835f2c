/** All that a content stream may say. */
const OPERATORS = new Set(
  (
    "b B b* B* BDC BI BMC BT BX c cm CS cs d d0 d1 Do DP EI EMC ET EX f F f* G g gs h i ID j J K k l m M MP n q Q " +
    "re RG rg ri s S SC sc SCN scn sh T* Tc Td TD Tf Tj TJ TL Tm Tr Ts Tw Tz v w W W* y ' \" true false null"
  ).split(" "),
);
const STRINGS_AND_COMMENTS = /\((?:\\[\s\S]|[^\\()])*\)|<[\da-f\s]*>|%[^\r\n]*/gi;
const WORD = /(?<![^\t\n\f\r ()<>[\]{}])[^\t\n\f\r ()<>[\]{}/%]+/g;
const NUMBER = /^[+-]*[\d.][\d.+-]*$/;

const LENGTH_MAX = 2 ** 16;

/** A content stream most of which means nothing, so that nothing is painted. */
export function isGibberish(content: string): boolean {
  const start = content.slice(0, LENGTH_MAX);
  const hasPicture = /\bBI\b/.test(start) && /\bID\b/.test(start);
  if (hasPicture) return false;
  const words = (start.replaceAll(STRINGS_AND_COMMENTS, " ").match(WORD) ?? []).filter(
    (word) => !NUMBER.test(word),
  );
  return words.filter((word) => OPERATORS.has(word)).length < words.length / 2;
}
