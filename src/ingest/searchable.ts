import { pause } from "../clock.ts";
import type { Database } from "../database/database.ts";
import { openWork } from "../documents/progress.ts";

/** How far a document is that somebody waits for. "gone": it was deleted or replaced meanwhile. */
export type Reached = "searchable" | "partly" | "failed" | "gone";

const LOOK_EVERY_MS = 250;

/** Waits for documents to be searchable. All that are waited for are looked up together. */
export class SearchableDocuments {
  readonly #database: Database;
  readonly #waiting = new Map<string, Set<(reached: Reached) => void>>();
  #looking: Promise<void> | undefined;

  constructor(database: Database) {
    this.#database = database;
  }

  async reached(id: string, signal: AbortSignal): Promise<Reached> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<Reached>();
    const waiting = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiting.add(resolve));
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    this.#looking ??= this.#look();
    try {
      return await promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
      waiting.delete(resolve);
      if (waiting.size === 0 && this.#waiting.get(id) === waiting) this.#waiting.delete(id);
    }
  }

  async #look(): Promise<void> {
    while (this.#waiting.size > 0) {
      for (const [id, reached] of await this.#states().catch(() => new Map<string, Reached>()))
        for (const resolve of this.#waiting.get(id) ?? []) resolve(reached);
      await pause(LOOK_EVERY_MS);
    }
    this.#looking = undefined;
  }

  /** Of those that have got somewhere. */
  async #states(): Promise<Map<string, Reached>> {
    const { dialect } = this.#database;
    const asked = [...this.#waiting.keys()];
    const rows = await this.#database.query(
      {
        name: "items.searchable",
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
