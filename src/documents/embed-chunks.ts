import { tokenShares } from "../adapters/token-shares.ts";
import { inHalves } from "../outcomes.ts";
import type { Task } from "../queue/held.ts";
import { defineLane } from "../queue/lane.ts";
import { done, type Outcome } from "../queue/outcome.ts";
import { embeddedText } from "./chunker.ts";
import type { DocumentFacts } from "./facts.ts";
import type { LaneParts } from "./lane-parts.ts";
import type { ChunkPayload } from "./queues.ts";
import { stepKey } from "./step-cache.ts";

const BATCH_SIZE = 32;

interface Passage {
  readonly task: Task<ChunkPayload>;
  readonly document: DocumentFacts;
  /** Title, headings and overlap before the content: what is embedded and indexed, not what is shown. */
  readonly text: string;
  readonly cacheKey: string;
}

/** Makes chunks searchable: by their vector and by their words. */
export function vectorLane(parts: LaneParts) {
  return defineLane({
    queue: parts.queues.chunkVector,
    batchSize: BATCH_SIZE,
    // While one batch is embedded, the one before it is stored.
    concurrency: 2,
    // Rows held in advance would make a small batch of their own, and every batch costs five commits.
    prefetchMax: 0,
    pollMs: parts.pollMs,
    handleBatch: (tasks) => inHalves(tasks, (some, signal) => index(parts, some, signal)),
  });
}

async function index(
  parts: LaneParts,
  tasks: readonly Task<ChunkPayload>[],
  signal: AbortSignal,
): Promise<Outcome[]> {
  const documents = await parts.facts.of(tasks.map(({ row }) => row.document_id));
  const passages = tasks.flatMap((task): Passage[] => {
    const document = documents.get(task.row.document_id);
    // Deleted meanwhile: its rows are gone, and the settlement will find that.
    if (!document) return [];
    const { content, overlap, heading_path: headingPath } = task.row;
    const text = embeddedText({ title: document.title, headingPath, overlap, content });
    return [{ task, document, text, cacheKey: stepKey("embed", parts.embedder.model, text) }];
  });
  const vectors = await vectorsOf(parts, passages, signal);
  await parts.vectors.upsert(
    passages.map((passage) => ({ ...placeOf(passage), vector: vectors.get(passage.cacheKey)! })),
  );
  await parts.fulltext.upsert(
    passages.map((passage) => ({
      ...placeOf(passage),
      context: contextOf(passage),
      content: passage.task.row.content,
    })),
  );
  return tasks.map(() => done());
}

/** The same text is embedded once, whoever asked for it first. */
function vectorsOf(
  { cache, embedder, embedding }: LaneParts,
  passages: readonly Passage[],
  signal: AbortSignal,
): Promise<Map<string, Float32Array>> {
  const byKey = new Map(passages.map((passage) => [passage.cacheKey, passage]));
  return embedding.many(byKey.keys(), async (keys) => {
    const known = await cache.get(keys);
    const vectors = new Map([...known].map(([key, bytes]) => [key, vectorOf(bytes)]));
    const missing = keys.filter((key) => !vectors.has(key));
    if (missing.length === 0) return vectors;
    const texts = missing.map((key) => byKey.get(key)!.text);
    const { vectors: made, tokens } = await embedder.embed(texts, signal);
    const shares = tokenShares(
      tokens,
      texts.map((text) => text.length),
    );
    const outputs = missing.map((key, position) => {
      const vector = made[position]!;
      vectors.set(key, vector);
      const output = new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength);
      const documentId = byKey.get(key)!.document.id;
      return { key, step: "embed" as const, documentId, output, tokens: shares[position]! };
    });
    await cache.put(outputs);
    return vectors;
  });
}

function vectorOf(bytes: Uint8Array): Float32Array {
  // Copied: a vector needs its bytes aligned.
  return new Float32Array(Uint8Array.from(bytes).buffer);
}

function placeOf({ task, document }: Passage) {
  return {
    chunkId: task.row.chunk_id,
    documentId: document.id,
    tenant: document.tenant,
    collection: document.collection,
  };
}

function contextOf({ task, document }: Passage): string {
  return [document.title, ...task.row.heading_path].filter(Boolean).join("\n");
}
