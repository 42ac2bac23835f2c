import type { Embedder } from "../../src/adapters/embed.ts";
import type { Row } from "../../src/database/database.ts";
import { EmbeddingJobs } from "../../src/embeddings/jobs.ts";
import { embeddingLane } from "../../src/embeddings/lane.ts";
import { embeddingQueue, type JobPayload } from "../../src/embeddings/queue.ts";
import { setDefaultModel } from "../../src/embeddings/rules.ts";
import { vectorTypeOf } from "../../src/embeddings/vectors.ts";
import { Crew, openQueue, prepareQueue, type QueueStore } from "../../src/index.ts";
import type { TestDatabase } from "../support/databases.ts";

export const MODEL = "test-model";
const DIMENSIONS = 8;

/** Embedding jobs on one database, with a model that keeps a list of what it was asked. */
export interface Desk {
  readonly jobs: EmbeddingJobs;
  readonly store: QueueStore<JobPayload>;
  readonly calls: string[][];
  /** How many tokens a text has. */
  measure: (text: string) => number;
  /** What the model does before it answers. */
  before: (texts: readonly string[], signal: AbortSignal) => Promise<void>;
  query(sql: string, params?: readonly unknown[]): Promise<Row[]>;
  work(options?: { staleMs?: number; batch?: number; tokensMax?: number }): Promise<Crew>;
}

export async function openDesk(test: TestDatabase, options: { staleMs?: number } = {}): Promise<Desk> {
  const { database } = test;
  const staleMs = options.staleMs ?? 60_000;
  const queue = embeddingQueue({ model: MODEL, staleMs });
  await prepareQueue(database, queue);
  await setDefaultModel(database, MODEL);
  const vectorType = await vectorTypeOf(database);
  const calls: string[][] = [];
  const embedder: Embedder = {
    model: MODEL,
    dimensions: DIMENSIONS,
    tokensMax: 1_000,
    tokenizer: { count: (text) => desk.measure(text) },
    embed: async (texts, signal) => {
      await desk.before(texts, signal);
      calls.push([...texts]);
      return { vectors: texts.map(vectorOf), tokens: 10 * texts.length };
    },
    close: async () => undefined,
  };
  const desk: Desk = {
    jobs: new EmbeddingJobs({ database, queue, model: MODEL, vectorType }),
    store: openQueue(database, queue),
    calls,
    measure: (text) => text.split(/\s+/).filter(Boolean).length,
    before: async () => undefined,
    query: (sql, params) => database.query(sql, params),
    work: ({ batch = 50, tokensMax = 10_000 } = {}) => {
      const limits = { textsMax: batch, tokensMax };
      const lane = embeddingLane({
        ...{ database, queue, embedder, vectorType, limits },
        ...{ version: "1.2.3", pollMs: 50 },
      });
      return new Crew({
        database,
        lanes: [lane],
        heartbeatMs: Math.min(10_000, staleMs / 3),
        checkEveryMs: 200,
        staleMs,
        pollMs: 50,
      }).start();
    },
  };
  return desk;
}

export function vectorOf(text: string): Float32Array {
  const vector = new Float32Array(DIMENSIONS);
  for (const [index, byte] of Buffer.from(text).entries()) vector[index % DIMENSIONS]! += byte / 7;
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}

/** Looks until it holds; a test that never gets there is ended by the runner. */
export async function until(isReached: () => Promise<boolean>): Promise<void> {
  while (!(await isReached())) await new Promise((resolve) => setTimeout(resolve, 10));
}
