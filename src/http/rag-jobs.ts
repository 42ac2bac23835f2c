import { z } from "@hono/zod-openapi";
import { RAG_ERROR_CODES } from "../rag/errors.ts";
import { JOBS_LISTED_MAX } from "../rag/job-rows.ts";
import { jobIdSchema, SOURCE_TYPES } from "../rag/message.ts";
import { JOB_LEVELS, JOB_STATES } from "../rag/queue.ts";
import type { Api, ApiParts } from "./api.ts";
import { json, reply } from "./route.ts";

const text = z.string().nullable();

/** In the words of the contract; below, what Quarry adds. */
const Job = z
  .strictObject({
    job_id: z.string(),
    rag_id: z.string(),
    filename: z.string(),
    status: z.enum(JOB_STATES),
    submitted_at: z.string(),
    started_at: text,
    completed_at: text,
    failed_at: text,
    duration_seconds: z.int().nullable(),
    chunks_created: z.int(),
    embeddings_generated: z.int(),
    tokens_used: z.int(),
    error: text,
    error_type: text,
    error_code: text,
    suggestions: z.array(z.string()),
    traceback: text,
    retry_count: z.int(),
    max_retries: z.int(),
    source_path: z.string(),
    source_type: z.string(),
    submitted_by: z.string(),
    priority: z.enum(JOB_LEVELS),
    run_after: text.describe("When it is tried again."),
    worker_id: text,
    document_id: text.describe("What it became."),
    cleared_at: text.describe("When the collection was cleared for it."),
    moved_from: text,
    moved_to: text.describe("Where its file is now."),
    move_state: text,
  })
  .openapi("RagJob");

const NewJob = z
  .strictObject({
    rag_id: z.string().min(1).max(100),
    source_path: z.string().min(1).max(4_096).describe("A file in the folder of the RAG, on the server."),
    source_type: z.enum(SOURCE_TYPES).optional().describe("By the extension unless said."),
    filename: z.string().min(1).max(255).optional().describe("That of the path unless said."),
    job_id: jobIdSchema.optional().describe("Your own: the same one again is the same job."),
    options: z
      .strictObject({
        reindex: z.boolean().default(false).describe("Clear the RAG's collection first."),
        skip_validation: z.boolean().default(false),
        preserve_metadata: z.boolean().default(true).describe("Keep existing metadata."),
      })
      .optional(),
    max_retries: z.int().min(0).max(100).optional(),
    priority: z.enum(JOB_LEVELS).optional(),
  })
  .openapi("NewRagJob");

const Submitted = z
  .strictObject({
    job_id: z.string(),
    verdict: z.enum(["queued", "known"]).describe("known: a job of this id is in line, runs or is done."),
    source_path: z.string(),
  })
  .openapi("SubmittedRagJob");

const DeadLetter = z
  .strictObject({
    id: z.string(),
    job_id: text,
    rag_id: text,
    reason: z.string(),
    error_code: text,
    failed_at: z.string(),
    message: z.string().describe("As it was pushed."),
  })
  .openapi("RagDeadLetter");

const Choice = z
  .strictObject({
    ids: z.array(z.string().max(200)).min(1).max(1_000).optional().describe("These only."),
    all: z.literal(true).optional().describe("All of them, where no ids are given."),
  })
  .refine(({ ids, all }) => ids || all, "name the ids, or say all: true")
  .openapi("RagDeadLetterChoice");

const page = {
  limit: z.int().min(1).max(JOBS_LISTED_MAX).default(100),
  after: z.string().max(500).optional().describe("`next` of the page before."),
};
const next = text.describe("For the next page; null on the last one.");

/** Files of RAGs. Producers may also push to Redis themselves; what became of it is seen here all the same. */
export function addRagJobRoutes(api: Api, { quarry: { rag } }: ApiParts): void {
  const tag = "RAG jobs";
  api.route(
    {
      method: "post",
      path: "/rag/jobs",
      scope: "write",
      tag,
      summary: "Puts a file of a RAG into line",
      description: "The file lies in the RAG's folder already, in `incoming` as a rule.",
      body: NewJob,
      answers: { 201: json("The job's id", Submitted) },
      problems: ["not_found", "file_unreadable", "file_unsupported", "redis_unavailable"],
    },
    async ({ body }) => reply(201, await rag.submit({ ...body, submitted_by: "api" })),
  );
  api.route(
    {
      method: "get",
      path: "/rag/jobs",
      scope: "read",
      tag,
      summary: "Lists jobs, newest first",
      query: z.strictObject({
        rag_id: z.string().max(100).optional(),
        status: z.enum(JOB_STATES).optional(),
        ...page,
      }),
      answers: { 200: json("A page of jobs", z.strictObject({ jobs: z.array(Job), next })) },
    },
    async ({ query }) => {
      const found = await rag.list(query);
      return reply(200, { jobs: [...found.jobs], next: found.next ?? null });
    },
  );
  api.route(
    {
      method: "get",
      path: "/rag/jobs/{id}",
      scope: "read",
      tag,
      summary: "A job, as it is now",
      params: z.strictObject({ id: z.string().min(1).max(200) }),
      answers: { 200: json("The job", Job) },
      problems: ["not_found", "redis_unavailable"],
    },
    async ({ params }) => reply(200, await rag.read(params.id)),
  );
  api.route(
    {
      method: "get",
      path: "/rag/dead-letters",
      scope: "read",
      tag,
      summary: "Jobs that failed for good, and messages that are none; newest first",
      query: z.strictObject({
        rag_id: z.string().max(100).optional(),
        error_code: z.enum(RAG_ERROR_CODES).optional(),
        ...page,
      }),
      answers: { 200: json("A page of them", z.strictObject({ letters: z.array(DeadLetter), next })) },
      problems: ["redis_unavailable"],
    },
    async ({ query }) => {
      const found = await rag.deadLetters(query);
      return reply(200, { letters: [...found.letters], next: found.next ?? null });
    },
  );
  for (const verb of ["redrive", "purge"] as const) {
    api.route(
      {
        method: "post",
        path: `/rag/dead-letters/${verb}`,
        scope: "write",
        tag,
        summary: verb === "redrive" ? "Tries them again, with fresh counters" : "Throws them away",
        description: "Files stay in `failed`, until a redriven job takes its file from there.",
        body: Choice,
        answers: { 200: json("How many", z.strictObject({ count: z.int() })) },
        problems: ["redis_unavailable"],
      },
      async ({ body: { ids } }) => reply(200, { count: await rag[verb](ids ? { ids } : "all") }),
    );
  }
}
