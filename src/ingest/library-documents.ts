import type { Database } from "../database/database.ts";
import { isQuarryError } from "../errors.ts";
import type { Items } from "./items.ts";

const PAGE = 200;

export interface LibraryDocument {
  readonly id: string;
  /** Where it came from, and on which machine, where that is known. */
  readonly source: string;
  readonly seenOn: string | undefined;
}

/** The current documents of a library, a page at a time; those on a page may be deleted. */
export async function* libraryDocuments(
  database: Database,
  { tenant, collection }: { tenant: string; collection: string },
  name: string,
): AsyncGenerator<LibraryDocument[]> {
  const { mark } = database.dialect;
  // $1 tenant, $2 collection, $3 name, $4 the source before, $5 its machine.
  const machine = "coalesce(seen_on, '')";
  const sql = `select id, source, seen_on from documents where tenant = ${mark(1)} and collection = ${mark(2)} and metadata ->> 'library_name' = ${mark(3)} and (source, ${machine}) > (${mark(4)}, ${mark(5)}) and replaced_by is null order by source, ${machine} limit ${PAGE}`;
  for (let after = ["", ""]; ; ) {
    const rows = await database.query({ name: "libraries.documents", sql }, [
      tenant,
      collection,
      name,
      ...after,
    ]);
    const found = rows.map((row) => ({
      id: String(row.id),
      source: String(row.source),
      seenOn: (row.seen_on as string | null) ?? undefined,
    }));
    if (found.length > 0) yield found;
    if (rows.length < PAGE) return;
    const { source, seenOn = "" } = found.at(-1)!;
    after = [source, seenOn];
  }
}

/** What an item has put into line and nobody has begun, or finished: its folder, and the files found in there. */
export async function cancelBelow(items: Items, id: string): Promise<number> {
  let cancelled = 0;
  for (const status of ["pending", "in_progress"] as const)
    for await (const child of childrenOf(items, { parent_id: id, status }))
      cancelled += (await isCancelled(items, child.queue_id)) ? 1 : 0;
  for await (const folder of childrenOf(items, { parent_id: id, item_type: "folder" }))
    cancelled += await cancelBelow(items, folder.queue_id);
  return cancelled;
}

async function* childrenOf(items: Items, filter: Parameters<Items["list"]>[0]) {
  for (let after: string | undefined; ; ) {
    const page = await items.list({ ...filter, limit: PAGE, after });
    yield* page.items;
    if (page.next === undefined) return;
    after = page.next;
  }
}

async function isCancelled(items: Items, id: string): Promise<boolean> {
  try {
    await items.cancel(id);
    return true;
  } catch (error) {
    // It has ended meanwhile, or is gone.
    if (isQuarryError(error, "too_late", "not_found")) return false;
    throw error;
  }
}
