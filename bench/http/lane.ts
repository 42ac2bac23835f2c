import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { EmbeddingJobs, JOBS_CREATED_MAX } from "../../src/embeddings/jobs.ts";
import { embeddingLane } from "../../src/embeddings/lane.ts";
import { EMBEDDING_QUEUE, embeddingQueue } from "../../src/embeddings/queue.ts";
import { vectorTypeOf } from "../../src/embeddings/vectors.ts";
import { Crew, type Database, migrate, openDatabase, prepareQueue, readMigrations } from "../../src/index.ts";
import { settleDown } from "../postgres.ts";
import type { Contender } from "./embedding.ts";
import { BATCH, DIMENSIONS, MODEL, openTimedModel, textOf } from "./model.ts";
import { isPostgres } from "./scene.ts";

const LOOK_EVERY_MS = 1;
const STALE_MS = 120_000;

/** Jobs in the queue, worked on by the lane that every worker of Quarry runs. */
export const quarryLane: Contender = {
  name: "quarry",
  fill: async (url, { jobs: count, pace }) => {
    const { database, queue } = await fillJobs(url, count);
    return {
      drain: async () => {
        const model = openTimedModel(pace);
        const limits = { textsMax: BATCH, tokensMax: 50_000 };
        const { embedder } = model;
        const crew = await new Crew({
          database,
          lanes: [embeddingLane({ database, queue, embedder, limits, version: "bench", pollMs: 5_000 })],
          heartbeatMs: 30_000,
          checkEveryMs: 60_000,
          staleMs: STALE_MS,
          pollMs: 5_000,
        }).start();
        const lane = crew.worker.lane(EMBEDDING_QUEUE);
        while (lane.stats.settled.done < count) await pause(LOOK_EVERY_MS);
        const tookMs = performance.now() - model.firstCallAt();
        await crew.stop();
        return tookMs;
      },
      countVectors: () => countCompleted(database),
      close: () => database.close(),
    };
  },
};

/** So many jobs in the table of the product, vacuumed and checkpointed. */
export async function fillJobs(url: string, count: number) {
  const database = openDatabase(url);
  const dialect = database.dialect.name;
  await migrate(database, readMigrations(join(import.meta.dirname, "../../migrations", dialect)));
  const queue = embeddingQueue({ model: MODEL, staleMs: STALE_MS });
  await prepareQueue(database, queue);
  const vectorType = await vectorTypeOf(database);
  const jobs = new EmbeddingJobs({ database, queue, model: MODEL, vectorType });
  for (let start = 0; start < count; start += JOBS_CREATED_MAX) {
    const length = Math.min(JOBS_CREATED_MAX, count - start);
    await jobs.createMany(Array.from({ length }, (_, index) => ({ input_text: textOf(start + index) })));
  }
  if (isPostgres(url)) await settleDown(url);
  else await database.query("pragma wal_checkpoint(truncate)");
  return { database, queue, vectorType };
}

/** Those that have all of their vector. */
async function countCompleted(database: Database): Promise<number> {
  const size =
    database.dialect.name === "postgres" ? "cardinality(embedding_vector)" : "length(embedding_vector) / 4";
  const [row] = await database.query(
    `select count(*) as count from embedding_jobs where status = 'completed' and ${size} = ${DIMENSIONS}`,
  );
  return Number(row!.count);
}
