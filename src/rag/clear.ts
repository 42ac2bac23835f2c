import { pause } from "../clock.ts";
import type { Database } from "../database/database.ts";
import type { Documents } from "../documents/documents.ts";
import { QuarryError } from "../errors.ts";
import { type JobMessage, readMessage, submittedMs } from "./message.ts";
import type { Rag, Rags } from "./settings.ts";

interface Parts {
  readonly database: Database;
  readonly documents: Documents;
  readonly rags: Rags;
}

/** How far back another job of the same batch is looked for. */
const BATCH_MS = 3_600_000;
const LOOK_EVERY_MS = 100;
const LOOKS_MAX = 600;

/**
 * Removes what was in the RAG's collection when the job came, and nothing that came after it: others that were handed
 * in with this one may be quicker. So it may also be repeated. Jobs that ask for it while another one that did so is
 * under way are a batch: it is cleared for the first of them.
 */
export async function clearCollection(parts: Parts, rag: Rag, job: JobMessage): Promise<void> {
  const { database, documents } = parts;
  const sql = `select created_at, cast(created_at as text) as position from rag_jobs where job_id = ${database.dialect.mark(1)}`;
  const [row] = await database.query({ name: "rag.created_at", sql }, [job.job_id]);
  if (!row) throw new QuarryError("internal", `job ${job.job_id} is not in rag_jobs`);
  const cameMs = Date.parse(String(row.created_at));
  const sharing = ragsSharing(parts, rag);
  if (await wasClearedForBatch(database, sharing, { job, cameMs })) return;
  const came = String(row.position);
  const except = await takenSince(database, sharing, came);
  const { tenant, collection } = rag;
  await documents.removeFrom({ tenant, collection }, { createdBefore: came, except });
}

/**
 * For a job that found its document in the collection: whether it is there still, now that no other job can clear it
 * away any more. One that clears after this sees that the document was taken, for that was noted first.
 */
export async function outlivesClearing(
  parts: Parts,
  rag: Rag,
  { documentId, signal }: { documentId: string; signal: AbortSignal },
): Promise<boolean> {
  const sharing = ragsSharing(parts, rag);
  for (let looks = 0; await isBeingCleared(parts.database, sharing); looks++) {
    if (looks === LOOKS_MAX)
      throw new QuarryError("store_unavailable", `another job still clears the collection of ${rag.id}`);
    await pause(LOOK_EVERY_MS, signal);
    signal.throwIfAborted();
  }
  const { tenant, collection } = rag;
  for await (const _page of parts.documents.from({ tenant, collection }, { id: documentId })) return true;
  return false;
}

/** Several RAGs may have one collection. */
function ragsSharing({ rags }: Parts, { tenant, collection }: Rag): string[] {
  return [...rags.values()]
    .filter((other) => other.tenant === tenant && other.collection === collection)
    .map(({ id }) => id);
}

/** $1 RAGs, $2 this job, $3 an hour before it came, $4 when it was submitted. */
async function wasClearedForBatch(
  database: Database,
  ragIds: readonly string[],
  { job, cameMs }: { job: JobMessage; cameMs: number },
): Promise<boolean> {
  const { dialect } = database;
  const { mark } = dialect;
  const sql = `select 1 as found from rag_jobs where ${dialect.isOneOf("rag_id", 1, "text")} and job_id <> ${mark(2)} and cleared_at is not null and created_at >= ${mark(3)} and (finished_at is null or finished_at > ${mark(4)}) limit 1`;
  const since = new Date(cameMs - BATCH_MS).toISOString();
  const saidMs = submittedMs(job);
  // A date such as 30 February is none.
  const submitted = new Date(Number.isNaN(saidMs) ? cameMs : Math.min(cameMs, saidMs)).toISOString();
  const params = [dialect.keys(ragIds), job.job_id, since, submitted];
  return (await database.query({ name: "rag.batch", sql }, params)).length > 0;
}

/** $1 RAGs, $2 since when. Documents that were there before and that a job found unchanged. */
async function takenSince(database: Database, ragIds: readonly string[], came: string): Promise<string[]> {
  const { dialect } = database;
  const sql = `select document_id from rag_jobs where ${dialect.isOneOf("rag_id", 1, "text")} and created_at >= ${dialect.mark(2)} and document_id is not null`;
  const rows = await database.query({ name: "rag.taken_since", sql }, [dialect.keys(ragIds), came]);
  return rows.map((row) => String(row.document_id));
}

/** $1 RAGs. */
async function isBeingCleared(database: Database, ragIds: readonly string[]): Promise<boolean> {
  const { dialect } = database;
  const sql = `select message from rag_jobs where status = 'processing' and cleared_at is null and ${dialect.isOneOf("rag_id", 1, "text")} and message like '%reindex%'`;
  const rows = await database.query({ name: "rag.clearing", sql }, [dialect.keys(ragIds)]);
  return rows.some((row) => readMessage(String(row.message)).job?.options.reindex === true);
}
