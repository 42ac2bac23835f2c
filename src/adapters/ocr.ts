export interface Recognised {
  /** Paragraphs apart, lines joined; empty when nothing is written on the picture. */
  readonly markdown: string;
  /** 0 to 1. */
  readonly confidence: number;
  /** What a model read and wrote for it, in its own count. Engines that count nothing leave it out. */
  readonly tokens?: number;
}

/** Reads pictures of text. */
export interface Ocr {
  /** Changes whenever the same picture may give other text: engine, model and languages. */
  readonly version: string;
  recognise(picture: Uint8Array, signal: AbortSignal): Promise<Recognised>;
  close(): Promise<void>;
}
