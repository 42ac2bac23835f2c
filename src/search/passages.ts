import type { Database, Row } from "../database/database.ts";
import { QuarryError } from "../errors.ts";
import type { Ranked } from "./fusion.ts";

export interface Passage extends Ranked {
  readonly filename: string;
  readonly source: string;
  readonly seenOn: string | null;
  readonly title: string | null;
  readonly collection: string;
  readonly metadata: Readonly<Record<string, unknown>>;
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
  { tenant, limit }: { tenant: string; limit: number },
): Promise<Passage[]> {
  const passages = new Map<string, Passage>();
  for (let start = 0; start < ranked.length && passages.size < limit; start += LOOK_UP_AT_ONCE) {
    const some = ranked.slice(start, start + LOOK_UP_AT_ONCE);
    const rows = await lookUp(database, some, tenant);
    for (const hit of some) {
      const row = rows.get(keyOf(hit));
      if (!row) continue;
      const text = row.content.toLowerCase().replaceAll(/\s+/g, " ").trim();
      if (!passages.has(text)) passages.set(text, { ...hit, ...row });
    }
  }
  return [...passages.values()].slice(0, limit);
}

type Found = Omit<Passage, keyof Ranked>;

function keyOf({ documentId, chunkId }: { documentId: string; chunkId: string }): string {
  return `${documentId} ${chunkId}`;
}

/** A chunk that stands on several pages is shown where it stands first. */
async function lookUp(
  database: Database,
  hits: readonly Ranked[],
  tenant: string,
): Promise<Map<string, Found>> {
  const wanted = database.dialect.recordset("task_queue_chunk", 1);
  const rows = await database.query(
    {
      name: "search.passages",
      sql: `select c.chunk_id, c.document_id, c.content, c.heading_path, p.page_number, d.filename, d.source, d.seen_on, d.title, d.collection, d.metadata, d.tenant from ${wanted.from} join task_queue_chunk as c on c.document_id = ${wanted.column("document_id", "plain")} and c.chunk_id = ${wanted.column("chunk_id", "plain")} join task_queue_page as p on p.id = c.page_id join documents as d on d.id = c.document_id`,
    },
    [JSON.stringify(hits.map(({ chunkId, documentId }) => ({ chunk_id: chunkId, document_id: documentId })))],
  );
  const mine = rows
    .filter((row) => row.tenant === tenant)
    .sort((a, b) => Number(b.page_number) - Number(a.page_number));
  return new Map(
    mine.map((row) => [
      keyOf({ documentId: String(row.document_id), chunkId: String(row.chunk_id) }),
      foundOf(row),
    ]),
  );
}

function foundOf(row: Row): Found {
  const json = (value: unknown) => (typeof value === "string" ? JSON.parse(value) : value);
  return {
    filename: String(row.filename),
    source: String(row.source),
    seenOn: row.seen_on as string | null,
    collection: String(row.collection),
    metadata: json(row.metadata),
    title: row.title as string | null,
    pageNumber: Number(row.page_number),
    headingPath: json(row.heading_path),
    content: String(row.content),
  };
}

export interface MetadataFilter {
  readonly tenant: string;
  readonly collection?: string;
  /** Each equal to a text, a number, a boolean or null. */
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** Documents whose metadata have all the given values. */
export async function matchingDocuments(database: Database, filter: MetadataFilter): Promise<string[]> {
  const isPostgres = database.dialect.name === "postgres";
  const params: unknown[] = [];
  const mark = (value: unknown, type: string) =>
    isPostgres ? `$${params.push(value)}::${type}` : `?${params.push(value)}`;
  const terms = [`tenant = ${mark(filter.tenant, "text")}`];
  if (filter.collection !== undefined) terms.push(`collection = ${mark(filter.collection, "text")}`);
  for (const [name, value] of Object.entries(filter.metadata)) {
    refuseNested(name, value);
    const asJson = JSON.stringify({ [name]: value });
    terms.push(isPostgres ? `metadata @> ${mark(asJson, "jsonb")}` : holdsEntrySql(mark(asJson, "text")));
  }
  const rows = await database.query(`select id from documents where ${terms.join(" and ")}`, params);
  return rows.map((row) => String(row.id));
}

/** As PostgreSQL compares JSON: 1 is 1.0 but not "1" and not true. */
function holdsEntrySql(json: string): string {
  const kind = (alias: string) => `replace(${alias}.type, 'real', 'integer')`;
  return `exists (select 1 from json_each(documents.metadata) as has join json_each(${json}) as wanted on wanted.key = has.key where ${kind("has")} = ${kind("wanted")} and has.atom is wanted.atom)`;
}

function refuseNested(name: string, value: unknown): void {
  if (value === null || ["string", "number", "boolean"].includes(typeof value)) return;
  throw new QuarryError(
    "invalid_input",
    `metadata can be searched for a text, a number, true, false or null; ${JSON.stringify(name)} is something else`,
  );
}
