import { pause } from "../clock.ts";
import type { Database } from "../database/database.ts";
import { openWork } from "./progress.ts";

/** How far a document is that somebody waits for. "gone": it was deleted or replaced meanwhile. */
export type Reached = "searchable" | "partly" | "failed" | "gone";

/** What has become of a document's text so far. */
export interface ChunkCounts {
  readonly chunks: number;
  readonly embedded: number;
  /** Of the texts that were embedded. */
  readonly tokens: number;
}

interface Waiting {
  readonly resolve: (reached: Reached) => void;
  readonly onCounts: ((counts: ChunkCounts) => void) | undefined;
}

const LOOK_EVERY_MS = 250;
/** Sooner when chunks have become searchable, but not more often than this. */
const LOOK_AGAIN_MS = 100;
/** The lane that is woken then, because their graph is next. */
const AFTER_VECTORS = "chunks.graphrag";

/** Waits for documents to be searchable. All that are waited for are looked up together. */
export class SearchableDocuments {
  readonly #database: Database;
  readonly #waiting = new Map<string, Set<Waiting>>();
  #looking: Promise<void> | undefined;

  constructor(database: Database) {
    this.#database = database;
  }

  /** `onCounts` is told, as it grows, how much is done. */
  async reached(id: string, signal: AbortSignal, onCounts?: (counts: ChunkCounts) => void): Promise<Reached> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<Reached>();
    const all = this.#waiting.get(id) ?? new Set();
    const waiting = { resolve, onCounts };
    this.#waiting.set(id, all.add(waiting));
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    this.#looking ??= this.#look();
    try {
      return await promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
      all.delete(waiting);
      if (all.size === 0 && this.#waiting.get(id) === all) this.#waiting.delete(id);
    }
  }

  /** How much is done of these documents; those without chunks are not there. */
  async counts(ids: readonly string[]): Promise<Map<string, ChunkCounts>> {
    const { dialect } = this.#database;
    const isDone = "vector_status = 'completed'";
    const rows = await this.#database.query(
      {
        name: "documents.chunk_counts",
        sql: `select document_id, count(*) as chunks, sum(case when ${isDone} then 1 else 0 end) as embedded, sum(case when ${isDone} then token_count else 0 end) as tokens from task_queue_chunk where ${dialect.isOneOf("document_id", 1, "uuid")} group by document_id`,
      },
      [dialect.keys(ids)],
    );
    return new Map(
      rows.map((row) => [
        String(row.document_id),
        { chunks: Number(row.chunks), embedded: Number(row.embedded), tokens: Number(row.tokens) },
      ]),
    );
  }

  async #look(): Promise<void> {
    let news = new AbortController();
    const unsubscribe = this.#database.subscribe(AFTER_VECTORS, () => news.abort());
    while (this.#waiting.size > 0) {
      news = new AbortController();
      await this.#tellCounts().catch(() => undefined);
      for (const [id, reached] of await this.#states().catch(() => new Map<string, Reached>()))
        for (const { resolve } of this.#waiting.get(id) ?? []) resolve(reached);
      await pause(LOOK_AGAIN_MS);
      await pause(LOOK_EVERY_MS - LOOK_AGAIN_MS, news.signal);
    }
    unsubscribe();
    this.#looking = undefined;
  }

  async #tellCounts(): Promise<void> {
    const asked = [...this.#waiting].filter(([, all]) => [...all].some(({ onCounts }) => onCounts));
    if (asked.length === 0) return;
    for (const [id, counts] of await this.counts(asked.map(([id]) => id)))
      for (const { onCounts } of this.#waiting.get(id) ?? []) onCounts?.(counts);
  }

  /** Of those that have got somewhere. */
  async #states(): Promise<Map<string, Reached>> {
    const { dialect } = this.#database;
    const asked = [...this.#waiting.keys()];
    const rows = await this.#database.query(
      {
        name: "documents.searchable",
        sql: `select d.id, d.vector_index_status as status, ${openWork("vector")} as is_open, exists (select 1 from task_queue_chunk as c where c.document_id = d.id and c.vector_status = 'completed') as has_some from documents as d where ${dialect.isOneOf("d.id", 1, "uuid")}`,
      },
      [dialect.keys(asked)],
    );
    const states = new Map<string, Reached>();
    const found = new Set(rows.map((row) => String(row.id)));
    for (const id of asked) if (!found.has(id)) states.set(id, "gone");
    for (const row of rows) {
      if (row.status === "completed") states.set(String(row.id), "searchable");
      else if (!row.is_open) states.set(String(row.id), row.has_some ? "partly" : "failed");
    }
    return states;
  }
}
