import type { Embedder } from "../adapters/embed.ts";
import { tokenShares } from "../adapters/token-shares.ts";
import type { Database } from "../database/database.ts";
import { inHalves } from "../outcomes.ts";
import type { Queue } from "../queue/declaration.ts";
import type { Task } from "../queue/held.ts";
import { defineLane, type LaneDeclaration } from "../queue/lane.ts";
import { done, type Outcome, released } from "../queue/outcome.ts";
import { type PackLimits, packed } from "./packs.ts";
import type { JobPayload } from "./queue.ts";
import { hashOf, knownVectors } from "./twins.ts";

export interface EmbeddingLaneParts {
  readonly database: Database;
  readonly queue: Queue<JobPayload>;
  readonly embedder: Embedder;
  readonly limits: PackLimits;
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
    // A database that is away costs no attempt; a text that cannot be measured fails alone.
    handleBatch: async (jobs) => [...(await inHalves(jobs, (some) => embedJobs(parts, some)))],
  });
}

const NOTHING = { vectors: [], tokens: 0 };

/** What is asked about a text more than once. */
interface Measured {
  readonly hash: string;
  readonly tokens: number;
}

/** What was embedded before is taken from there; the rest is put into calls by its tokens. */
async function embedJobs(parts: EmbeddingLaneParts, jobs: readonly Job[]): Promise<Outcome[]> {
  const { database, embedder, limits } = parts;
  const texts = new Map(jobs.map((job) => [job, measured(embedder, job.row.input_text)]));
  const hashes = jobs.map((job) => texts.get(job)!.hash);
  const known = await knownVectors(database, { model: embedder.model, hashes });
  const outcomes = new Map<Job, Outcome>();
  for (const job of jobs) {
    const { hash } = texts.get(job)!;
    const vector = known.get(hash);
    if (vector) outcomes.set(job, doneWith(parts, job, { hash, vector, tookMs: 0, tokens: 0 }));
  }
  const fresh = jobs.filter((job) => !outcomes.has(job));
  // Jobs that SQLite's own trigger made are not known to be twins until here.
  const alike = [...Map.groupBy(fresh, (job) => texts.get(job)!.hash).values()];
  const firsts = alike.map(([first]) => first!);
  await Promise.all(
    packed(firsts, (job) => texts.get(job)!.tokens, limits).map(async (pack) => {
      const settled = await inHalves(pack, (some, signal) => embedTogether(parts, texts, some, signal));
      for (const [position, job] of pack.entries()) outcomes.set(job, settled[position]!);
    }),
  );
  for (const [first, ...others] of alike)
    for (const job of others) outcomes.set(job, atNoCost(outcomes.get(first!)!, texts.get(job)!.hash));
  return jobs.map((job) => outcomes.get(job)!);
}

/** What became of one text becomes of the same text in another job; it was paid for once. */
function atNoCost(outcome: Outcome, hash: string): Outcome {
  if (outcome.kind !== "done") return outcome;
  return done({ ...outcome.result, text_hash: hash, processing_time_ms: 0, tokens_used: 0 });
}

function measured({ tokenizer }: Embedder, text: string): Measured {
  return { hash: hashOf(text), tokens: tokenizer.count(text) };
}

async function embedTogether(
  parts: EmbeddingLaneParts,
  texts: ReadonlyMap<Job, Measured>,
  jobs: readonly Job[],
  signal: AbortSignal,
): Promise<Outcome[]> {
  const { clock } = parts.database;
  const startedAt = clock.monotonic();
  const inputs = jobs.map(({ row }) => row.input_text);
  const { vectors, tokens } = await parts.embedder.embed(inputs, signal).catch((error) => {
    if (!signal.aborted) throw error;
    return NOTHING;
  });
  // Nobody wants these any more; their neighbours, in this call or beside it, have nothing to do with that.
  if (vectors.length === 0) return jobs.map(() => released());
  const tookMs = Math.round(clock.monotonic() - startedAt);
  const measures = jobs.map((job) => texts.get(job)!);
  const shares = tokenShares(
    tokens,
    measures.map((text) => text.tokens),
  );
  return jobs.map((job, position) => {
    const { hash } = measures[position]!;
    return doneWith(parts, job, { hash, vector: vectors[position]!, tookMs, tokens: shares[position]! });
  });
}

function doneWith(
  { version }: EmbeddingLaneParts,
  { row }: Job,
  made: { hash: string; vector: Float32Array; tookMs: number; tokens: number },
): Outcome {
  return done({
    embedding_vector: made.vector,
    embedding_dimensions: made.vector.length,
    processing_time_ms: made.tookMs,
    tokens_used: made.tokens,
    // A job that SQLite's own trigger made has no hash yet. Written once more, it would move in four indexes for nothing.
    ...(row.text_hash !== made.hash && { text_hash: made.hash }),
    worker_version: version,
  });
}
