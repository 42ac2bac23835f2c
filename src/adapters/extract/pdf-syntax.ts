/** Values of PDF as far as its structure is told by them. Names keep their slash; what strings say is not kept. */
export type PdfValue = null | boolean | number | string | PdfRef | readonly PdfValue[] | PdfDict;
export interface PdfRef {
  readonly object: number;
}
export type PdfDict = ReadonlyMap<string, PdfValue>;

/** The file is not of the plain kind that can be judged. */
export class PdfUnsure extends Error {}

/** The text is no PDF value, or (`isCut`) it ends before the value does. */
export class PdfSyntaxError extends Error {
  readonly isCut: boolean;

  constructor(message: string, isCut = false) {
    super(message);
    this.isCut = isCut;
  }
}

const DEPTH_MAX = 64;
const A_STRING = "()";
/** A number may be the first of the three words of a reference. */
const REFERENCE_LENGTH_MAX = 32;

const BLANK = /[\0\t\n\f\r ]*/y;
const REMARK = /%[^\r\n]*/y;
const TOKEN = /<<|>>|<[^<>]*>|[[\](){}]|\/[^\0\t\n\f\r ()<>[\]{}/%]*|[^\0\t\n\f\r ()<>[\]{}/%]+/y;
const REST_OF_REFERENCE = /[\0\t\n\f\r ]+\d+[\0\t\n\f\r ]+R(?![^\0\t\n\f\r ()<>[\]{}/%])/y;
const NUMBER = /^[+-]*(?:\d|\.\d)[\d.+-]*$/;
/** These stand between objects. Where one stands inside a value, the end of that value was overwritten. */
const BETWEEN_OBJECTS = ["obj", "endobj", "stream", "endstream", "xref", "trailer", "startxref"];

/** Reads values from a text of one byte a character. Forgives what readers forgive, but remembers it. */
export class PdfSyntax {
  readonly #text: string;
  position: number;
  /** Something was skipped that means nothing. */
  hasNonsense = false;

  constructor(text: string, position = 0) {
    this.#text = text;
    this.position = position;
  }

  value(depth = 0): PdfValue {
    if (depth > DEPTH_MAX) throw new PdfSyntaxError("nested too deeply");
    const token = this.#next();
    if (token === "<<") return this.#dict(depth);
    if (token === "[") return this.#array(depth);
    if (token === "(") return this.#string();
    if (token.startsWith("<")) return A_STRING;
    if (token.startsWith("/")) return nameOf(token);
    if (NUMBER.test(token)) return this.#number(token);
    if (token === "true" || token === "false") return token === "true";
    if (BETWEEN_OBJECTS.includes(token)) throw new PdfSyntaxError(`unexpected ${token}`);
    if (token !== "null") this.hasNonsense = true;
    return null;
  }

  /** The next token, when it is this one. */
  take(token: string): boolean {
    const start = this.position;
    if (this.#next() === token) return true;
    this.position = start;
    return false;
  }

  #next(): string {
    const start = this.#afterBlanks();
    TOKEN.lastIndex = start;
    const token = TOKEN.exec(this.#text)?.[0];
    if (TOKEN.lastIndex === this.#text.length) throw new PdfSyntaxError("unexpected end", true);
    if (token === undefined) {
      // A lone angle bracket: of a string that goes on behind the text, or of nothing.
      if (this.#text.indexOf(">", start + 1) < 0) throw new PdfSyntaxError("unexpected end", true);
      this.hasNonsense = true;
      this.position = start + 1;
      return "null";
    }
    this.position = TOKEN.lastIndex;
    return token;
  }

  /** One pattern for both would need a stack as deep as there are blanks. */
  #afterBlanks(): number {
    let end = this.position;
    do {
      BLANK.lastIndex = end;
      BLANK.test(this.#text);
      end = BLANK.lastIndex;
      REMARK.lastIndex = end;
      if (REMARK.test(this.#text)) end = REMARK.lastIndex;
    } while (end > BLANK.lastIndex);
    return end;
  }

  #dict(depth: number): PdfDict {
    const dict = new Map<string, PdfValue>();
    while (!this.take(">>")) {
      const key = this.value(depth + 1);
      if (typeof key !== "string" || !key.startsWith("/")) this.hasNonsense = true;
      else if (this.take(">>")) return dict;
      else dict.set(key.slice(1), this.value(depth + 1));
    }
    return dict;
  }

  #array(depth: number): PdfValue[] {
    const values: PdfValue[] = [];
    while (!this.take("]")) values.push(this.value(depth + 1));
    return values;
  }

  /** Brackets in a string come in pairs, or behind a backslash. */
  #string(): string {
    const bracket = /\\[\s\S]|[()]/g;
    bracket.lastIndex = this.position;
    for (let open = 1; open > 0; ) {
      const found = bracket.exec(this.#text)?.[0];
      if (found === undefined) throw new PdfSyntaxError("unexpected end", true);
      if (found === "(") open++;
      if (found === ")") open--;
    }
    this.position = bracket.lastIndex;
    return A_STRING;
  }

  #number(token: string): number | PdfRef {
    if (this.position + REFERENCE_LENGTH_MAX > this.#text.length)
      throw new PdfSyntaxError("unexpected end", true);
    REST_OF_REFERENCE.lastIndex = this.position;
    if (!/^\d+$/.test(token) || !REST_OF_REFERENCE.test(this.#text)) return Number.parseFloat(token);
    this.position = REST_OF_REFERENCE.lastIndex;
    return { object: Number(token) };
  }
}

function nameOf(token: string): string {
  return token.replaceAll(/#([0-9a-f]{2})/gi, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
}

export function isRef(value: PdfValue | undefined): value is PdfRef {
  return typeof value === "object" && value !== null && "object" in value;
}

export function isDict(value: PdfValue | undefined): value is PdfDict {
  return value instanceof Map;
}
