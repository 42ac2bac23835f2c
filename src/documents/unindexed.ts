import type { VectorStore } from "../adapters/vectors.ts";
import type { Database } from "../database/database.ts";

/** The first and the last few tell: stores are changed for all documents at once. */
const LOOKED_AT = 5;

/**
 * Documents whose chunks were embedded and of which the store holds nothing: it is another one than before, or was
 * emptied. Chunks that another system had embedded were never here.
 */
export async function unindexedDocuments(
  database: Database,
  vectors: Pick<VectorStore, "count">,
): Promise<string[]> {
  const missing: string[] = [];
  for (const { id, tenant } of await embedded(database))
    if ((await vectors.count({ tenant, documentIds: [id] })) === 0) missing.push(id);
  if (missing.length === 0) return [];
  // Deleted or begun anew while it was looked for.
  const still = new Set((await embedded(database, missing)).map(({ id }) => id));
  return missing.filter((id) => still.has(id));
}

async function embedded(
  database: Database,
  among?: readonly string[],
): Promise<{ id: string; tenant: string }[]> {
  const { dialect } = database;
  const isAmong = among ? ` and ${dialect.isOneOf("d.id", 1, "uuid")}` : "";
  const rows = await Promise.all(
    (["asc", "desc"] as const).map((order) =>
      database.query<{ id: string; tenant: string }>(
        {
          name: `documents.embedded_${order}${among ? "_among" : ""}`,
          sql: `select d.id, d.tenant from documents as d where d.vector_index_status = 'completed'${isAmong} and exists (select 1 from task_queue_chunk as c where c.document_id = d.id and c.vector_status = 'completed' and c.vector_started_at is not null) order by d.id ${order} limit ${LOOKED_AT}`,
        },
        among ? [dialect.keys(among)] : [],
      ),
    ),
  );
  return [...new Map(rows.flat().map((row) => [row.id, row])).values()];
}
