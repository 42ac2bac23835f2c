import type { Extraction } from "./entities.ts";
import type { Hit, IndexFilter } from "./vectors.ts";

/** What was found in one chunk. Writing a chunk again replaces what it said before. */
export interface ChunkGraph {
  /** task_queue_chunk.id */
  readonly chunkKey: string;
  readonly chunkId: string;
  readonly documentId: string;
  readonly tenant: string;
  readonly collection: string;
  readonly extraction: Extraction;
}

export interface GraphEntity {
  readonly id: string;
  readonly name: string;
  readonly type: string;
  readonly mentions: number;
}

export interface GraphRelation {
  readonly source: GraphEntity;
  readonly target: GraphEntity;
  readonly type: string;
  readonly confidence: number;
  /** How many chunks say so. */
  readonly mentions: number;
}

/** Entities, merged by normalised name and type, and the relations between them, each with where it was found. */
export interface GraphStore {
  put(chunks: readonly ChunkGraph[]): Promise<void>;
  /** Entities nobody mentions any more go with their last chunk. */
  remove(removal: { readonly documentId: string; readonly chunkKeys?: readonly string[] }): Promise<void>;
  /** Entities whose normalised name is one of these. */
  find(names: readonly string[], filter: IndexFilter): Promise<GraphEntity[]>;
  /** Chunks that mention these entities or their neighbours, best first. */
  chunksNear(entityIds: readonly string[], options: { limit: number; filter: IndexFilter }): Promise<Hit[]>;
  relationsOf(entityId: string, filter: IndexFilter): Promise<GraphRelation[]>;
  list(options: { limit: number; filter: IndexFilter; type?: string; name?: string }): Promise<GraphEntity[]>;
  /** Rejects when the store does not answer, or cannot be used as it is set up. */
  check(): Promise<void>;
  close(): Promise<void>;
}
