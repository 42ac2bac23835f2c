import { DatabaseSync } from "node:sqlite";
import { anyOf, BORDER, TOKENIZER, termsOf, withBorders } from "../adapters/fulltext/terms.ts";

/** From, and up to but not including. */
export type Span = readonly [start: number, end: number];

const START = "\u0001";
const END = "\u0002";

/** Finds the words of a query in texts by the rules of the text index: the same stems, accents and scripts. */
export class Highlighter {
  readonly #memory = new DatabaseSync(":memory:");

  constructor() {
    this.#memory.exec(`create virtual table shown using fts5(text, tokenize = '${TOKENIZER}')`);
  }

  /** Where words of the query stand, for each text, from left to right. */
  find(query: string, texts: readonly string[]): Span[][] {
    const terms = termsOf(query);
    const spans: Span[][] = texts.map(() => []);
    if (terms.length === 0) return spans;
    this.#memory.exec("begin");
    try {
      const insert = this.#memory.prepare("insert into shown (rowid, text) values (?, ?)");
      for (const [position, text] of texts.entries()) insert.run(position, withBorders(text));
      const marked = this.#memory
        .prepare("select rowid, highlight(shown, 0, ?, ?) as text from shown where shown match ?")
        .all(START, END, anyOf(terms));
      for (const row of marked) spans[Number(row.rowid)] = spansIn(String(row.text));
    } finally {
      this.#memory.exec("rollback");
    }
    return spans;
  }
}

/** Borders and marks were put in; positions are counted without them. */
function spansIn(marked: string): Span[] {
  const spans: Span[] = [];
  let position = 0;
  let start = 0;
  for (const letter of marked) {
    if (letter === START) start = position;
    else if (letter === END) spans.push([start, position]);
    else if (letter !== BORDER) position += letter.length;
  }
  return spans;
}
