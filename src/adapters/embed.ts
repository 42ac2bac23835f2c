/** Turns text into vectors of unit length. */
export interface Embedder {
  /** Name and variant: vectors of two models are never compared. */
  readonly model: string;
  readonly dimensions: number;
  /** What fits into its window; the rest of a longer text would be cut off. */
  readonly tokensMax: number;
  embed(texts: readonly string[], signal: AbortSignal): Promise<Float32Array[]>;
  /** How many tokens of this model each text has. */
  countTokens(texts: readonly string[], signal: AbortSignal): Promise<number[]>;
  close(): Promise<void>;
}
