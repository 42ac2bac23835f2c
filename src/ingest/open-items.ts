import { sep } from "node:path";
import type { Database, Row } from "../database/database.ts";
import { itemOf } from "./item-rows.ts";
import type { ItemStatus, ItemType, Operation } from "./queue.ts";

const PAGE = 5_000;
export const OPEN: readonly ItemStatus[] = ["pending", "in_progress"];

/** A tenant's items that wait or are worked on, a page of ids at a time; those on a page may be deleted. */
export async function* openItems(database: Database, tenant: string): AsyncGenerator<string[]> {
  const { mark } = database.dialect;
  // $1 tenant, $2 the id before.
  const sql = `select queue_id from unified_queue where tenant_id = ${mark(1)} and ${isOneOf(OPEN)} and queue_id > ${mark(2)} order by queue_id limit ${PAGE}`;
  for await (const rows of pages(database, { name: "items.open", sql }, [tenant]))
    yield rows.map((row) => String(row.queue_id));
}

/** An item of a file or folder. */
export interface OpenItem {
  readonly id: string;
  readonly item_type: ItemType;
  readonly op: Operation;
  readonly priority: number;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly path: string;
}

/**
 * Items of a file or folder, and of all below it, that came before another item, or that this one has made itself if
 * these are asked for too; in that one's tenant and collection, and on its machine. A page at a time; those on a page may be deleted.
 */
export function openItemsAt(
  database: Database,
  path: string,
  { before, isOwnToo, statuses }: { before: string; isOwnToo: boolean; statuses: readonly ItemStatus[] },
): AsyncGenerator<OpenItem[]> {
  const isOwn = "coalesce(u.parent_id = d.queue_id, false)";
  const cameBefore = "coalesce(u.enqueued_at, u.created_at) <= coalesce(d.enqueued_at, d.created_at)";
  const came = isOwnToo ? `(${isOwn} or ${cameBefore})` : `(not ${isOwn} and ${cameBefore})`;
  return itemsAt(database, path, {
    other: before,
    statuses,
    came,
    name: isOwnToo ? "items.before_and_own" : "items.before",
  });
}

/** The same for those that came after another item. */
export function laterItemsAt(
  database: Database,
  path: string,
  { after, statuses }: { after: string; statuses: readonly ItemStatus[] },
): AsyncGenerator<OpenItem[]> {
  const came = "coalesce(u.enqueued_at, u.created_at) > coalesce(d.enqueued_at, d.created_at)";
  return itemsAt(database, path, { other: after, statuses, came, name: "items.after" });
}

/** What nobody reserved may be meant for either. */
const IS_SAME_MACHINE = "(u.seen_on = d.seen_on or u.seen_on = '' or d.seen_on = '')";

/** Asked for together, because an item may go from one status to another while pages are turned. */
async function* itemsAt(
  database: Database,
  path: string,
  {
    other,
    statuses,
    came,
    name,
  }: { other: string; statuses: readonly ItemStatus[]; came: string; name: string },
): AsyncGenerator<OpenItem[]> {
  const { mark } = database.dialect;
  // $1 the other item, $2 the id before.
  const sql = `select u.queue_id, u.item_type, u.op, u.priority, u.payload_json, u.metadata from unified_queue as d join unified_queue as u on u.tenant_id = d.tenant_id and u.collection = d.collection where d.queue_id = ${mark(1)} and u.queue_id <> d.queue_id and ${IS_SAME_MACHINE} and u.item_type in ('file', 'folder') and u.${isOneOf(statuses)} and ${came} and u.queue_id > ${mark(2)} order by u.queue_id limit ${PAGE}`;
  const start = path.endsWith(sep) ? path : path + sep;
  for await (const rows of pages(database, { name: [name, ...statuses].join("."), sql }, [other]))
    yield rows.flatMap((row) => {
      const item = openItemOf(row);
      return item && (item.path === path || item.path.startsWith(start)) ? [item] : [];
    });
}

function isOneOf(statuses: readonly ItemStatus[]): string {
  return `status in (${statuses.map((status) => `'${status}'`).join(", ")})`;
}

async function* pages(
  database: Database,
  statement: { name: string; sql: string },
  params: readonly unknown[],
): AsyncGenerator<Row[]> {
  for (let after = ""; ; ) {
    const rows = await database.query(statement, [...params, after]);
    if (rows.length > 0) yield rows;
    if (rows.length < PAGE) return;
    after = String(rows.at(-1)!.queue_id);
  }
}

/** Others may have written it, and what cannot be read is nobody's file. */
function openItemOf(row: Row): OpenItem | undefined {
  const { item_type, op, priority, payload, metadata } = itemOf(row);
  const path = payload.file_path ?? payload.folder_path;
  if (typeof path !== "string") return undefined;
  return { id: String(row.queue_id), item_type, op, priority, payload, metadata, path };
}
