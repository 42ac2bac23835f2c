/** Numbers in [0, 1) that are the same every time (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

type Mutation = (bytes: Buffer, dice: { below: (limit: number) => number; other: Buffer }) => Buffer;

/** What transports, disks and attackers do to files. */
const MUTATIONS: Readonly<Record<string, Mutation>> = {
  "one bit flipped": (bytes, { below }) => flipped(bytes, 1, below),
  "twenty bits flipped": (bytes, { below }) => flipped(bytes, 20, below),
  "two hundred bits flipped": (bytes, { below }) => flipped(bytes, 200, below),
  "end missing": (bytes, { below }) => bytes.subarray(0, 1 + below(bytes.length - 1)),
  "start missing": (bytes, { below }) => bytes.subarray(below(bytes.length - 1)),
  "a hole of zeros": (bytes, { below }) => {
    const start = below(bytes.length);
    return Buffer.from(bytes).fill(0, start, Math.min(bytes.length, start + 1 + below(2000)));
  },
  "a piece of another file inside": (bytes, { below, other }) => {
    const at = below(bytes.length);
    const start = below(other.length);
    return Buffer.concat([
      bytes.subarray(0, at),
      other.subarray(start, start + below(3000)),
      bytes.subarray(at),
    ]);
  },
  "a piece twice": (bytes, { below }) => {
    const start = below(bytes.length);
    const end = start + below(3000);
    return Buffer.concat([bytes.subarray(0, end), bytes.subarray(start)]);
  },
  "a piece gone": (bytes, { below }) => {
    const start = below(bytes.length);
    return Buffer.concat([bytes.subarray(0, start), bytes.subarray(start + below(3000))]);
  },
  "a number changed": (bytes, { below }) => {
    const digits = [...bytes.keys()].filter((at) => bytes[at]! >= 0x30 && bytes[at]! <= 0x39);
    const changed = Buffer.from(bytes);
    for (let count = 0; count < 5 && digits.length > 0; count++)
      changed[digits[below(digits.length)]!] = 0x30 + below(10);
    return changed;
  },
};

export const MUTATION_NAMES = Object.keys(MUTATIONS);

/** The same seed gives the same damage. */
export function mutate(bytes: Buffer, how: { name: string; seed: number; other: Buffer }): Buffer {
  const random = randomFrom(how.seed);
  const below = (limit: number) => Math.floor(random() * Math.max(1, limit));
  return MUTATIONS[how.name]!(bytes, { below, other: how.other });
}

function flipped(bytes: Buffer, count: number, below: (limit: number) => number): Buffer {
  const changed = Buffer.from(bytes);
  for (let flip = 0; flip < count; flip++) {
    const at = below(bytes.length);
    changed[at] = changed[at]! ^ (1 << below(8));
  }
  return changed;
}
