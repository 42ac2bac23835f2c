/** The best of many by a score, in bounded space: what falls behind is dropped each time the list is full. */
export class Nearest {
  readonly #limit: number;
  readonly #scores: Float64Array;
  readonly #ids: Float64Array;
  #size = 0;
  /** A score has to be above this to be kept. */
  floor = Number.NEGATIVE_INFINITY;

  constructor(limit: number) {
    this.#limit = limit;
    this.#scores = new Float64Array(2 * limit);
    this.#ids = new Float64Array(2 * limit);
  }

  add(id: number, score: number): void {
    if (score <= this.floor) return;
    this.#scores[this.#size] = score;
    this.#ids[this.#size++] = id;
    if (this.#size === this.#ids.length) this.#dropTheRest();
  }

  /** Best first. */
  ids(): number[] {
    return this.#best().map((position) => this.#ids[position]!);
  }

  #best(): number[] {
    const positions = Array.from({ length: this.#size }, (_none, position) => position);
    positions.sort((a, b) => this.#scores[b]! - this.#scores[a]!);
    return positions.slice(0, this.#limit);
  }

  #dropTheRest(): void {
    const best = this.#best();
    const scores = best.map((position) => this.#scores[position]!);
    this.#ids.set(best.map((position) => this.#ids[position]!));
    this.#scores.set(scores);
    this.#size = best.length;
    this.floor = scores.at(-1)!;
  }
}
