import type { Database } from "../database/database.ts";

/** What the lanes need to know of a document. None of it changes once the document has been split. */
export interface DocumentFacts {
  readonly id: string;
  readonly tenant: string;
  readonly collection: string;
  readonly source: string;
  readonly filename: string;
  readonly title: string | undefined;
  readonly originalPath: string | undefined;
  readonly contentHash: string;
  readonly furniture: readonly string[];
  readonly totalPages: number | undefined;
  readonly chunking: DocumentChunking | undefined;
}

/** How a document is cut, where not as usual. */
export interface DocumentChunking {
  /** Most tokens of a chunk, with what stands before it. */
  readonly tokens: number;
  readonly overlap: number;
}

const REMEMBERED_MAX = 1_000;

/** Looks documents up in batches and remembers the last ones: a lane works on one document's rows for a while. */
export class FactBook {
  readonly #database: Database;
  readonly #remembered = new Map<string, DocumentFacts>();

  constructor(database: Database) {
    this.#database = database;
  }

  async of(ids: Iterable<string>): Promise<Map<string, DocumentFacts>> {
    const wanted = [...new Set(ids)];
    const missing = wanted.filter((id) => !this.#remembered.has(id));
    if (missing.length > 0) {
      const { dialect } = this.#database;
      const rows = await this.#database.query(
        {
          name: "documents.facts",
          sql: `select id, tenant, collection, source, filename, title, original_path, content_hash, furniture, total_pages, chunking from documents where ${dialect.isOneOf("id", 1, "uuid")}`,
        },
        [dialect.keys(missing)],
      );
      for (const row of rows) this.#remember(factsOf(row));
    }
    const found = new Map<string, DocumentFacts>();
    for (const id of wanted) {
      const facts = this.#remembered.get(id);
      if (facts) found.set(id, facts);
    }
    return found;
  }

  #remember(facts: DocumentFacts): void {
    this.#remembered.set(facts.id, facts);
    if (this.#remembered.size <= REMEMBERED_MAX) return;
    this.#remembered.delete(this.#remembered.keys().next().value!);
  }
}

function factsOf(row: Record<string, unknown>): DocumentFacts {
  const parsed = (value: unknown) => (typeof value === "string" ? JSON.parse(value) : value);
  return {
    id: String(row.id),
    tenant: String(row.tenant),
    collection: String(row.collection),
    source: String(row.source),
    filename: String(row.filename),
    title: (row.title as string | null) ?? undefined,
    originalPath: (row.original_path as string | null) ?? undefined,
    contentHash: String(row.content_hash),
    furniture: parsed(row.furniture) ?? [],
    totalPages: (row.total_pages as number | null) ?? undefined,
    chunking: parsed(row.chunking) ?? undefined,
  };
}
