import type { FileStore } from "../adapters/files.ts";
import type { Database } from "../database/database.ts";
import { QuarryError } from "../errors.ts";

/** As many of the newest, which a copy made too early lacks, and as many from among all. */
const LOOKED_FOR = 20;
const NAMED_MAX = 3;

/** Files that were moved are looked for where they should be now, before anybody relies on it. */
export async function refuseMissingOriginals(database: Database, files: FileStore): Promise<void> {
  const originals = await sampleOf(database);
  const missing: string[] = [];
  for (const path of originals) if (!(await files.has(path))) missing.push(path);
  if (missing.length === 0) return;
  const named = missing.slice(0, NAMED_MAX).join(", ") + (missing.length > NAMED_MAX ? ", …" : "");
  throw new QuarryError(
    "not_found",
    `${missing.length} of the ${originals.length} files that were looked for are not in ${files.place} (${named}): copy "documents" from where the files were, all of it, then say so again`,
  );
}

async function sampleOf(database: Database): Promise<string[]> {
  const { mark } = database.dialect;
  const kept = "from documents where original_path is not null";
  const newest = await database.query(
    `select original_path ${kept} order by created_at desc, id desc limit ${mark(1)}`,
    [LOOKED_FOR],
  );
  // One from each of as many stretches of equal length.
  const spread = await database.query(
    `select min(original_path) as original_path from (select original_path, ntile(${LOOKED_FOR}) over (order by created_at, id) as stretch ${kept}) as stretches group by stretch`,
  );
  return [...new Set([...newest, ...spread].map((row) => String(row.original_path)))];
}
