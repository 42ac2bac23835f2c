/** Something that makes files searchable. What it was given before stays in its store. */
export interface Contender {
  readonly name: string;
  /** Resolves when everything in these files can be found. */
  take(paths: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

export interface Amounts {
  readonly documents: number;
  readonly pages: number;
  readonly chunks: number;
}
