import type { Hit, IndexFilter, Removal } from "./vectors.ts";

export interface TextEntry {
  readonly chunkId: string;
  readonly documentId: string;
  readonly tenant: string;
  readonly collection: string;
  /** The document's title and the headings above the chunk: they are searched but not shown. */
  readonly context: string;
  readonly content: string;
}

/** Finds chunks by their words (BM25). Every write may be repeated. */
export interface TextIndex {
  upsert(entries: readonly TextEntry[]): Promise<void>;
  remove(removal: Removal): Promise<void>;
  /**
   * Any words a person may type; nothing in them is syntax that can fail. A score says how much of what the query
   * asks for a chunk holds, 0 to 1, rare words counting more: low ones mean that words alone do not lead there.
   */
  search(query: string, options: { limit: number; filter: IndexFilter }): Promise<Hit[]>;
  /** Takes everything out. */
  clear(): Promise<void>;
  close(): Promise<void>;
}
