import type { Database } from "../database/database.ts";
import { cancelTopic, openQueue } from "../queue/store.ts";
import type { DocumentQueues } from "./queues.ts";

/**
 * Deletes documents. Their rows go at once, so that nobody finds them any more and no worker can settle them; what
 * they left in other stores is taken out by removals, which survive a crash.
 */
export async function removeDocuments(
  { database, queues }: { database: Database; queues: DocumentQueues },
  ids: readonly string[],
): Promise<string[]> {
  const { dialect } = database;
  const removals = openQueue(database, queues.removals);
  const removed = await database.transaction(async (transaction) => {
    const isNamed = dialect.isOneOf("id", 1, "uuid");
    // Older versions of the same source go with it.
    const found = await transaction.query(
      {
        name: "documents.versions",
        sql: `select id from documents where ${isNamed} or ${dialect.isOneOf("replaced_by", 1, "uuid")}`,
      },
      [dialect.keys(ids)],
    );
    const gone = found.map((row) => String(row.id));
    // From the chunks up, as the lanes lock them.
    for (const table of ["task_queue_chunk", "task_queue_page", "documents"]) {
      const column = table === "documents" ? "id" : "document_id";
      const sql = `delete from ${table} where ${dialect.isOneOf(column, 1, "uuid")}`;
      await transaction.query({ name: `documents.delete.${table}`, sql }, [dialect.keys(gone)]);
    }
    const entries = gone.map((id) => ({ document_id: id, kind: "document" }));
    if (entries.length > 0) {
      await removals.within(transaction).enqueue(entries);
      // A worker that was about to store something may do so until its lease is over: look once more then.
      await removals.within(transaction).enqueue(entries, { delayMs: 2 * queues.chunkVector.lease.ms });
    }
    return gone;
  });
  for (const queue of [
    queues.split,
    queues.pageOcr,
    queues.pageScan,
    queues.pageChunk,
    queues.chunkVector,
    queues.chunkGraphrag,
  ])
    database.notify(cancelTopic(queue));
  return removed;
}
