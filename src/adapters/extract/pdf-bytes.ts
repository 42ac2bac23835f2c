import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { PdfSyntax, PdfSyntaxError, PdfUnsure, type PdfValue } from "./pdf-syntax.ts";

export interface PdfObject {
  readonly value: PdfValue;
  /** Something in it means nothing. */
  readonly hasNonsense: boolean;
  /** Where its data begins, when it is a stream. */
  readonly streamAt?: number;
}

const WINDOW_BYTES = 2048;
const VALUE_BYTES_MAX = 2 ** 20;
/** At the end of the file a value may end with its last byte. */
const END_OF_FILE = " ".repeat(64);

/** A PDF as bytes: values and objects are read where they stand. */
export class PdfBytes {
  readonly #file: number;
  readonly size: number;

  constructor(path: string) {
    this.#file = openSync(path, "r");
    this.size = fstatSync(this.#file).size;
  }

  close(): void {
    closeSync(this.#file);
  }

  bytes(offset: number, length: number): Buffer {
    const isInside = offset >= 0 && offset < this.size && length > 0;
    const bytes = Buffer.allocUnsafe(isInside ? Math.min(length, this.size - offset) : 0);
    return isInside ? bytes.subarray(0, readSync(this.#file, bytes, 0, bytes.length, offset)) : bytes;
  }

  text(offset: number, length: number): string {
    return this.bytes(offset, length).toString("latin1");
  }

  /** The object whose number stands at the offset. Undefined where no object stands, or only what is left of one. */
  object(offset: number, number?: number): PdfObject | undefined {
    const head = /^[\0\t\n\f\r ]*(\d+)[\0\t\n\f\r ]+\d+[\0\t\n\f\r ]+obj/.exec(this.text(offset, 64));
    if (!head || (number !== undefined && Number(head[1]) !== number)) return undefined;
    return this.value(offset + head[0].length);
  }

  value(offset: number): PdfObject | undefined {
    for (let length = WINDOW_BYTES; ; length *= 8) {
      const isWhole = offset + length >= this.size;
      const text = this.text(offset, length) + (isWhole ? END_OF_FILE : "");
      try {
        return readObject(text, offset);
      } catch (error) {
        if (!(error instanceof PdfSyntaxError)) throw error;
        if (!error.isCut || isWhole) return undefined;
        if (length >= VALUE_BYTES_MAX) throw new PdfUnsure("a value too large to be read here");
      }
    }
  }
}

function readObject(text: string, offset: number): PdfObject {
  const syntax = new PdfSyntax(text);
  const value = syntax.value();
  const { hasNonsense } = syntax;
  if (!syntax.take("stream")) return { value, hasNonsense };
  const lineEnd = /(?:\r\n|\n|\r)?/y;
  lineEnd.lastIndex = syntax.position;
  lineEnd.test(text);
  return { value, hasNonsense, streamAt: offset + lineEnd.lastIndex };
}
