import { attempt } from "../outcomes.ts";
import { defineLane } from "../queue/lane.ts";
import { done, released } from "../queue/outcome.ts";
import type { LaneParts } from "./lane-parts.ts";
import { hasOpenWork, openWork } from "./progress.ts";
import type { RemovalPayload } from "./queues.ts";
import { removeDocuments } from "./remove.ts";

/** How long a removal waits before it looks again whether its time has come. */
const WAIT_MS = 2_000;
const WAIT_LONG_MS = 60_000;

/** Takes what is no longer wanted out of every store. Each step may be repeated; the row says which are done. */
export function removalLane(parts: LaneParts) {
  return defineLane({
    queue: parts.queues.removals,
    concurrency: 2,
    pollMs: parts.pollMs,
    handle: (task) => attempt(task, () => remove(parts, String(task.key), task.row)),
  });
}

async function remove(parts: LaneParts, key: string, row: RemovalPayload) {
  switch (row.kind) {
    case "document":
      await inEvery(parts, key, {
        ...removalsFrom(parts, { documentId: row.document_id }),
        files_status: () => parts.files.remove(row.document_id),
      });
      return done(ALL_DONE);
    case "chunks": {
      // The new chunks may have the ids of old ones; when all are there, the rest can go.
      if (await hasOpenWork(parts.database, row.document_id, "vector")) return released(WAIT_MS);
      const chunkIds = await staleChunks(parts, row);
      const chunkKeys = row.chunk_keys ?? [];
      await inEvery(parts, key, removalsFrom(parts, { documentId: row.document_id, chunkIds, chunkKeys }));
      return done(ALL_DONE);
    }
    case "replaced":
      return replace(parts, row);
    default:
      return row.kind satisfies never;
  }
}

const ALL_DONE = {
  vectors_status: "completed",
  fulltext_status: "completed",
  graph_status: "completed",
  files_status: "completed",
} as const;

type Removals = Partial<Record<keyof typeof ALL_DONE, () => Promise<unknown>>>;

/** Of all of a document, or of some of its chunks. */
function removalsFrom(
  { vectors, fulltext, graph }: LaneParts,
  which: { documentId: string; chunkIds?: readonly string[]; chunkKeys?: readonly string[] },
): Removals {
  const { documentId, chunkIds, chunkKeys } = which;
  const points = { documentId, ...(chunkIds && { chunkIds }) };
  return {
    vectors_status: () => vectors.remove(points),
    fulltext_status: () => fulltext.remove(points),
    graph_status: () => graph.remove({ documentId, ...(chunkKeys && { chunkKeys }) }),
  };
}

/** A store that is away keeps no other from being cleared. */
async function inEvery({ database }: LaneParts, key: string, removals: Removals): Promise<void> {
  const { dialect } = database;
  const failures: unknown[] = [];
  for (const [column, remove] of Object.entries(removals)) {
    try {
      await remove();
      const sql = `update document_removals set ${column} = 'completed' where ${dialect.isOneOf("id", 1, "uuid")}`;
      await database.query({ name: `documents.remove.${column}`, sql }, [dialect.keys([key])]);
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

/** Of the chunks that went, those that did not come back. */
async function staleChunks({ database }: LaneParts, row: RemovalPayload): Promise<string[]> {
  const { dialect } = database;
  const rows = await database.query(
    {
      name: "documents.chunk_ids",
      sql: `select chunk_id from task_queue_chunk where ${dialect.isOneOf("document_id", 1, "uuid")} and ${dialect.isOneOf("chunk_id", 2, "text")}`,
    },
    [dialect.keys([row.document_id]), dialect.keys(row.chunk_ids ?? [])],
  );
  const current = new Set(rows.map(({ chunk_id }) => String(chunk_id)));
  return (row.chunk_ids ?? []).filter((id) => !current.has(id));
}

/** The old version is searched until the new one can be. One that failed is of no use to anybody. */
async function replace({ database, queues }: LaneParts, row: RemovalPayload) {
  const { dialect } = database;
  const [successor] = await database.query(
    {
      name: "documents.successor",
      sql: `select s.id, s.vector_index_status as status, (exists (select 1 from task_queue_chunk as c where c.document_id = d.id and c.vector_status = 'completed') or ${openWork("vector")}) as is_of_use from documents as d join documents as s on s.id = d.replaced_by where ${dialect.isOneOf("d.id", 1, "uuid")}`,
    },
    [dialect.keys([row.document_id])],
  );
  // It was deleted itself, or together with its successor.
  if (!successor) return done();
  if (successor.status !== "completed" && successor.is_of_use) {
    const isComing = await hasOpenWork(database, String(successor.id), "vector");
    return released(isComing ? WAIT_MS : WAIT_LONG_MS);
  }
  await removeDocuments({ database, queues }, [row.document_id]);
  return done();
}
