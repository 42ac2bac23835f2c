import { z } from "zod";
import type { Database, Transaction } from "../database/database.ts";
import { isQuarryError, messageOf, QuarryError } from "../errors.ts";
import { uuidv7 } from "../ids.ts";
import { firstProblem } from "../problems.ts";
import type { Queue } from "../queue/declaration.ts";
import { openQueue, type QueueStore } from "../queue/store.ts";
import { DeadLetters } from "./dead-letters.ts";
import {
  checkedId,
  type EmbeddingJob,
  JOB_COLUMNS,
  type JobListOptions,
  type JobPage,
  jobOf,
  listJobs,
  readJobs,
} from "./job-rows.ts";
import { JOB_PRIORITIES, type JobPayload } from "./queue.ts";
import { type EmbeddingStats, readStats } from "./stats.ts";
import { hashOf, knownVectors } from "./twins.ts";
import { toStored, type VectorType } from "./vectors.ts";

export const JOB_TEXT_CHARS_MAX = 1_000_000;
export const JOBS_CREATED_MAX = 1_000;

/** What a job may be made of. */
export const newJobSchema = z.strictObject({
  input_text: z.string().min(1).max(JOB_TEXT_CHARS_MAX).describe("The text to embed."),
  priority: z.enum(JOB_PRIORITIES).default("normal"),
  embedding_model: z.string().min(1).max(100).optional().describe("The model that is served, unless said."),
  rule_id: z.uuid().optional().describe("The rule that the vector is for."),
  project_id: z.uuid().optional(),
  created_by: z.uuid().optional(),
  max_attempts: z.int().min(1).max(100).default(3),
});
export type NewJob = z.input<typeof newJobSchema>;

interface Parts {
  readonly database: Database;
  readonly queue: Queue<JobPayload>;
  readonly model: string;
  readonly vectorType: VectorType;
}

/** Texts to be embedded, and what became of them. */
export class EmbeddingJobs {
  readonly deadLetters: DeadLetters;
  readonly #parts: Parts;
  readonly #store: QueueStore<JobPayload>;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#store = openQueue(parts.database, parts.queue);
    this.deadLetters = new DeadLetters(this.#store);
  }

  /** How vectors stand in the table. */
  get vectorType(): VectorType {
    return this.#parts.vectorType;
  }

  /** The model that is served here. */
  get model(): string {
    return this.#parts.model;
  }

  async create(job: NewJob): Promise<EmbeddingJob> {
    const [created] = await this.createMany([job]);
    return created!;
  }

  /** All or none. A text that was embedded before is answered at once. */
  async createMany(jobs: readonly NewJob[]): Promise<EmbeddingJob[]> {
    const { database, model } = this.#parts;
    const rows = jobs.map((job) => rowOf(this.#parts, job));
    const known = await knownVectors(database, { model, hashes: rows.map((row) => row.text_hash) });
    const fresh = rows.filter((row) => !known.has(row.text_hash));
    const answered = rows.filter((row) => known.has(row.text_hash));
    try {
      if (answered.length === 0) return await this.#insertFresh(fresh);
      await database.transaction(async (transaction) => {
        for (const row of answered) await this.#insertAnswered(transaction, row, known.get(row.text_hash)!);
        if (fresh.length > 0) await this.#store.within(transaction).enqueue(fresh);
      });
    } catch (error) {
      throw asMissingReference(error);
    }
    return readJobs(
      database,
      rows.map((row) => row.id),
    );
  }

  /** As they were written, which saves reading them: they have nothing yet but what they were given. */
  async #insertFresh(rows: readonly JobRow[]): Promise<EmbeddingJob[]> {
    const enqueued = await this.#store.enqueue(rows, { returning: JOB_COLUMNS });
    return enqueued.map(({ row }) => ({ ...jobOf(row!), embedding_vector: null }));
  }

  /** With its vector, once there is one. */
  async read(id: string): Promise<EmbeddingJob> {
    const [job] = await readJobs(this.#parts.database, [checkedId(id)]);
    if (job) return job;
    throw new QuarryError("not_found", `there is no embedding job ${id}; it may have been cancelled`);
  }

  async list(options: JobListOptions = {}): Promise<JobPage> {
    if (options.rule_id) checkedId(options.rule_id, "rule");
    if (options.project_id) checkedId(options.project_id, "project");
    return listJobs(this.#parts.database, options);
  }

  /** A waiting job goes away, a running one is taken from its worker; a finished one is too late. */
  async cancel(id: string): Promise<"cancelled" | "aborted"> {
    const key = checkedId(id);
    const verdict = (await this.#store.cancel([key])).get(key);
    if (verdict === "cancelled" || verdict === "aborted") return verdict;
    // Also finds those that failed for good.
    const { status } = await this.read(id);
    throw new QuarryError("too_late", `job ${id} is ${status} and cannot be cancelled`);
  }

  stats(): Promise<EmbeddingStats> {
    return readStats(this.#parts.database, this.model);
  }

  async #insertAnswered(transaction: Transaction, row: JobRow, vector: Float32Array): Promise<void> {
    const { database, vectorType } = this.#parts;
    const { now, mark } = database.dialect;
    const values = {
      ...Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined)),
      status: "completed",
      embedding_vector: toStored(vector, vectorType),
      embedding_dimensions: vector.length,
      processing_time_ms: 0,
      tokens_used: 0,
    };
    const marks = Object.keys(values).map((_name, index) => mark(index + 2));
    const sql = `insert into embedding_jobs (${Object.keys(values).join(", ")}, created_at, started_at, completed_at, updated_at) values (${marks.join(", ")}, ${now}, ${now}, ${now}, ${now})`;
    await transaction.query(sql, [database.now(), ...Object.values(values)]);
  }
}

type JobRow = ReturnType<typeof rowOf>;

function rowOf({ database, model: served }: Parts, job: NewJob) {
  const parsed = newJobSchema.safeParse(job);
  if (!parsed.success) {
    throw new QuarryError("invalid_input", firstProblem(parsed.error, "a job"));
  }
  const { embedding_model: model = served, ...rest } = parsed.data;
  if (model !== served) {
    throw new QuarryError(
      "invalid_input",
      `embedding_model: ${JSON.stringify(model)} is not served here, ${JSON.stringify(served)} is; set QUARRY_EMBEDDER or QUARRY_EMBEDDING_MODEL to serve another`,
    );
  }
  const id = uuidv7(database.clock.now());
  return { id, embedding_model: model, text_hash: hashOf(rest.input_text), ...rest };
}

function asMissingReference(error: unknown): unknown {
  if (!isQuarryError(error, "constraint_violated") || !/foreign key/i.test(messageOf(error))) return error;
  return new QuarryError("not_found", "rule_id, project_id or created_by names something that is not there", {
    cause: error,
  });
}
