import { basename, sep } from "node:path";
import type { Database } from "../database/database.ts";
import { isQuarryError } from "../errors.ts";
import type { DocumentQueues } from "./queues.ts";
import { removeDocuments } from "./remove.ts";

/** Whose documents, and of which collection and machine; of all, unless said. */
export interface Place {
  readonly tenant: string;
  readonly collection?: string | undefined;
  /** Those of which nobody said where they were seen count too. */
  readonly seenOn?: string | undefined;
}

/** Which of them: this one, with this source, below this folder, older than that but for some, or all. */
export type Where =
  | { readonly id: string }
  | { readonly source: string }
  | { readonly folder: string }
  | { readonly createdBefore: string; readonly except: readonly string[] }
  | "all";

export interface SourceRow {
  readonly id: string;
  readonly source: string;
}

interface Parts {
  readonly database: Database;
  readonly queues: DocumentQueues;
}

const PAGE = 200;
const PASSES_MAX = 5;

/** Current documents by where they came from, in the order of their ids, a page at a time. */
export async function* documentsFrom(
  { database }: Parts,
  place: Place,
  where: Where,
): AsyncGenerator<SourceRow[]> {
  for (let after: string | undefined; ; ) {
    const { terms, params } = termsOf(database, place, where);
    if (after !== undefined) terms.push(`id > ${database.dialect.mark(params.push(after))}`);
    const rows = await database.query(
      `select id, source from documents where ${terms.join(" and ")} and replaced_by is null order by id limit ${PAGE}`,
      params,
    );
    if (rows.length > 0) yield rows.map((row) => ({ id: String(row.id), source: String(row.source) }));
    if (rows.length < PAGE) return;
    after = String(rows.at(-1)!.id);
  }
}

/** Deletes them, some at a time. Returns how many. */
export async function removeFrom(parts: Parts, place: Place, where: Where): Promise<number> {
  let removed = 0;
  // A version that was taken in while its predecessor went is found by the next pass.
  for (let pass = 0; pass < PASSES_MAX; pass++) {
    const found = await removePass(parts, place, where);
    removed += found;
    if (found === 0) break;
  }
  return removed;
}

async function removePass(parts: Parts, place: Place, where: Where): Promise<number> {
  let removed = 0;
  for await (const rows of documentsFrom(parts, place, where)) {
    const ids = rows.map(({ id }) => id);
    await removeDocuments(parts, ids);
    removed += ids.length;
  }
  return removed;
}

/**
 * The file or folder has another name now. Nothing is read or embedded again. What was known under the new name is
 * what the move has overwritten, and goes. Returns how many documents moved.
 */
export async function moveSource(
  parts: Parts,
  place: Place,
  move: { from: string; to: string; isFolder: boolean },
): Promise<number> {
  const { from, to, isFolder } = move;
  let moved = 0;
  const where = isFolder ? { folder: from } : { source: from };
  for await (const rows of documentsFrom(parts, place, where)) {
    for (const { id, source } of rows) {
      await moveOne(parts, place, id, to + source.slice(from.length));
      moved++;
    }
  }
  return moved;
}

async function moveOne(parts: Parts, place: Place, id: string, source: string): Promise<void> {
  const { database } = parts;
  const { mark, param, now } = database.dialect;
  const sql = `update documents set source = ${mark(2)}, filename = ${mark(3)}, seen_on = coalesce(seen_on, ${param(4, "text")}), updated_at = ${now} where id = ${mark(5)}`;
  const params = [database.now(), source, basename(source).slice(0, 500), place.seenOn ?? null, id];
  try {
    await database.query({ name: "documents.move", sql }, params);
  } catch (error) {
    if (!isQuarryError(error, "constraint_violated")) throw error;
    for await (const rows of documentsFrom(parts, place, { source })) {
      await removeDocuments(
        parts,
        rows.map((row) => row.id).filter((other) => other !== id),
      );
    }
    await database.query({ name: "documents.move", sql }, params);
  }
}

function termsOf(database: Database, { tenant, collection, seenOn }: Place, where: Where) {
  const { mark } = database.dialect;
  const params: unknown[] = [tenant];
  const terms = [`tenant = ${mark(1)}`];
  if (collection !== undefined) terms.push(`collection = ${mark(params.push(collection))}`);
  if (seenOn !== undefined) terms.push(`(seen_on is null or seen_on = ${mark(params.push(seenOn))})`);
  if (where !== "all" && "id" in where)
    terms.push(database.dialect.isOneOf("id", params.push(database.dialect.keys([where.id])), "uuid"));
  if (where !== "all" && "source" in where) terms.push(`source = ${mark(params.push(where.source))}`);
  if (where !== "all" && "folder" in where) terms.push(...belowTerms(database, where.folder, params));
  if (where !== "all" && "createdBefore" in where) {
    terms.push(`created_at < ${mark(params.push(where.createdBefore))}`);
    const excepted = database.dialect.keys(where.except);
    terms.push(`not (${database.dialect.isOneOf("id", params.push(excepted), "uuid")})`);
  }
  return { terms, params };
}

/** Compared letter by letter: patterns would need escapes, and ranges depend on the collation. */
function belowTerms(database: Database, folder: string, params: unknown[]): string[] {
  const { mark } = database.dialect;
  const start = folder.endsWith(sep) ? folder : folder + sep;
  // The databases count characters; a string's length counts some of them twice.
  const length = mark(params.push([...start].length));
  const prefix = mark(params.push(start));
  const isPostgres = database.dialect.name === "postgres";
  return [
    `substr(source, 1, ${isPostgres ? `${length}::integer` : length}) = ${isPostgres ? `${prefix}::text` : prefix}`,
  ];
}
