/**
 * A vector in two bits a dimension, for a first look at many. The first plane holds the signs, the second the signs
 * of what the first leaves over, so both are read with one table: for each byte of a plane and each of its 256
 * values, the query's sum with those signs. The query itself is not rounded, which is worth more than a third bit.
 * See docs/adr/0006.
 */
export interface Codec {
  /** Of one vector. */
  readonly bytes: number;
  encode(vector: Float32Array, into: Uint8Array, offset: number): void;
  tableOf(query: Float32Array): Float32Array;
}

/** Where four levels lie best for values that spread like a bell of width 1 (Lloyd and Max): ±0.4528 and ±1.5104. */
const FIRST_LEVEL = 0.9816;
const SECOND_LEVEL = 0.5288;
const SECOND_SHARE = SECOND_LEVEL / FIRST_LEVEL;
const TABLE_ROW = 256;
/** What the second plane adds spreads like a bell around 0; it goes beyond this once in seven hundred times. */
const SECOND_REACH = 3 * SECOND_SHARE;
/** The sum below takes four bytes at a time. */
const BYTES_AT_ONCE = 4;

export function codecFor(dimensions: number): Codec {
  const planeBytes = Math.ceil(dimensions / 8 / BYTES_AT_ONCE) * BYTES_AT_ONCE;
  const firstLevel = FIRST_LEVEL / Math.sqrt(dimensions);
  return {
    bytes: 2 * planeBytes,
    encode(vector, into, offset) {
      into.fill(0, offset, offset + 2 * planeBytes);
      for (let dimension = 0; dimension < dimensions; dimension++) {
        const value = vector[dimension]!;
        const byte = offset + (dimension >> 3);
        const bit = 1 << (dimension & 7);
        if (value > 0) into[byte]! |= bit;
        if (value > (value > 0 ? firstLevel : -firstLevel)) into[byte + planeBytes]! |= bit;
      }
    },
    tableOf(query) {
      const table = new Float32Array(planeBytes * TABLE_ROW);
      for (let byte = 0; byte < planeBytes; byte++) fillRow(table, byte, query);
      return table;
    },
  };
}

/** Each value's sum is that of the value without its lowest bit, with one sign turned. */
function fillRow(table: Float32Array, byte: number, query: Float32Array): void {
  const row = byte * TABLE_ROW;
  for (let bit = 0; bit < 8; bit++) table[row]! -= query[byte * 8 + bit] ?? 0;
  for (let value = 1; value < TABLE_ROW; value++) {
    const lowest = 31 - Math.clz32(value & -value);
    table[row + value] = table[row + (value & (value - 1))]! + 2 * (query[byte * 8 + lowest] ?? 0);
  }
}

/**
 * How near the encoded vector is to the table's query; only the order of these figures means something. Vectors whose
 * first plane says that they will not come above the floor are given up half-way.
 */
export function nearness(table: Float32Array, codes: Uint8Array, offset: number, floor: number): number {
  const first = planeSum(table, codes, offset);
  if (first < floor - SECOND_REACH) return first;
  return first + SECOND_SHARE * planeSum(table, codes, offset + table.length / TABLE_ROW);
}

function planeSum(table: Float32Array, codes: Uint8Array, offset: number): number {
  let sum = 0;
  let at = offset;
  for (let row = 0; row < table.length; row += BYTES_AT_ONCE * TABLE_ROW) {
    sum +=
      table[row + codes[at]!]! +
      table[row + TABLE_ROW + codes[at + 1]!]! +
      table[row + 2 * TABLE_ROW + codes[at + 2]!]! +
      table[row + 3 * TABLE_ROW + codes[at + 3]!]!;
    at += BYTES_AT_ONCE;
  }
  return sum;
}
