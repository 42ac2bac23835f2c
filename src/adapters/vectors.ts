/** What a search may see. Whoever asks has to name the tenant. */
export interface IndexFilter {
  readonly tenant: string;
  readonly collection?: string;
  /** Only these documents. */
  readonly documentIds?: readonly string[];
}

export interface Point {
  /** Unique within its document: writing the same chunk again replaces it. */
  readonly chunkId: string;
  readonly documentId: string;
  readonly tenant: string;
  readonly collection: string;
  readonly vector: Float32Array;
}

export interface Hit {
  readonly chunkId: string;
  readonly documentId: string;
  /** Higher is nearer. Comparable within one answer only. */
  readonly score: number;
}

export interface Removal {
  readonly documentId: string;
  /** All of the document's when left out. */
  readonly chunkIds?: readonly string[];
}

/** Keeps vectors and finds the nearest. Every write may be repeated. */
export interface VectorStore {
  upsert(points: readonly Point[]): Promise<void>;
  remove(removal: Removal): Promise<void>;
  search(vector: Float32Array, options: { limit: number; filter: IndexFilter }): Promise<Hit[]>;
  count(filter: IndexFilter): Promise<number>;
  /** Takes everything out, whatever model it was made with. */
  clear(): Promise<void>;
  close(): Promise<void>;
}
