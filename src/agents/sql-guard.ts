import { QuarryError } from "../errors.ts";
import { VIEW_NAMES } from "./catalogue.ts";
import { type SqlToken, tokensOf } from "./sql-tokens.ts";

/** Functions that read what they are given, cost little and know nothing else. Both databases are held to this list. */
export const FUNCTIONS: ReadonlySet<string> = new Set(
  `abs avg cast ceil char_length coalesce concat concat_ws count date date_trunc datetime dense_rank extract
  first_value floor greatest group_concat iif ifnull initcap instr julianday lag last_value lead least left length
  lower ltrim max min mod ntile nullif percent_rank position rank replace right round row_number rtrim sign
  split_part strftime string_agg strpos substr substring sum to_char total trim upper`.split(/\s+/),
);

/** Words after which a parenthesis is no call. */
const BEFORE_PARENTHESIS = new Set(
  `all and any as between by case distinct else except exists filter from having ilike in intersect is join lateral
  like limit materialized not offset on or order over partition select some then union using values when where
  with within group`.split(/\s+/),
);

/** What writes, locks, opens or asks about anything else than the catalogue. */
const FORBIDDEN = new Set(
  `alter analyze attach begin call commit copy create current_catalog current_role current_schema current_user delete
  detach do drop execute explain fetch for grant insert into listen load lock merge notify oid only pragma prepare reindex
  reset returning revoke rollback savepoint session_user set show system_user table truncate update user vacuum window
  ctid xmin xmax cmin cmax tableoid rowid information_schema`.split(/\s+/),
);
const FORBIDDEN_NAMES = /^(pg_|sqlite_|reg|lo_|dblink|txid_|_)/;

/** Only words that neither database takes for a name: an alias called so would hide what comes behind it. */
const ENDS_FROM = new Set("where group order having limit union intersect except select".split(" "));
const OPENS_QUERY = new Set(["select", "with", "values"]);
/** In their parentheses "from" stands before a value. */
const FROM_INSIDE = new Set(["extract", "substring", "trim", "position"]);

const SQL_LENGTH_MAX = 10_000;

/**
 * Lets one SELECT over the catalogue's views through and nothing else: every relation is a view or a name the query
 * itself defines, every function is on a list. The connection that runs it can do no more than that either; this is
 * what says why. Returns the statement without what may stand behind it.
 */
export function checkedSelect(sql: string): string {
  if (sql.length > SQL_LENGTH_MAX) refuse(`a query has up to ${SQL_LENGTH_MAX} characters`);
  const bare = sql.trim().replace(/;\s*$/, "");
  const tokens = tokensOf(bare, refuse);
  const [first] = tokens;
  if (first?.kind !== "word" || !["select", "with"].includes(first.name)) refuse("only SELECT is allowed");
  for (const token of tokens) checkName(token);
  checkCalls(tokens);
  checkRelations(tokens, ownNames(tokens));
  return bare;
}

function refuse(problem: string): never {
  throw new QuarryError("invalid_input", `this query is not run: ${problem}`);
}

function checkName(token: SqlToken): void {
  if (token.kind === "word" && FORBIDDEN.has(token.name)) refuse(`${token.name} is not allowed`);
  if ((token.kind === "word" || token.kind === "quoted") && FORBIDDEN_NAMES.test(token.name))
    refuse(`${token.name} is not part of the catalogue`);
  if (token.kind === "quoted" && FORBIDDEN.has(token.name)) refuse(`${token.name} is not allowed`);
}

function checkCalls(tokens: readonly SqlToken[]): void {
  for (const [index, token] of tokens.entries()) {
    if (tokens[index + 1]?.text !== "(") continue;
    if (token.kind === "quoted") refuse(`${token.name}(…) is not allowed`);
    if (token.kind !== "word" || BEFORE_PARENTHESIS.has(token.name)) continue;
    if (!FUNCTIONS.has(token.name)) refuse(`${token.name}(…) is not a function that may be used`);
    if (tokens[index - 1]?.text === ".") refuse("functions are called by their name alone");
  }
}

/** Names that the query gives to its own parts: `name as (`. */
function ownNames(tokens: readonly SqlToken[]): Set<string> {
  const names = new Set<string>();
  for (const [index, token] of tokens.entries()) {
    if (token.kind !== "word" && token.kind !== "quoted") continue;
    const after = tokens.slice(index + 1, index + 4).map(({ text }) => text.toLowerCase());
    const isDefined =
      after[0] === "as" &&
      (after[1] === "(" || (["materialized", "not"].includes(after[1]!) && after.includes("(", 2)));
    if (!isDefined) continue;
    if (VIEW_NAMES.has(token.name)) refuse(`${token.name} is the name of a view; take another`);
    names.add(token.name);
  }
  return names;
}

interface Level {
  /** Commas stand between relations here. */
  isFrom: boolean;
  /** "from" stands before a value here. */
  readonly isCall: boolean;
}

/** Finds every place where a relation stands, by the words and commas before it. */
function checkRelations(tokens: readonly SqlToken[], own: ReadonlySet<string>): void {
  const levels: Level[] = [{ isFrom: false, isCall: false }];
  let isExpected = false;
  for (const [index, token] of tokens.entries()) {
    const level = levels.at(-1)!;
    const { text } = token;
    const before = tokens[index - 1];
    if (isExpected) {
      if (token.kind === "word" && token.name === "lateral") continue;
      isExpected = text === "(" && !opensQuery(tokens[index + 1]);
      if (text !== "(") checkRelation(token, tokens[index + 1], own);
    }
    if (text === "(") {
      const isCall = before?.kind === "word" && FROM_INSIDE.has(before.name);
      levels.push({ isFrom: isExpected, isCall });
    } else if (text === ")") {
      if (levels.length === 1) refuse("its parentheses do not match");
      levels.pop();
    } else if (text === "," && level.isFrom) isExpected = true;
    else if (token.kind !== "word" || before?.text === ".") continue;
    else if (token.name === "join" || (token.name === "from" && isClause(level, tokens, index))) {
      level.isFrom = true;
      isExpected = true;
    } else if (ENDS_FROM.has(token.name)) level.isFrom = false;
  }
  if (isExpected) refuse("it ends where a view should be named");
  if (levels.length > 1) refuse("its parentheses do not match");
}

function opensQuery(token: SqlToken | undefined): boolean {
  return token?.kind === "word" && OPENS_QUERY.has(token.name);
}

/** Not that of `extract(year from …)` and not that of `is distinct from`. */
function isClause({ isCall }: Level, tokens: readonly SqlToken[], index: number): boolean {
  if (isCall) return false;
  const [second, first] = [tokens[index - 1]?.text, tokens[index - 2]?.text].map((text) =>
    text?.toLowerCase(),
  );
  return !(second === "distinct" && (first === "is" || first === "not"));
}

function checkRelation(token: SqlToken, next: SqlToken | undefined, own: ReadonlySet<string>): void {
  const isName = token.kind === "word" || token.kind === "quoted";
  if (
    !isName ||
    next?.text === "." ||
    next?.text === "(" ||
    !(VIEW_NAMES.has(token.name) || own.has(token.name))
  )
    refuse(
      `${token.text}${next?.text === "." ? ".…" : ""} is not in the catalogue; there are ${[...VIEW_NAMES].join(", ")}`,
    );
}
