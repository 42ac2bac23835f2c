import type { Database } from "../database/database.ts";
import type { Documents } from "../documents/documents.ts";
import { QuarryError } from "../errors.ts";
import type { Rag } from "./settings.ts";

/**
 * Removes what was in the RAG's collection when the job came. Not what came after it: of several jobs that were handed
 * in together the first one clears the collection, and the others may be quicker. So it may also be repeated.
 */
export async function clearCollection(
  { database, documents }: { database: Database; documents: Documents },
  { tenant, collection }: Rag,
  jobId: string,
): Promise<number> {
  const sql = `select cast(created_at as text) as created_at from rag_jobs where job_id = ${database.dialect.mark(1)}`;
  const [row] = await database.query({ name: "rag.created_at", sql }, [jobId]);
  if (!row) throw new QuarryError("internal", `job ${jobId} is not in rag_jobs`);
  return documents.removeFrom({ tenant, collection }, { createdBefore: String(row.created_at) });
}
