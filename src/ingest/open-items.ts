import { sep } from "node:path";
import type { Database, Row } from "../database/database.ts";
import type { ItemStatus } from "./queue.ts";

type OpenStatus = Extract<ItemStatus, "pending" | "in_progress">;

/** Ids alone: payloads can be large. */
const PAGE = 5_000;

/** A tenant's items that wait or run, a page of ids at a time; those on a page may be deleted. */
export async function* openItems(
  database: Database,
  { tenant_id: tenant, status }: { tenant_id: string; status: OpenStatus },
): AsyncGenerator<string[]> {
  const { mark } = database.dialect;
  // $1 tenant, $2 status, $3 the id before.
  const sql = `select queue_id from unified_queue where tenant_id = ${mark(1)} and status = ${mark(2)} and queue_id > ${mark(3)} order by queue_id limit ${PAGE}`;
  for await (const rows of pages(database, { name: "items.open", sql }, [tenant, status]))
    yield rows.map((row) => String(row.queue_id));
}

/** The same for items of files and folders below a folder that came before another item, or that this one had found itself. */
export async function* openItemsBelow(
  database: Database,
  folder: string,
  { before, status }: { before: string; status: OpenStatus },
): AsyncGenerator<string[]> {
  const { mark } = database.dialect;
  // $1 the other item, $2 status, $3 the id before.
  const sql = `select u.queue_id, u.payload_json from unified_queue as d join unified_queue as u on u.tenant_id = d.tenant_id and u.collection = d.collection where d.queue_id = ${mark(1)} and u.queue_id <> d.queue_id and u.item_type in ('file', 'folder') and u.status = ${mark(2)} and (u.parent_id = d.queue_id or coalesce(u.enqueued_at, u.created_at) <= coalesce(d.enqueued_at, d.created_at)) and u.queue_id > ${mark(3)} order by u.queue_id limit ${PAGE}`;
  const start = folder.endsWith(sep) ? folder : folder + sep;
  for await (const rows of pages(database, { name: "items.open_below", sql }, [before, status]))
    yield rows.filter((row) => pathOf(row)?.startsWith(start)).map((row) => String(row.queue_id));
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

/** Others may have written it. */
function pathOf({ payload_json: json }: Row): string | undefined {
  try {
    const { file_path: file, folder_path: folder } = JSON.parse(String(json));
    const path: unknown = file ?? folder;
    return typeof path === "string" ? path : undefined;
  } catch {
    return undefined;
  }
}
