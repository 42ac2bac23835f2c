import { defineQueue, type Queue } from "../queue/declaration.ts";
import type { RetryPolicy } from "../queue/retry-policy.ts";

/**
 * Embedding jobs, to be read first. A job is a text and the vector it becomes. What must hold whoever writes a row
 * (this program, psql, a worker elsewhere) is done by triggers of the database:
 *
 *   rules           a rule that is new or says something else makes its job
 *   embedding_jobs  completed: its vector goes to the jobs that wait for the same text, and to their rules
 *                   failed: it moves to embedding_job_failures
 *
 * Jobs with the same text and model are a group: one at a time has the turn, the others get its vector.
 */
export const JOB_STATUSES = ["pending", "processing", "completed", "failed", "retrying"] as const;
export type JobStatus = (typeof JOB_STATUSES)[number];

export const JOB_PRIORITIES = ["low", "normal", "high", "urgent"] as const;
export type JobPriority = (typeof JOB_PRIORITIES)[number];

export interface JobPayload {
  input_text: string;
  text_hash: string;
  embedding_model: string;
}

export const EMBEDDING_QUEUE = "embeddings";

/** 60 s after the first failed attempt, 120 s after the second, never more than five minutes. */
const WAIT: RetryPolicy = { delayMs: (attempt) => Math.min(300, 2 ** attempt * 30) * 1_000 };

export function embeddingQueue(settings: { model: string; staleMs: number }): Queue<JobPayload> {
  return defineQueue<JobPayload>({
    name: EMBEDDING_QUEUE,
    table: "embedding_jobs",
    key: { column: "id", type: "uuid" },
    columns: {
      status: "status",
      token: "lease_token",
      lease: "lease_until",
      runAfter: "run_after",
      attempts: "attempts",
      error: "error_message",
      worker: "worker_id",
      createdAt: "created_at",
      startedAt: "started_at",
      finishedAt: "completed_at",
      updatedAt: "updated_at",
    },
    statuses: { retrying: "retrying" },
    attempts: { count: "claims", max: "max_attempts" },
    lease: { ms: settings.staleMs, holds: "expiry", index: "idx_embedding_jobs_processing" },
    // A job for another model waits for whoever has that one.
    gate: [{ column: "embedding_model", is: settings.model }],
    order: ["claim_order"],
    group: {
      columns: ["embedding_model", "text_hash"],
      turn: "has_turn",
      // Most texts are one of their kind. An index of turns by hash would have a page of its own rewritten for each of them.
      index: "idx_embedding_jobs_text_hash",
    },
    retry: WAIT,
    reads: ["input_text", "text_hash", "embedding_model"],
    results: [
      "embedding_vector",
      "embedding_dimensions",
      "processing_time_ms",
      "tokens_used",
      "text_hash",
      "worker_version",
    ],
    kinds: { embedding_vector: "floats", has_turn: "boolean" },
  });
}
