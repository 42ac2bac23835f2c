import { Lexer, type Token, Tokenizer, type Tokens, type TokensList } from "marked";

/** A stretch of a page that Markdown calls one thing. Offsets are UTF-16 units of the page. */
export interface Block {
  readonly kind: "heading" | "list" | "table" | "code" | "html" | "text";
  readonly start: number;
  readonly end: number;
  /** Of a heading: 1 to 6. */
  readonly depth: number;
  /** The headings it stands under, outermost first; a heading stands under itself. */
  readonly path: readonly string[];
  /** Where its items start, if it is a list. */
  readonly itemStarts: readonly number[];
}

export interface BlocksOfPage {
  readonly blocks: readonly Block[];
  /** Headings open at the end, by level: the first is that of level 1, empty where there is none. */
  readonly headingsAfter: readonly string[];
}

const HEADING_CHARS_MAX = 120;
/** Longer ones are text that only looks like a heading; their marks are not worth reading. */
const INLINE_CHARS_MAX = 500;

export function blocksOf(markdown: string, headingsBefore: readonly string[]): BlocksOfPage {
  const blocks: Block[] = [];
  let open: readonly string[] = headingsBefore;
  let path = open.filter(Boolean);
  let position = 0;
  for (const token of lex(markdown)) {
    const start = position;
    position += token.raw.length;
    const bounds = trimmed(markdown, start, position);
    if (!bounds) continue;
    if (token.type === "heading") {
      const depth = (token as Tokens.Heading).depth;
      open = [...levels(open, depth - 1), plainText(token.text)];
      path = open.filter(Boolean);
    }
    blocks.push({
      ...bounds,
      kind: kindOf(token.type),
      depth: token.type === "heading" ? (token as Tokens.Heading).depth : 0,
      path,
      itemStarts: token.type === "list" ? itemStartsOf(token as Tokens.List, start) : [],
    });
  }
  return { blocks, headingsAfter: open };
}

/** Without the white space at both ends; nothing when there is nothing else. */
export function trimmed(
  source: string,
  start: number,
  end: number,
): { start: number; end: number } | undefined {
  const text = source.slice(start, end);
  const from = start + text.length - text.trimStart().length;
  const to = start + text.trimEnd().length;
  return from < to ? { start: from, end: to } : undefined;
}

/**
 * Tokens whose raw texts, one after the other, are the page. Should the lexer ever fail at that, the page is read
 * as plain text from there on: structure is lost then, words are not.
 */
function lex(markdown: string): Token[] {
  const source = withEqualLineEnds(markdown);
  const tokens: Token[] = [];
  let position = 0;
  for (const token of readBlocks(source)) {
    if (!source.startsWith(token.raw, position)) break;
    tokens.push(token);
    position += token.raw.length;
  }
  if (position < source.length) tokens.push({ type: "text", raw: source.slice(position) });
  return tokens;
}

/** The lexer would drop the CR of CRLF; a space keeps every offset and means nothing at the end of a line. */
function withEqualLineEnds(markdown: string): string {
  return markdown.replace(/\r\n?/g, (end) => (end.length === 2 ? " \n" : "\n"));
}

function readBlocks(source: string): Token[] {
  try {
    return new TopLevelLexer().blockTokens(source, []);
  } catch {
    return [];
  }
}

/**
 * Reads blocks of the top level only. What stands inside of lists and quotations is of no use here, and reading it
 * takes time that grows with the square of a page made to that end, and as much stack as somebody cares to nest.
 */
class TopLevelLexer extends Lexer {
  #isInside = false;

  constructor() {
    super({ gfm: true, tokenizer: new FlatQuotes() });
  }

  override blockTokens(source: string, tokens: Token[] = []): TokensList {
    if (!this.#isInside) {
      this.#isInside = true;
      super.blockTokens(source, tokens);
    }
    return tokens as TokensList;
  }
}

class FlatQuotes extends Tokenizer {
  override blockquote(source: string): Tokens.Blockquote | undefined {
    const raw = this.rules.block.blockquote.exec(source)?.[0];
    return raw ? { type: "blockquote", raw, text: raw, tokens: [] } : undefined;
  }
}

function kindOf(type: string): Block["kind"] {
  switch (type) {
    case "heading":
    case "list":
    case "table":
    case "code":
    case "html":
      return type;
    default:
      return "text";
  }
}

function levels(open: readonly string[], count: number): string[] {
  return Array.from({ length: count }, (_, level) => open[level] ?? "");
}

function itemStartsOf(list: Tokens.List, listStart: number): number[] {
  let position = listStart;
  return list.items.map((item) => {
    const start = position;
    position += item.raw.length;
    return start;
  });
}

/** A heading as one reads it, without the marks of links, emphasis and code. */
function plainText(heading: string): string {
  const text = heading.length > INLINE_CHARS_MAX ? heading : read(Lexer.lexInline(heading));
  return clip(text.replace(/\s+/g, " ").trim(), HEADING_CHARS_MAX);
}

function read(tokens: readonly Token[]): string {
  return tokens
    .map((token) => {
      if ("tokens" in token && token.tokens?.length) return read(token.tokens);
      if (token.type === "html") return "";
      return token.type === "br" ? " " : "text" in token ? String(token.text) : "";
    })
    .join("");
}

/** At the end of a word if one ends in the second half, never inside of a character. */
export function clip(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  const space = text.lastIndexOf(" ", charsMax);
  const cut = text.slice(0, space > charsMax / 2 ? space : charsMax);
  return cut.replace(/[\ud800-\udbff]$/, "").trimEnd();
}
