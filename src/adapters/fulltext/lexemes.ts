import type { Session } from "../../database/database.ts";
import { WORD, withBorders } from "./terms.ts";

/** PostgreSQL refuses lexemes of more than 2 KB and vectors of more than 1 MB; the rest of such a text is not found. */
const WORD_LENGTH_MAX = 250;
const BYTES_MAX = 900_000;
const POSITION_MAX = 16_383;
const POSITIONS_MAX = 255;
/** No phrase reaches from the text into the headings. */
const GAP = 10;
const STEMS_MAX = 50_000;

const DIACRITICS = /[\u0300-\u036f]/g;

/**
 * Words as the embedded index knows them: any letter or digit, in small letters and without accents. PostgreSQL's own
 * parser is not asked, because it takes addresses, versions and scripts without spaces for one word each, and does so
 * differently in each locale.
 */
export function wordsOf(text: string): string[] {
  const plain = text.toWellFormed().toLowerCase().normalize("NFD").replace(DIACRITICS, "").normalize("NFC");
  return (withBorders(plain).match(WORD) ?? []).map((word) => [...word].slice(0, WORD_LENGTH_MAX).join(""));
}

/** The database's English stemmer, asked once for each word. */
export class Stems {
  readonly #known = new Map<string, string>();

  /** Afterwards `of` knows them. */
  async learn(session: Session, words: Iterable<string>): Promise<void> {
    const unknown = [...new Set(words)].filter((word) => !this.#known.has(word));
    if (unknown.length === 0) return;
    if (this.#known.size > STEMS_MAX) this.#known.clear();
    const rows = await session.query<{ word: string; stem: string }>(STEM, [unknown]);
    for (const { word, stem } of rows) this.#known.set(word, stem);
  }

  of(word: string): string {
    return this.#known.get(word) ?? word;
  }
}

/** $1 words. The stemmer gives nothing for words that stand around others; they are kept as they are. */
const STEM = {
  name: "fulltext.stem",
  sql: "select word, coalesce((ts_lexize('pg_catalog.english_stem', word))[1], word) as stem from unnest($1::text[]) as word",
};

export interface WrittenText {
  readonly context: readonly string[];
  readonly content: readonly string[];
  /** Lexemes that no word can be; for what else is to be found by this index. */
  readonly marks: readonly string[];
}

/**
 * A tsvector's text. What the chunk itself says has the label A and comes first: ts_rank wants the heaviest first, or
 * reckons too much.
 */
export function vectorText({ context, content, marks }: WrittenText): string {
  const places = new Map<string, string[]>();
  let bytes = 0;
  const add = (words: readonly string[], start: number, label: string) => {
    for (const [index, word] of words.entries()) {
      const positions = places.get(word) ?? [];
      bytes += positions.length === 0 ? 4 * word.length + 8 : 2;
      if (bytes > BYTES_MAX) return;
      if (positions.length < POSITIONS_MAX)
        positions.push(`${Math.min(start + index, POSITION_MAX)}${label}`);
      places.set(word, positions);
    }
  };
  add(content, 1, "A");
  add(context, 1 + content.length + GAP, "");
  const entries = [...places].map(([word, positions]) => `${quoted(word)}:${positions.join(",")}`);
  return [...marks.map(quoted), ...entries].join(" ");
}

/** A lexeme in the text of a tsvector or tsquery. */
export function quoted(lexeme: string): string {
  return `'${lexeme.replace(/['\\]/g, "$&$&")}'`;
}
