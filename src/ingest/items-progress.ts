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
  const counts = await database.query(
    {
      name: "items.progress",
      sql: `${family} select status, count(*) as total from (${members("status")}) as m group by status`,
    },
    params,
  );
  const documents = await database.query(
    {
      name: "items.documents",
      sql: `${family} select distinct document_id as id from (${members("document_id")}) as m where document_id is not null limit ${DOCUMENTS_FOLLOWED_MAX}`,
    },
    params,
  );
  const count = (status: string) => Number(counts.find((row) => row.status === status)?.total ?? 0);
  return {
    pending: count("pending"),
    inProgress: count("in_progress"),
    done: count("done"),
    failed: count("failed"),
    documentIds: documents.map((row) => String(row.id)),
  };
}

/** In numbers, however many they are. */
export interface ItemsOutcome {
  /** How many documents were added, replaced, left unchanged … */
  readonly changes: Readonly<Record<string, number>>;
  readonly skipped: number;
  readonly removed: number;
  readonly failed: number;
}

export async function itemsOutcome(database: Database, ids: readonly string[]): Promise<ItemsOutcome> {
  const isPostgres = database.dialect.name === "postgres";
  const json = isPostgres ? "cast(result_json as json)" : "result_json";
  const sum = (field: string) => `coalesce(sum(cast(${json} ->> '${field}' as integer)), 0) as ${field}`;
  const rows = await database.query(
    {
      name: "items.outcome",
      sql: `${familyOf(database)} select status, ${json} ->> 'change' as change, count(*) as total, ${sum("skipped")}, ${sum("removed")} from (${members("status, u.result_json")}) as m group by 1, 2`,
    },
    [database.dialect.keys(ids)],
  );
  const total = (among: typeof rows, column: string) =>
    among.reduce((all, row) => all + Number(row[column]), 0);
  const ended = rows.filter(({ status }) => status === "done");
  const changed = ended.filter(({ change }) => change !== null);
  return {
    changes: Object.fromEntries(changed.map(({ change, total: count }) => [String(change), Number(count)])),
    skipped: total(ended, "skipped"),
    removed: total(ended, "removed"),
    failed: total(
      rows.filter(({ status }) => status === "failed"),
      "total",
    ),
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
      sql: `${familyOf(database)} select * from (${members("*", "family.depth as depth")}) as m order by case status when 'failed' then 0 else 1 end, depth, created_at, queue_id limit ${database.dialect.mark(2)}`,
    },
    [database.dialect.keys(ids), options.limit],
  );
  return rows.map(itemOf);
}

/**
 * $1 ids. Those who find others, and how far they are from what was asked for: a library finds a folder, which finds
 * files, so families are never deep. Files are many and find nobody; they are counted in the index of children.
 */
function familyOf({ dialect }: Database): string {
  const roots = `select u.queue_id, 0 from unified_queue as u where ${dialect.isOneOf("u.queue_id", 1, "text")}`;
  const finders =
    "select c.queue_id, family.depth + 1 from family join unified_queue as c on c.parent_id = family.id where c.item_type in ('folder', 'project', 'library', 'rename') and family.depth < 5";
  return `with recursive family(id, depth) as (${roots} union ${finders})`;
}

/** What was asked for, and what was found; an item that is both is there once. */
function members(columns: string, depth?: string): string {
  const select = (where: string) => `select u.${columns}${depth ? `, ${depth}` : ""} ${where}`;
  const asked = select(
    "from family join unified_queue as u on u.queue_id = family.id where family.depth = 0 and (u.parent_id is null or u.parent_id not in (select id from family))",
  );
  const found = select(
    "from (select id, min(depth) as depth from family group by id) as family join unified_queue as u on u.parent_id = family.id",
  );
  return `${asked} union all ${found}`;
}
