/** A piece of SQL. Names are in lower case, as both databases compare them. */
export type SqlToken =
  | { readonly kind: "word" | "quoted"; readonly text: string; readonly name: string }
  | { readonly kind: "string" | "number" | "sign"; readonly text: string };

/** To PostgreSQL other spaces are letters. */
const SPACE = /[ \t\n\r\f]+/y;
const WORD = /[\p{L}_][\p{L}\p{N}_]*/uy;
/** Nothing may follow at once: databases differ in where `1from` and `1.from` end. */
const NUMBER = /(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)(?![\p{L}\p{N}_.])/uy;
const STRING = /'(?:[^']|'')*'/y;
const QUOTED = /"[\p{L}\p{N}_ ]+"/uy;
const SIGN = /::|[(),.*+\-/%<>=!|]/y;

const TOKENS_MAX = 2_000;

/**
 * Takes apart what both databases read alike, and refuses the rest: comments, several statements, parameters,
 * strings with prefixes or dollars. What one database would read otherwise than we do never gets to it.
 */
export function tokensOf(sql: string, refuse: (problem: string) => never): SqlToken[] {
  const tokens: SqlToken[] = [];
  let at = 0;
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    const found = pattern.exec(sql)?.[0];
    if (found !== undefined) at += found.length;
    return found;
  };
  while (at < sql.length) {
    if (take(SPACE) !== undefined) continue;
    if (/^(--|\/\*)/.test(sql.slice(at, at + 2))) refuse("comments are not allowed");
    const word = take(WORD);
    if (word !== undefined) {
      if (/['"]/.test(sql[at] ?? "")) refuse(`${word}${sql[at]}…: texts stand in plain quotes`);
      tokens.push({ kind: "word", text: word, name: word.toLowerCase() });
    } else tokens.push(signOf(take, () => refuse(sql[at] === ";" ? "one statement only" : oddity(sql, at))));
    if (tokens.length > TOKENS_MAX) refuse(`it has more than ${TOKENS_MAX} parts`);
  }
  return tokens;
}

function signOf(take: (pattern: RegExp) => string | undefined, refuse: () => never): SqlToken {
  const string = take(STRING);
  if (string !== undefined) return { kind: "string", text: string };
  const quoted = take(QUOTED);
  if (quoted !== undefined) return { kind: "quoted", text: quoted, name: quoted.slice(1, -1).toLowerCase() };
  const number = take(NUMBER);
  if (number !== undefined) return { kind: "number", text: number };
  return { kind: "sign", text: take(SIGN) ?? refuse() };
}

function oddity(sql: string, at: number): string {
  if (sql[at] === "'" || sql[at] === '"') return "a quotation is not closed, or has odd characters in it";
  return `${JSON.stringify(String.fromCodePoint(sql.codePointAt(at)!))} is not allowed`;
}
