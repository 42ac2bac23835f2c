/** Counts as the model does, at once: whoever cuts text to size asks it thousands of times a page. */
export interface Tokenizer {
  /** Without the marks that a model puts before and after a text. */
  count(text: string): number;
}

export type TextUse = "passage" | "question";

export interface Embedded {
  /** In the order of the texts. */
  readonly vectors: readonly Float32Array[];
  /** What the model read for all of them together, in its own count: what services charge for. */
  readonly tokens: number;
}

/** Turns text into vectors of unit length. */
export interface Embedder {
  /** Name and variant: vectors of two models are never compared. */
  readonly model: string;
  readonly dimensions: number;
  /** How many tokens of a text its window holds. */
  readonly tokensMax: number;
  readonly tokenizer: Tokenizer;
  /** Texts are passages unless `use` says that they are questions: some models want to be told. */
  embed(texts: readonly string[], signal: AbortSignal, use?: TextUse): Promise<Embedded>;
  close(): Promise<void>;
}
