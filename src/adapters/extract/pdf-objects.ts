import type { PdfBytes, PdfObject } from "./pdf-bytes.ts";
import { inflate } from "./pdf-inflate.ts";
import { isDict, isRef, PdfSyntax, PdfSyntaxError, PdfUnsure, type PdfValue } from "./pdf-syntax.ts";
import type { PdfXref } from "./pdf-xref.ts";

/** What a stream holds. Unknown: encrypted, or packed in a way that is not checked here. */
export type PdfData = Buffer | "damaged" | "unknown";

/** A reference to an object that is nowhere, or was deleted, means nothing; that is no damage. */
const NOTHING: PdfObject = { value: null, hasNonsense: false };
const REFERENCES_MAX = 8;
const KEPT_BYTES_MAX = 32 * 2 ** 20;
const STREAM_BYTES_MAX = 256 * 2 ** 20;
const SEARCH_BYTES = 2 ** 20;
const CONTAINERS_KEPT = 16;
const FLATE = ["/FlateDecode", "/Fl"];

/** The objects of a PDF by their numbers. Undefined is what was overwritten. */
export class PdfObjects {
  readonly #file: PdfBytes;
  readonly #xref: PdfXref;
  readonly #containers = new Map<number, (PdfObject | undefined)[]>();

  constructor(file: PdfBytes, xref: PdfXref) {
    this.#file = file;
    this.#xref = xref;
  }

  async object(number: number): Promise<PdfObject | undefined> {
    const place = this.#xref.places.get(number);
    if (!place) return NOTHING;
    if ("offset" in place) return this.#file.object(place.offset, number);
    return (await this.#container(place.container))?.[place.index];
  }

  /** The object that a value refers to, or the value itself. */
  async follow(value: PdfValue | undefined): Promise<PdfObject | undefined> {
    let object: PdfObject | undefined = { value: value ?? null, hasNonsense: false };
    for (let step = 0; object && isRef(object.value); step++) {
      if (step === REFERENCES_MAX) throw new PdfUnsure("references in a circle");
      object = await this.object(object.value.object);
    }
    return object;
  }

  async value(value: PdfValue | undefined): Promise<PdfValue> {
    return (await this.follow(value))?.value ?? null;
  }

  async data(object: PdfObject): Promise<PdfData> {
    const { value: dict, streamAt } = object;
    if (!isDict(dict) || streamAt === undefined || this.#isEncrypted || dict.has("F")) return "unknown";
    const filters = await this.filters(dict.get("Filter"));
    const packed = await this.packed(object);
    if (!packed) return "unknown";
    if (filters.length === 0) return packed;
    if (!FLATE.includes(filters[0]!)) return "unknown";
    const { data, isDamaged } = await inflate(packed, KEPT_BYTES_MAX);
    if (isDamaged) return "damaged";
    return filters.length === 1 && !dict.has("DecodeParms") && !dict.has("DP") ? data : "unknown";
  }

  async filters(filter: PdfValue | undefined): Promise<string[]> {
    const value = await this.value(filter);
    const names = Array.isArray(value) ? await Promise.all(value.map((one) => this.value(one))) : [value];
    return names.filter((name) => typeof name === "string");
  }

  /** The bytes of a stream as they stand in the file; undefined where its end cannot be found. */
  async packed({ value: dict, streamAt }: PdfObject): Promise<Buffer | undefined> {
    if (!isDict(dict) || streamAt === undefined || this.#isEncrypted) return undefined;
    const length = await this.value(dict.get("Length"));
    const isRight =
      typeof length === "number" &&
      /^[\0\t\n\f\r ]*endstream/.test(this.#file.text(streamAt + length, "\r\n endstream".length));
    const bytes = isRight ? length : this.#bytesToEnd(streamAt);
    return bytes === undefined || bytes > STREAM_BYTES_MAX ? undefined : this.#file.bytes(streamAt, bytes);
  }

  get #isEncrypted(): boolean {
    return this.#xref.trailer.has("Encrypt");
  }

  #bytesToEnd(start: number): number | undefined {
    const end = "endstream";
    for (let from = start; from < Math.min(this.#file.size, start + STREAM_BYTES_MAX); from += SEARCH_BYTES) {
      const found = this.#file.bytes(from, SEARCH_BYTES + end.length).indexOf(end);
      if (found >= 0) return from + found - start;
    }
    return undefined;
  }

  /** Small objects packed together. */
  async #container(number: number): Promise<(PdfObject | undefined)[] | undefined> {
    const known = this.#containers.get(number);
    if (known) return known;
    const place = this.#xref.places.get(number);
    if (!place || !("offset" in place)) throw new PdfUnsure("an object in a stream that is not there");
    const container = this.#file.object(place.offset, number);
    if (!container || !isDict(container.value)) return undefined;
    const data = await this.data(container);
    if (data === "unknown") throw new PdfUnsure("a stream of objects that cannot be unpacked here");
    if (data === "damaged") return undefined;
    const [count, first] = [container.value.get("N"), container.value.get("First")];
    if (typeof count !== "number" || typeof first !== "number")
      throw new PdfUnsure("an odd stream of objects");
    const objects = objectsIn(data.toString("latin1"), { count, first });
    if (this.#containers.size >= CONTAINERS_KEPT)
      this.#containers.delete(this.#containers.keys().next().value!);
    this.#containers.set(number, objects);
    return objects;
  }
}

function objectsIn(text: string, { count, first }: { count: number; first: number }) {
  const numbers = text.slice(0, first).trim().split(/\s+/).map(Number);
  const padded = `${text}${" ".repeat(64)}`;
  return Array.from({ length: Math.min(count, numbers.length / 2) }, (_, index): PdfObject | undefined => {
    const syntax = new PdfSyntax(padded, first + numbers[index * 2 + 1]!);
    try {
      const value = syntax.value();
      return { value, hasNonsense: syntax.hasNonsense };
    } catch (error) {
      if (error instanceof PdfSyntaxError) return undefined;
      throw error;
    }
  });
}
