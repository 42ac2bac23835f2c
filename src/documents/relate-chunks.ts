import type { EntityExtractor, Extraction } from "../adapters/entities.ts";
import { inHalves, isOutage, outcomeOf } from "../outcomes.ts";
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
    const extraction = extractions[position]!;
    if (!document || extraction instanceof Error) return [];
    return [
      {
        chunkKey: String(task.key),
        chunkId: task.row.chunk_id,
        documentId: document.id,
        tenant: document.tenant,
        collection: document.collection,
        extraction,
      },
    ];
  });
  await parts.graph.put(chunks);
  return extractions.map((extraction) => {
    if (extraction instanceof Error) return outcomeOf(extraction);
    const { entities, relations } = extraction;
    return done({ entities_extracted: entities.length, relationships_extracted: relations.length });
  });
}

/** The same text is read once, whoever asked for it first. */
async function extractionsOf(
  { cache, entities, extracting }: LaneParts,
  tasks: readonly Task<ChunkPayload>[],
  signal: AbortSignal,
): Promise<(Extraction | Error)[]> {
  const keys = tasks.map(({ row }) => stepKey("entities", entities.model, row.content));
  const rows = new Map(tasks.map(({ row }, position) => [keys[position]!, row]));
  const found = await extracting.many(keys, async (wanted) => {
    const known = new Map<string, Extraction | Error>();
    for (const [key, bytes] of await cache.get(wanted))
      known.set(key, JSON.parse(Buffer.from(bytes).toString("utf8")));
    const missing = wanted.filter((key) => !known.has(key));
    const failures = await inCalls(missing, { ...entities, signal }, async (some) => {
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
    for (const [key, error] of failures) known.set(key, error);
    return known;
  });
  return keys.map((key) => found.get(key)!);
}

/**
 * Calls cost money: what one gave is kept whatever becomes of the others, and of one that fails each half is asked about
 * alone, until it is known which text it was. Gives what failed, and why.
 */
async function inCalls(
  keys: readonly string[],
  { textsMax, callsMax, signal }: Pick<EntityExtractor, "textsMax" | "callsMax"> & { signal: AbortSignal },
  call: (keys: readonly string[]) => Promise<void>,
): Promise<Map<string, Error>> {
  const calls = Array.from({ length: Math.ceil(keys.length / textsMax) }, (_, index) =>
    keys.slice(index * textsMax, (index + 1) * textsMax),
  );
  const failures = new Map<string, Error>();
  let outage: Error | undefined;
  const take = async () => {
    for (let some = calls.shift(); some; some = calls.shift()) {
      try {
        if (!outage) await call(some);
      } catch (error) {
        if (signal.aborted || !(error instanceof Error)) throw error;
        if (isOutage(error)) outage = error;
        else if (some.length === 1) failures.set(some[0]!, error);
        else {
          const middle = Math.ceil(some.length / 2);
          calls.push(some.slice(0, middle), some.slice(middle));
        }
      }
      if (outage) for (const key of some) failures.set(key, outage);
    }
  };
  await Promise.all(Array.from({ length: callsMax }, take));
  return failures;
}
