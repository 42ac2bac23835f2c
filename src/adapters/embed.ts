/** Counts as the model does, at once: whoever cuts text to size asks it thousands of times a page. */
export interface Tokenizer {
  /** Without the marks that a model puts before and after a text. */
  count(text: string): number;
}

/** Turns text into vectors of unit length. */
export interface Embedder {
  /** Name and variant: vectors of two models are never compared. */
  readonly model: string;
  readonly dimensions: number;
  /** How many tokens of a text its window holds. */
  readonly tokensMax: number;
  readonly tokenizer: Tokenizer;
  embed(texts: readonly string[], signal: AbortSignal): Promise<Float32Array[]>;
  close(): Promise<void>;
}
