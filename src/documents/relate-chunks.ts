import type { Extraction } from "../adapters/entities.ts";
import type { Task } from "../queue/held.ts";
import { defineLane } from "../queue/lane.ts";
import { done, type Outcome } from "../queue/outcome.ts";
import { inHalves, type LaneParts } from "./lane-parts.ts";
import type { ChunkPayload } from "./queues.ts";
import { stepKey } from "./step-cache.ts";

const BATCH_SIZE = 32;

/** Finds what chunks are about and puts it into the graph. */
export function graphragLane(parts: LaneParts) {
  return defineLane({
    queue: parts.queues.chunkGraphrag,
    batchSize: BATCH_SIZE,
    concurrency: 1,
    pollMs: parts.pollMs,
    handleBatch: (tasks) => inHalves(tasks, (some, signal) => relate(parts, some, signal)),
  });
}

async function relate(
  parts: LaneParts,
  tasks: readonly Task<ChunkPayload>[],
  signal: AbortSignal,
): Promise<Outcome[]> {
  const extractions = await extractionsOf(parts, tasks, signal);
  const documents = await parts.facts.of(tasks.map(({ row }) => row.document_id));
  const chunks = tasks.flatMap((task, position) => {
    const document = documents.get(task.row.document_id);
    if (!document) return [];
    return [
      {
        chunkKey: String(task.key),
        chunkId: task.row.chunk_id,
        documentId: document.id,
        tenant: document.tenant,
        collection: document.collection,
        extraction: extractions[position]!,
      },
    ];
  });
  await parts.graph.put(chunks);
  return extractions.map(({ entities, relations }) =>
    done({ entities_extracted: entities.length, relationships_extracted: relations.length }),
  );
}

/** The same text is read once, whoever asked for it first. */
async function extractionsOf(
  { cache, entities }: LaneParts,
  tasks: readonly Task<ChunkPayload>[],
  signal: AbortSignal,
): Promise<Extraction[]> {
  const keys = tasks.map(({ row }) => stepKey("entities", entities.model, row.content));
  const known = new Map<string, Extraction>();
  for (const [key, bytes] of await cache.get(keys))
    known.set(key, JSON.parse(Buffer.from(bytes).toString("utf8")));
  const missing = new Map<string, Task<ChunkPayload>>();
  for (const [position, key] of keys.entries()) if (!known.has(key)) missing.set(key, tasks[position]!);
  if (missing.size > 0) {
    const asked = [...missing];
    const found = await entities.extract(
      asked.map(([, task]) => task.row.content),
      signal,
    );
    const outputs = asked.map(([key, task], position) => {
      known.set(key, found[position]!);
      const output = Buffer.from(JSON.stringify(found[position]));
      return { key, step: "entities" as const, documentId: task.row.document_id, output };
    });
    await cache.put(outputs);
  }
  return keys.map((key) => known.get(key)!);
}
