import type { IndexFilter } from "../adapters/vectors.ts";
import type { Database, Row } from "../database/database.ts";
import type { Ranked } from "./fusion.ts";

export interface Passage extends Ranked {
  readonly filename: string;
  readonly title: string | null;
  readonly pageNumber: number;
  readonly headingPath: readonly string[];
  readonly content: string;
}

/** Ids are looked up a few at a time, until enough passages are found. */
const LOOK_UP_AT_ONCE = 50;

/**
 * What the index found, as it stands in the database: what was deleted meanwhile is left out, and so is everything
 * that is not the tenant's, whatever the index says. The same text in several places is shown once.
 */
export async function findPassages(
  database: Database,
  ranked: readonly Ranked[],
  { filter, limit }: { filter: IndexFilter | undefined; limit: number },
): Promise<Passage[]> {
  const passages: Passage[] = [];
  const texts = new Set<string>();
  for (let start = 0; start < ranked.length && passages.length < limit; start += LOOK_UP_AT_ONCE) {
    const some = ranked.slice(start, start + LOOK_UP_AT_ONCE);
    const rows = await lookUp(database, some, filter!);
    for (const hit of some) {
      const row = rows.get(`${hit.documentId} ${hit.chunkId}`);
      if (!row || texts.has(row.content) || passages.length === limit) continue;
      texts.add(row.content);
      passages.push({ ...hit, ...row });
    }
  }
  return passages;
}

type Found = Omit<Passage, keyof Ranked>;

async function lookUp(
  database: Database,
  hits: readonly Ranked[],
  filter: IndexFilter,
): Promise<Map<string, Found>> {
  const { dialect } = database;
  const tenant = dialect.name === "postgres" ? "$3::text" : "?3";
  const rows = await database.query(
    {
      name: "search.passages",
      sql: `select c.chunk_id, c.document_id, c.content, c.heading_path, p.page_number, d.filename, d.title from task_queue_chunk as c join task_queue_page as p on p.id = c.page_id join documents as d on d.id = c.document_id where ${dialect.isOneOf("c.document_id", 1, "uuid")} and ${dialect.isOneOf("c.chunk_id", 2, "text")} and d.tenant = ${tenant} order by p.page_number desc`,
    },
    [
      dialect.keys([...new Set(hits.map(({ documentId }) => documentId))]),
      dialect.keys([...new Set(hits.map(({ chunkId }) => chunkId))]),
      filter.tenant,
    ],
  );
  return new Map(rows.map((row) => [`${row.document_id} ${row.chunk_id}`, foundOf(row)]));
}

function foundOf(row: Row): Found {
  const headingPath = typeof row.heading_path === "string" ? JSON.parse(row.heading_path) : row.heading_path;
  return {
    filename: String(row.filename),
    title: row.title as string | null,
    pageNumber: Number(row.page_number),
    headingPath,
    content: String(row.content),
  };
}

/** Documents whose metadata have all the given values. */
export async function matchingDocuments(
  database: Database,
  wanted: { tenant: string; collection?: string; metadata: Readonly<Record<string, unknown>> },
): Promise<string[]> {
  const isPostgres = database.dialect.name === "postgres";
  const params: unknown[] = [];
  const mark = (value: unknown, type: string) =>
    isPostgres ? `$${params.push(value)}::${type}` : `?${params.push(value)}`;
  const terms = [`tenant = ${mark(wanted.tenant, "text")}`];
  if (wanted.collection !== undefined) terms.push(`collection = ${mark(wanted.collection, "text")}`);
  if (isPostgres) terms.push(`metadata @> ${mark(JSON.stringify(wanted.metadata), "jsonb")}`);
  else
    for (const [name, value] of Object.entries(wanted.metadata)) {
      // Compared as JSON, so that 1 and "1" differ as they do in PostgreSQL.
      terms.push(`(metadata -> ${mark(name, "text")}) = ${mark(JSON.stringify(value), "text")}`);
    }
  const rows = await database.query(`select id from documents where ${terms.join(" and ")}`, params);
  return rows.map((row) => String(row.id));
}
