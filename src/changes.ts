import { isoTime, pause } from "./clock.ts";
import type { Database } from "./database/database.ts";

/** A row as it is after something happened to it. */
export interface Change {
  readonly kind: "document" | "embedding_job" | "queue_item" | "task" | "rag_job";
  /** When it happened, by the database's clock; also where to go on from. */
  readonly at: string;
  readonly row: Readonly<Record<string, unknown>>;
}

export interface Changes {
  readonly changes: readonly Change[];
  /** More happened than could be told; what it was is in the lists. */
  readonly isIncomplete: boolean;
}

interface Source {
  readonly kind: Change["kind"];
  readonly table: string;
  readonly columns: readonly string[];
}

const JOB_COLUMNS = ["id", "status", "priority", "embedding_model", "attempts", "worker_id", "error_message"];
const SOURCES: readonly Source[] = [
  {
    kind: "document",
    table: "documents",
    columns: [
      ...["id", "filename", "tenant", "collection"],
      ...["ocr_status", "vector_index_status", "graphrag_index_status"],
    ],
  },
  { kind: "embedding_job", table: "embedding_jobs", columns: JOB_COLUMNS },
  { kind: "embedding_job", table: "embedding_job_failures", columns: JOB_COLUMNS },
  {
    kind: "queue_item",
    table: "unified_queue",
    columns: [
      ...["queue_id as id", "item_type", "op", "tenant_id", "collection", "status", "priority"],
      ...["worker_id", "document_id", "error_message"],
    ],
  },
  {
    kind: "task",
    table: "task_queue",
    columns: [
      ...["task_id as id", "entity_type", "entity_id", "function_name", "status", "retry_count"],
      ...["max_retries", "claimed_by", "error_message"],
    ],
  },
  {
    kind: "rag_job",
    table: "rag_jobs",
    columns: [
      ...["job_id as id", "rag_id", "filename", "status", "chunks_created", "embeddings_generated"],
      ...["tokens_used", "retry_count", "document_id", "error", "error_code"],
    ],
  },
];

const LOOK_EVERY_MS = 500;
const ROWS_PER_LOOK_MAX = 5_000;
/** A transaction is dated by its beginning: one that took long appears among what was seen before. */
const OVERLAP_MS = 5_000;

/**
 * Follows what happens to documents, jobs, items and tasks, whichever process does it, by looking at what was written since the
 * last look. A change is told once; changes of one row that follow each other closely are told as one. The first
 * answer is empty and comes when nothing can be missed any more. Going on from an earlier time, what happened shortly before it
 * is told again: it may have been written by a transaction that had not ended then.
 */
export async function* followChanges(
  database: Database,
  options: { since?: string | undefined; signal: AbortSignal },
): AsyncGenerator<Changes> {
  const startedAt = await timeOf(database);
  const told = new Told();
  let since =
    options.since === undefined ? startedAt : isoTime(Math.max(OVERLAP_MS, Date.parse(options.since)));
  if (options.since === undefined) {
    const { rows } = await lookSince(database, since);
    told.add(rows.filter(({ at }) => at <= startedAt));
  }
  yield { changes: [], isIncomplete: false };
  while (!options.signal.aborted) {
    const { rows, isIncomplete } = await lookSince(database, since);
    const changes = rows.filter((change) => !told.has(change));
    changes.sort((one, other) => (one.at < other.at ? -1 : 1));
    told.add(changes);
    const newest = isIncomplete ? await timeOf(database) : (changes.at(-1)?.at ?? since);
    // What a late transaction wrote is older than what was told before it.
    if (newest > since) since = newest;
    told.forgetBefore(Date.parse(since) - 2 * OVERLAP_MS);
    yield { changes, isIncomplete };
    await pause(LOOK_EVERY_MS, options.signal);
  }
}

/** Rows as they were last told. Two changes may bear the same time, so the whole row counts. */
class Told {
  readonly #rows = new Map<string, { readonly at: string; readonly content: string }>();

  has({ row, at }: Change): boolean {
    const last = this.#rows.get(String(row.id));
    return last?.at === at && last.content === JSON.stringify(row);
  }

  add(changes: readonly Change[]): void {
    for (const { row, at } of changes) this.#rows.set(String(row.id), { at, content: JSON.stringify(row) });
  }

  forgetBefore(ms: number): void {
    for (const [id, { at }] of this.#rows) if (Date.parse(at) < ms) this.#rows.delete(id);
  }
}

async function lookSince(
  database: Database,
  since: string,
): Promise<{ rows: Change[]; isIncomplete: boolean }> {
  const from = isoTime(Date.parse(since) - OVERLAP_MS);
  const found = await Promise.all(SOURCES.map((source) => look(database, source, from)));
  return { rows: found.flat(), isIncomplete: found.some((rows) => rows.length === ROWS_PER_LOOK_MAX) };
}

async function look(database: Database, { kind, table, columns }: Source, from: string): Promise<Change[]> {
  const sql = `select ${columns.join(", ")}, updated_at from ${table} where updated_at >= ${database.dialect.mark(1)} order by updated_at limit ${ROWS_PER_LOOK_MAX}`;
  const rows = await database.query({ name: `changes.${table}`, sql }, [from]);
  return rows.map(({ updated_at: at, ...row }) => ({ kind, at: String(at), row }));
}

async function timeOf(database: Database): Promise<string> {
  if (database.dialect.name === "sqlite") return isoTime(database.clock.now());
  const [row] = await database.query("select now() as now");
  return String(row!.now);
}
