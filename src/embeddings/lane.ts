import type { Embedder } from "../adapters/embed.ts";
import type { Database } from "../database/database.ts";
import { inHalves } from "../outcomes.ts";
import type { Queue } from "../queue/declaration.ts";
import type { Task } from "../queue/held.ts";
import { defineLane, type LaneDeclaration } from "../queue/lane.ts";
import { done, type Outcome } from "../queue/outcome.ts";
import { type PackLimits, packed } from "./packs.ts";
import type { JobPayload } from "./queue.ts";
import { hashOf, knownVectors } from "./twins.ts";
import { toStored, type VectorType } from "./vectors.ts";

export interface EmbeddingLaneParts {
  readonly database: Database;
  readonly queue: Queue<JobPayload>;
  readonly embedder: Embedder;
  readonly limits: PackLimits;
  readonly vectorType: VectorType;
  /** Of this program; kept with every job it has done. */
  readonly version: string;
  readonly pollMs: number;
}

type Job = Task<JobPayload>;

/** While one call is answered, the vectors of the one before are stored and the next jobs are claimed. */
export const CALLS_AT_ONCE = 4;

export function embeddingLane(parts: EmbeddingLaneParts): LaneDeclaration<object> {
  return defineLane({
    queue: parts.queue,
    batchSize: parts.limits.textsMax,
    concurrency: CALLS_AT_ONCE,
    pollMs: parts.pollMs,
    handleBatch: (jobs) => embedJobs(parts, jobs),
  });
}

/** What was embedded before is taken from there; the rest is put into calls by its tokens. */
async function embedJobs(parts: EmbeddingLaneParts, jobs: readonly Job[]): Promise<Outcome[]> {
  const { database, embedder, limits } = parts;
  const hashes = new Map(jobs.map((job) => [job, hashOf(job.row.input_text)]));
  const known = await knownVectors(database, { model: embedder.model, hashes: [...hashes.values()] });
  const outcomes = new Map<Job, Outcome>();
  for (const job of jobs) {
    const vector = known.get(hashes.get(job)!);
    if (vector) outcomes.set(job, doneWith(parts, job, { vector, tookMs: 0, tokens: 0 }));
  }
  const fresh = jobs.filter((job) => !outcomes.has(job));
  const tokensOf = (job: Job) => embedder.tokenizer.count(job.row.input_text);
  await Promise.all(
    packed(fresh, tokensOf, limits).map(async (pack) => {
      const settled = await inHalves(pack, (some, signal) => embedTogether(parts, some, signal));
      for (const [position, job] of pack.entries()) outcomes.set(job, settled[position]!);
    }),
  );
  return jobs.map((job) => outcomes.get(job)!);
}

async function embedTogether(
  parts: EmbeddingLaneParts,
  jobs: readonly Job[],
  signal: AbortSignal,
): Promise<Outcome[]> {
  const { clock } = parts.database;
  const texts = jobs.map(({ row }) => row.input_text);
  const startedAt = clock.monotonic();
  const { vectors, tokens } = await parts.embedder.embed(texts, signal);
  const tookMs = Math.round(clock.monotonic() - startedAt);
  const shares = shared(tokens, texts.map(parts.embedder.tokenizer.count));
  return jobs.map((job, position) =>
    doneWith(parts, job, { vector: vectors[position]!, tookMs, tokens: shares[position]! }),
  );
}

function doneWith(
  { vectorType, version }: EmbeddingLaneParts,
  job: Job,
  made: { vector: Float32Array; tookMs: number; tokens: number },
): Outcome {
  return done({
    embedding_vector: toStored(made.vector, vectorType),
    embedding_dimensions: made.vector.length,
    processing_time_ms: made.tookMs,
    tokens_used: made.tokens,
    // A job that SQLite's own trigger made has no hash yet.
    text_hash: hashOf(job.row.input_text),
    worker_version: version,
  });
}

/** Services count tokens for a whole call; each text is charged by its length. The shares add up to the whole. */
export function shared(whole: number, lengths: readonly number[]): number[] {
  let weightLeft = lengths.reduce((sum, length) => sum + length + 1, 0);
  let left = whole;
  return lengths.map((length) => {
    const weight = length + 1;
    const share = Math.round((left * weight) / weightLeft);
    weightLeft -= weight;
    left -= share;
    return share;
  });
}
