import type { EntityExtractor, Extraction } from "../adapters/entities.ts";
import { inHalves, isOutage } from "../outcomes.ts";
import type { Task } from "../queue/held.ts";
import { defineLane } from "../queue/lane.ts";
import { done, type Outcome } from "../queue/outcome.ts";
import type { LaneParts } from "./lane-parts.ts";
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
  { cache, entities, extracting }: LaneParts,
  tasks: readonly Task<ChunkPayload>[],
  signal: AbortSignal,
): Promise<Extraction[]> {
  const keys = tasks.map(({ row }) => stepKey("entities", entities.model, row.content));
  const rows = new Map(tasks.map(({ row }, position) => [keys[position]!, row]));
  const found = await extracting.many(keys, async (wanted) => {
    const known = new Map<string, Extraction>();
    for (const [key, bytes] of await cache.get(wanted))
      known.set(key, JSON.parse(Buffer.from(bytes).toString("utf8")));
    const missing = wanted.filter((key) => !known.has(key));
    await inCalls(missing, entities, async (some) => {
      const texts = some.map((key) => rows.get(key)!.content);
      const made = await entities.extract(texts, signal);
      const outputs = some.map((key, position) => {
        const { tokens = 0, ...extraction } = made[position]!;
        known.set(key, extraction);
        const output = Buffer.from(JSON.stringify(extraction));
        return { key, step: "entities" as const, documentId: rows.get(key)!.document_id, output, tokens };
      });
      await cache.put(outputs);
    });
    return known;
  });
  return keys.map((key) => found.get(key)!);
}

/**
 * What a call gave is kept before anybody hears that another one failed: the texts are then tried again in halves, and
 * those that are known cost nothing.
 */
async function inCalls(
  keys: readonly string[],
  { textsMax, callsMax }: EntityExtractor,
  call: (keys: readonly string[]) => Promise<void>,
): Promise<void> {
  const calls = Array.from({ length: Math.ceil(keys.length / textsMax) }, (_, index) =>
    keys.slice(index * textsMax, (index + 1) * textsMax),
  );
  const failures: unknown[] = [];
  const take = async () => {
    for (let some = calls.shift(); some && !failures.some(isOutage); some = calls.shift())
      await call(some).catch((error) => failures.push(error));
  };
  await Promise.all(Array.from({ length: callsMax }, take));
  if (failures.length > 0) throw failures.find(isOutage) ?? failures[0];
}
