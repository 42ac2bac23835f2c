import { pick, randomFrom } from "./random.ts";

const SYLLABLES = [
  "ba",
  "cor",
  "del",
  "fen",
  "gri",
  "hol",
  "ka",
  "lim",
  "mor",
  "nes",
  "pol",
  "qua",
  "ro",
  "sti",
  "tun",
  "ver",
];
const WORDS = 30_000;
const CHUNK_WORDS = 100;

/** Invented words that are as often in texts as words of a language are: the second half as often as the first (Zipf). */
export class Vocabulary {
  readonly #words: readonly string[];
  readonly #sums: Float64Array;
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = randomFrom(seed);
    const words = new Set<string>();
    // Common words are short.
    while (words.size < WORDS) words.add(this.#invent(words.size < 200 ? 2 : words.size < 3_000 ? 3 : 4));
    this.#words = [...words];
    this.#sums = new Float64Array(WORDS);
    let sum = 0;
    for (let rank = 1; rank <= WORDS; rank++) {
      sum += 1 / rank;
      this.#sums[rank - 1] = sum;
    }
  }

  text(words = CHUNK_WORDS): string {
    return Array.from({ length: words }, () => this.#word()).join(" ");
  }

  #word(): string {
    const wanted = this.#random() * this.#sums.at(-1)!;
    let [low, high] = [0, WORDS - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#sums[middle]! < wanted) low = middle + 1;
      else high = middle;
    }
    return this.#words[low]!;
  }

  #invent(syllables: number): string {
    return Array.from({ length: syllables }, () => pick(SYLLABLES, this.#random)).join("");
  }
}

const CLUSTERS = 300;
/** How far texts on one subject lie apart: their cosine is about 0.6, as with real texts. */
const SPREAD = 0.8;

/** Vectors in clusters, as texts on a few hundred subjects have them. */
export class Vectors {
  readonly #random: () => number;
  readonly #centres: readonly Float32Array[];
  readonly #dimensions: number;

  constructor(seed: number, dimensions: number) {
    this.#random = randomFrom(seed);
    this.#dimensions = dimensions;
    this.#centres = Array.from({ length: CLUSTERS }, () => this.#direction());
  }

  any(): Float32Array {
    return this.near(pick(this.#centres, this.#random), SPREAD);
  }

  near(vector: Float32Array, spread: number): Float32Array {
    const noise = this.#direction();
    return normalised(vector.map((value, dimension) => value + spread * noise[dimension]!));
  }

  #direction(): Float32Array {
    return normalised(Float32Array.from({ length: this.#dimensions }, () => this.#normal()));
  }

  /** Near enough to a normal distribution. */
  #normal(): number {
    return this.#random() + this.#random() + this.#random() + this.#random() - 2;
  }
}

function normalised(vector: Float32Array): Float32Array {
  let sum = 0;
  for (const value of vector) sum += value * value;
  const length = Math.sqrt(sum) || 1;
  return vector.map((value) => value / length);
}
