import type { DocumentQueues, Phase } from "./queues.ts";

/** A place where work of a document may wait. Tests name the row `t`. */
export interface Stage {
  readonly queue: keyof DocumentQueues;
  readonly table: "documents" | "task_queue_page" | "task_queue_chunk";
  readonly phase: Phase;
  /** Which rows have come this far; what their status says before that is not about this stage. */
  readonly concerns: string;
}

/** In the order in which a document passes them. */
export const STAGES: readonly Stage[] = [
  {
    queue: "split",
    table: "documents",
    phase: "ocr",
    concerns: "t.total_pages is null and t.original_path is not null",
  },
  { queue: "pageOcr", table: "task_queue_page", phase: "ocr", concerns: "true" },
  {
    queue: "pageChunk",
    table: "task_queue_page",
    phase: "vector",
    concerns: "t.ocr_status = 'completed' and t.is_chunked = false",
  },
  { queue: "chunkVector", table: "task_queue_chunk", phase: "vector", concerns: "true" },
  {
    queue: "pageGraphrag",
    table: "task_queue_page",
    phase: "graphrag",
    concerns: "t.vector_status = 'completed' and t.is_chunked = true and t.chunk_count = 0",
  },
  {
    queue: "chunkGraphrag",
    table: "task_queue_chunk",
    phase: "graphrag",
    concerns: "t.vector_status = 'completed'",
  },
];

/** Waiting, running, or failed with tries left. */
export function isOpen({ phase }: Stage): string {
  const column = (name: string) => `t.${phase}_${name}`;
  return `(${column("status")} in ('pending', 'processing') or (${column("status")} = 'failed' and ${column("retry_count")} < t.max_retries))`;
}

/** Failed, with no tries left. */
export function isFailed({ phase }: Stage): string {
  return `(t.${phase}_status = 'failed' and t.${phase}_retry_count >= t.max_retries)`;
}

/** The column that names a row's document. */
export function documentColumn({ table }: Stage): string {
  return table === "documents" ? "id" : "document_id";
}
