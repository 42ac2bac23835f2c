import type { PdfBytes } from "./pdf-bytes.ts";
import { inflate } from "./pdf-inflate.ts";
import { isDict, type PdfDict, type PdfValue } from "./pdf-syntax.ts";

/** Where an object stands: in the file, or in a stream of objects. Undefined for one that was deleted. */
export type PdfPlace =
  | { readonly offset: number }
  | { readonly container: number; readonly index: number }
  | undefined;

export interface PdfXref {
  readonly places: ReadonlyMap<number, PdfPlace>;
  readonly trailer: PdfDict;
}

const TAIL_BYTES = 2048;
const SECTIONS_MAX = 500;
const OBJECTS_MAX = 1_000_000;
const TABLE_ENTRY_BYTES = 20;
const XREF_BYTES_MAX = 64 * 2 ** 20;
const PNG_PREDICTOR_MIN = 10;
const PNG_SAME = 0;
const PNG_UP = 2;

/** Undefined unless the tables say in every detail where each object is: readers then guess, and so may not we. */
export async function readXref(file: PdfBytes): Promise<PdfXref | undefined> {
  const tail = file.text(Math.max(0, file.size - TAIL_BYTES), TAIL_BYTES);
  const start = /^startxref[\0\t\n\f\r ]+(\d+)/.exec(tail.slice(tail.lastIndexOf("startxref")))?.[1];
  const places = new Map<number, PdfPlace>();
  let trailer: PdfDict | undefined;
  const seen = new Set<number>();
  const waiting = [Number(start)];
  for (let offset = waiting.pop(); offset !== undefined; offset = waiting.pop()) {
    if (seen.has(offset) || seen.size >= SECTIONS_MAX || !(offset < file.size)) return undefined;
    seen.add(offset);
    const section = (await readTable(file, offset)) ?? (await readStream(file, offset));
    if (!section || places.size + section.places.size > OBJECTS_MAX) return undefined;
    for (const [object, place] of section.places) if (!places.has(object)) places.set(object, place);
    trailer ??= section.trailer;
    const previous = section.trailer.get("Prev");
    if (typeof previous === "number") waiting.push(previous);
  }
  return trailer && { places, trailer };
}

async function readTable(file: PdfBytes, offset: number): Promise<PdfXref | undefined> {
  const places = new Map<number, PdfPlace>();
  let at = offset + (/^[\0\t\n\f\r ]*xref[\0\t\n\f\r ]+/.exec(file.text(offset, 64))?.[0].length ?? 0);
  if (at === offset) return undefined;
  for (;;) {
    const head = /^(\d+) +(\d+)[\t\r ]*\n?/.exec(file.text(at, 64));
    if (!head) break;
    const [first, count] = [Number(head[1]), Number(head[2])];
    if (count > OBJECTS_MAX) return undefined;
    at += head[0].length;
    const entries = file.text(at, count * TABLE_ENTRY_BYTES);
    for (let index = 0; index < count; index++) {
      const entry = entries.slice(index * TABLE_ENTRY_BYTES, (index + 1) * TABLE_ENTRY_BYTES);
      const [, digits, use] = /^(\d{10}) \d{5} ([nf])[\r\n ]{2}$/.exec(entry) ?? [];
      if (digits === undefined) return undefined;
      places.set(first + index, use === "n" ? { offset: Number(digits) } : undefined);
    }
    at += count * TABLE_ENTRY_BYTES;
  }
  const trailer = /^[\0\t\n\f\r ]*trailer/.exec(file.text(at, 64));
  const dict = trailer && file.value(at + trailer[0].length)?.value;
  if (!isDict(dict)) return undefined;
  const more = dict.get("XRefStm");
  if (typeof more !== "number") return { places, trailer: dict };
  // A file for readers old and new: its table calls deleted what only the stream knows.
  const hidden = await readStream(file, more);
  return hidden && { places: new Map([...places, ...hidden.places]), trailer: dict };
}

async function readStream(file: PdfBytes, offset: number): Promise<PdfXref | undefined> {
  const object = file.object(offset);
  if (!object || !isDict(object.value) || object.streamAt === undefined) return undefined;
  const { value: dict, streamAt } = object;
  const length = dict.get("Length");
  if (dict.get("Type") !== "/XRef" || dict.get("Filter") !== "/FlateDecode" || typeof length !== "number")
    return undefined;
  const { data, isDamaged } = await inflate(file.bytes(streamAt, length), XREF_BYTES_MAX);
  const rows = isDamaged ? undefined : withoutPrediction(data, dict.get("DecodeParms") ?? null);
  const widths = numbers(dict.get("W"));
  const ranges = dict.has("Index") ? numbers(dict.get("Index")) : [0, ...numbers([dict.get("Size") ?? null])];
  const rowBytes = widths.reduce((sum, width) => sum + width, 0);
  if (!rows || widths.length !== 3 || rowBytes === 0) return undefined;
  return { places: placesIn(rows, widths as [number, number, number], ranges), trailer: dict };
}

function placesIn(rows: Buffer, widths: [number, number, number], ranges: readonly number[]) {
  const places = new Map<number, PdfPlace>();
  let at = 0;
  const field = (width: number) => {
    let value = 0;
    for (const byte of rows.subarray(at, at + width)) value = value * 256 + byte;
    at += width;
    return value;
  };
  for (let range = 0; range + 1 < ranges.length; range += 2)
    for (let index = 0; index < ranges[range + 1]! && at < rows.length; index++) {
      const kind = widths[0] === 0 ? 1 : field(widths[0]);
      const [second, third] = [field(widths[1]), field(widths[2])];
      const place =
        kind === 1 ? { offset: second } : kind === 2 ? { container: second, index: third } : undefined;
      places.set(ranges[range]! + index, place);
    }
  return places;
}

/** Of the ways to predict a row only the one that writers use for these tables: what differs from the row above. */
function withoutPrediction(data: Buffer, how: PdfValue): Buffer | undefined {
  const predictor = isDict(how) ? (how.get("Predictor") ?? 1) : 1;
  if (predictor === 1) return data;
  const columns = isDict(how) ? (how.get("Columns") ?? 1) : 1;
  if (typeof predictor !== "number" || predictor < PNG_PREDICTOR_MIN || typeof columns !== "number")
    return undefined;
  const count = Math.floor(data.length / (columns + 1));
  const rows = Buffer.alloc(count * columns);
  for (let row = 0; row < count; row++) {
    const kind = data[row * (columns + 1)];
    if (kind !== PNG_SAME && kind !== PNG_UP) return undefined;
    for (let column = 0; column < columns; column++) {
      const above = kind === PNG_UP && row > 0 ? rows[(row - 1) * columns + column]! : 0;
      rows[row * columns + column] = data[row * (columns + 1) + 1 + column]! + above;
    }
  }
  return rows;
}

function numbers(value: PdfValue | undefined): number[] {
  return Array.isArray(value) ? value.filter((entry) => Number.isInteger(entry) && entry >= 0) : [];
}
