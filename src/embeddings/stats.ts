import type { Database } from "../database/database.ts";

/** Figures of the queue's health and of its workers, as the design's own queries give them. */
export interface EmbeddingStats {
  readonly jobs: readonly {
    readonly status: string;
    readonly priority: string;
    readonly count: number;
    readonly avg_time_ms: number | null;
    readonly newest: string;
    readonly oldest: string;
  }[];
  /** Of the last 24 hours. */
  readonly workers: readonly {
    readonly worker_id: string | null;
    readonly jobs_completed: number;
    readonly avg_time: number | null;
    readonly failures: number;
  }[];
  /** Jobs that failed for good, by who held them last. They have left the table that the figures above count. */
  readonly dead_letters: readonly { readonly worker_id: string | null; readonly count: number }[];
  readonly tokens_used: number;
  /** The model that is served here, and jobs that wait for others. */
  readonly model: string;
  readonly waiting_for_other_models: readonly { readonly embedding_model: string; readonly count: number }[];
}

export async function readStats(database: Database, model: string): Promise<EmbeddingStats> {
  const isPostgres = database.dialect.name === "postgres";
  const priority = isPostgres
    ? "priority"
    : "case priority when 'urgent' then 3 when 'high' then 2 when 'normal' then 1 else 0 end";
  const aDayAgo = isPostgres
    ? "now() - interval '24 hours'"
    : "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-24 hours')";
  const read = (sql: string, params: readonly unknown[] = []) => database.query(sql, params);
  const [jobs, workers, dead, tokens, waiting] = await Promise.all([
    read(
      `select status, priority, count(*) as count, avg(processing_time_ms) as avg_time_ms, max(created_at) as newest, min(created_at) as oldest from embedding_jobs group by status, priority order by ${priority} desc, status`,
    ),
    read(
      `select worker_id, count(*) as jobs_completed, avg(processing_time_ms) as avg_time, sum(case when status = 'failed' then 1 else 0 end) as failures from embedding_jobs where completed_at > ${aDayAgo} group by worker_id`,
    ),
    read("select worker_id, count(*) as count from embedding_job_failures group by worker_id"),
    read("select coalesce(sum(tokens_used), 0) as tokens from embedding_jobs"),
    read(
      `select embedding_model, count(*) as count from embedding_jobs where embedding_model <> ${database.dialect.mark(1)} and status in ('pending', 'retrying') group by embedding_model`,
      [model],
    ),
  ]);
  const number = (value: unknown) => (value === null ? null : Number(value));
  return {
    jobs: jobs.map((row) => ({
      status: String(row.status),
      priority: String(row.priority),
      count: Number(row.count),
      avg_time_ms: number(row.avg_time_ms),
      newest: String(row.newest),
      oldest: String(row.oldest),
    })),
    workers: workers.map((row) => ({
      worker_id: row.worker_id as string | null,
      jobs_completed: Number(row.jobs_completed),
      avg_time: number(row.avg_time),
      failures: Number(row.failures),
    })),
    dead_letters: dead.map((row) => ({
      worker_id: row.worker_id as string | null,
      count: Number(row.count),
    })),
    tokens_used: Number(tokens[0]!.tokens),
    model,
    waiting_for_other_models: waiting.map((row) => ({
      embedding_model: String(row.embedding_model),
      count: Number(row.count),
    })),
  };
}
