import { isoTime, pause } from "./clock.ts";
import type { Database } from "./database/database.ts";

/** A row as it is after something happened to it. */
export interface Change {
  readonly kind: "document" | "embedding_job";
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
];

const LOOK_EVERY_MS = 500;
const ROWS_PER_LOOK_MAX = 5_000;
/** A transaction is dated by its beginning: one that took long appears among what was seen before. */
const OVERLAP_MS = 2_000;

/**
 * Follows what happens to documents and jobs, whichever process does it, by looking at what was written since the
 * last look. A change is told once; changes of one row that follow each other closely are told as one.
 */
export async function* followChanges(
  database: Database,
  options: { since?: string | undefined; signal: AbortSignal },
): AsyncGenerator<Changes> {
  let since = options.since ?? (await timeOf(database));
  const told = new Map<string, string>();
  while (!options.signal.aborted) {
    const from = told.size === 0 ? since : isoTime(Date.parse(since) - OVERLAP_MS);
    const found = await Promise.all(SOURCES.map((source) => look(database, source, from)));
    const isIncomplete = found.some((rows) => rows.length === ROWS_PER_LOOK_MAX);
    const changes = found.flat().filter(({ row, at }) => told.get(String(row.id)) !== at);
    changes.sort((one, other) => (one.at < other.at ? -1 : 1));
    since = isIncomplete ? await timeOf(database) : (changes.at(-1)?.at ?? since);
    for (const { row, at } of changes) told.set(String(row.id), at);
    const oldest = Date.parse(since) - 2 * OVERLAP_MS;
    for (const [id, at] of told) if (Date.parse(at) < oldest) told.delete(id);
    yield { changes, isIncomplete };
    await pause(LOOK_EVERY_MS, options.signal);
  }
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
