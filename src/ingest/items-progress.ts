import type { Database } from "../database/database.ts";
import { type Item, itemOf } from "./item-rows.ts";

export interface ItemsProgress {
  /** Of the items that were asked for and of all that their scans have found. */
  readonly pending: number;
  readonly inProgress: number;
  readonly done: number;
  readonly failed: number;
  /** Documents that they became so far; the first so many of them. */
  readonly documentIds: readonly string[];
}

/** More than this are not followed one by one. */
export const DOCUMENTS_FOLLOWED_MAX = 2_000;

/** How far some items are, with everything that came of them. */
export async function itemsProgress(database: Database, ids: readonly string[]): Promise<ItemsProgress> {
  const family = familyOf(database);
  const params = [database.dialect.keys(ids)];
  const [counts, documents] = await Promise.all([
    database.query(
      {
        name: "items.progress",
        sql: `${family} select u.status, count(*) as total from family join unified_queue as u on u.queue_id = family.id group by u.status`,
      },
      params,
    ),
    database.query(
      {
        name: "items.documents",
        sql: `${family} select distinct u.document_id as id from family join unified_queue as u on u.queue_id = family.id where u.document_id is not null limit ${DOCUMENTS_FOLLOWED_MAX}`,
      },
      params,
    ),
  ]);
  const count = (status: string) => Number(counts.find((row) => row.status === status)?.total ?? 0);
  return {
    pending: count("pending"),
    inProgress: count("in_progress"),
    done: count("done"),
    failed: count("failed"),
    documentIds: documents.map((row) => String(row.id)),
  };
}

/** The items themselves, those that ended badly or were asked for first. */
export async function itemsFamily(
  database: Database,
  ids: readonly string[],
  options: { limit: number },
): Promise<Item[]> {
  const rows = await database.query(
    {
      name: "items.family",
      sql: `${familyOf(database)} select u.* from family join unified_queue as u on u.queue_id = family.id order by case u.status when 'failed' then 0 else 1 end, family.depth, u.created_at, u.queue_id limit ${database.dialect.mark(2)}`,
    },
    [database.dialect.keys(ids), options.limit],
  );
  return rows.map(itemOf);
}

/** $1 ids. A library finds a folder, which finds files: families are never deep. */
function familyOf({ dialect }: Database): string {
  const roots = `select u.queue_id, 0 from unified_queue as u where ${dialect.isOneOf("u.queue_id", 1, "text")}`;
  const children =
    "select c.queue_id, family.depth + 1 from family join unified_queue as c on c.parent_id = family.id where family.depth < 5";
  return `with recursive family(id, depth) as (${roots} union ${children})`;
}
