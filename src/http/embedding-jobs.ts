import { z } from "@hono/zod-openapi";
import { type EmbeddingJob, JOBS_LISTED_MAX, TEXT_LISTED_CHARS_MAX } from "../embeddings/job-rows.ts";
import { JOBS_CREATED_MAX, newJobSchema } from "../embeddings/jobs.ts";
import { JOB_PRIORITIES, JOB_STATUSES } from "../embeddings/queue.ts";
import type { Api, ApiParts } from "./api.ts";
import { json, reply } from "./route.ts";

const text = z.string().nullable();
const count = z.int().nullable();

/** In the words of the table's columns. */
const Job = z
  .strictObject({
    id: z.uuid(),
    rule_id: text,
    status: z.enum(JOB_STATUSES),
    priority: z.enum(JOB_PRIORITIES),
    embedding_model: z.string(),
    input_text: z.string(),
    text_hash: z.string(),
    attempts: z.int(),
    max_attempts: z.int(),
    created_at: z.string(),
    started_at: text,
    completed_at: text,
    embedding_dimensions: count,
    error_message: text,
    processing_time_ms: count,
    tokens_used: count,
    worker_id: text,
    worker_version: text,
    project_id: text,
    created_by: text,
    run_after: text.describe("When it is tried again."),
  })
  .openapi("EmbeddingJob");

const JobWithVector = z
  .strictObject({
    ...Job.shape,
    embedding_vector: z.array(z.number()).nullable().describe("Once it is there."),
  })
  .openapi("EmbeddingJobWithVector");

const NewJob = z.strictObject(newJobSchema.shape).openapi("NewEmbeddingJob");

const Stats = z
  .strictObject({
    jobs: z.array(
      z.strictObject({
        status: z.string(),
        priority: z.string(),
        count: z.int(),
        avg_time_ms: z.number().nullable(),
        newest: z.string(),
        oldest: z.string(),
      }),
    ),
    workers: z
      .array(
        z.strictObject({
          worker_id: text,
          jobs_completed: z.int(),
          avg_time: z.number().nullable(),
          failures: z.int(),
        }),
      )
      .describe("Of the last 24 hours."),
    dead_letters: z
      .array(z.strictObject({ worker_id: text, count: z.int() }))
      .describe("Jobs that failed for good, by who held them last; the figures above do not count them."),
    tokens_used: z.int(),
    model: z.string(),
    waiting_for_other_models: z.array(z.strictObject({ embedding_model: z.string(), count: z.int() })),
  })
  .openapi("EmbeddingStats");

const id = z.strictObject({ id: z.uuid() });
const Choice = z
  .strictObject({
    ids: z.array(z.uuid()).min(1).max(1_000).optional().describe("These only."),
    all: z.literal(true).optional().describe("All of them, where no ids are given."),
    older_than_seconds: z
      .int()
      .min(0)
      .max(315_360_000)
      .optional()
      .describe("Only those that failed longer ago."),
  })
  .refine(({ ids, all }) => ids || all, "name the ids, or say all: true")
  .openapi("DeadLetterChoice");
const Count = z.strictObject({ count: z.int() }).openapi("Count");

export function addEmbeddingJobRoutes(api: Api, { quarry: { embeddings } }: ApiParts): void {
  const tag = "Embedding jobs";
  api.route(
    {
      method: "post",
      path: "/jobs/embedding",
      scope: "write",
      tag,
      summary: "Creates an embedding job, or several",
      description:
        "A text that was embedded before is answered at once: its job is `completed` and has its vector. Several jobs are all created or none.",
      body: z.union([NewJob, z.array(NewJob).min(1).max(JOBS_CREATED_MAX)]),
      answers: {
        201: json(
          "What was created, in the form it was asked for",
          z.union([JobWithVector, z.array(JobWithVector)]),
        ),
      },
      problems: ["not_found"],
    },
    async ({ body }) => {
      const created = await embeddings.createMany(Array.isArray(body) ? body : [body]);
      const shown = created.map(withVector);
      return reply(201, Array.isArray(body) ? shown : shown[0]!);
    },
  );
  api.route(
    {
      method: "get",
      path: "/jobs/embedding",
      scope: "read",
      tag,
      summary: "Lists jobs, newest first",
      description: `Of each text only the first ${TEXT_LISTED_CHARS_MAX} characters; a job alone has the whole.`,
      query: z.strictObject({
        status: z.enum(JOB_STATUSES).optional(),
        priority: z.enum(JOB_PRIORITIES).optional(),
        embedding_model: z.string().max(100).optional(),
        rule_id: z.uuid().optional(),
        project_id: z.uuid().optional(),
        worker_id: z.string().max(200).optional(),
        text_hash: z.string().max(100).optional(),
        limit: z.int().min(1).max(JOBS_LISTED_MAX).default(100),
        after: z.string().max(500).optional().describe("`next` of the page before."),
      }),
      answers: {
        200: json(
          "A page of jobs",
          z.strictObject({
            jobs: z.array(Job),
            next: text.describe("For the next page; null on the last one."),
          }),
        ),
      },
    },
    async ({ query }) => {
      const { jobs, next } = await embeddings.list(query);
      return reply(200, { jobs: [...jobs], next: next ?? null });
    },
  );
  api.route(
    {
      method: "get",
      path: "/jobs/embedding/stats",
      scope: "read",
      tag,
      summary: "Health of the queue and of its workers",
      answers: { 200: json("The figures", Stats) },
    },
    async () => reply(200, await embeddings.stats()),
  );
  for (const verb of ["redrive", "purge"] as const) {
    api.route(
      {
        method: "post",
        path: `/jobs/embedding/dead-letters/${verb}`,
        scope: "write",
        tag,
        summary:
          verb === "redrive"
            ? "Tries jobs again that failed for good"
            : "Throws away jobs that failed for good",
        description: "They are listed by `GET /jobs/embedding?status=failed`.",
        body: Choice,
        answers: { 200: json("How many", Count) },
      },
      async ({ body: { ids, older_than_seconds: seconds } }) => {
        const choice = {
          ...(ids && { ids }),
          ...(seconds !== undefined && { olderThanMs: seconds * 1_000 }),
        };
        return reply(200, { count: await embeddings.deadLetters[verb](choice) });
      },
    );
  }
  api.route(
    {
      method: "get",
      path: "/jobs/embedding/{id}",
      scope: "read",
      tag,
      summary: "A job, with its vector once it is there",
      params: id,
      answers: { 200: json("The job", JobWithVector) },
      problems: ["not_found"],
    },
    async ({ params }) => reply(200, withVector(await embeddings.read(params.id))),
  );
  api.route(
    {
      method: "delete",
      path: "/jobs/embedding/{id}",
      scope: "write",
      tag,
      summary: "Cancels a job",
      description:
        "One that waits goes away, one that runs is taken from its worker; a finished one is too late.",
      params: id,
      answers: {
        200: json(
          "What became of it",
          z.strictObject({ id: z.uuid(), verdict: z.enum(["cancelled", "aborted"]) }),
        ),
      },
      problems: ["not_found", "too_late"],
    },
    async ({ params }) => reply(200, { id: params.id, verdict: await embeddings.cancel(params.id) }),
  );
}

function withVector(job: EmbeddingJob): z.output<typeof JobWithVector> {
  const { embedding_vector: vector, ...rest } = job;
  return { ...rest, embedding_vector: vector ? Array.from(vector) : null };
}
