import { basename, dirname } from "node:path";
import { type Clock, isoTime } from "../clock.ts";
import { type ErrorRecord, writeErrorRecord } from "./error-record.ts";
import { type ErrorFields, RagError } from "./errors.ts";
import { plainFilename } from "./filenames.ts";
import { type OpenedSource, openSource, targetFolder } from "./folders.ts";
import type { JobMessage } from "./message.ts";
import { fileOf, type Move, type MoveParts, moveFile } from "./moves.ts";
import type { Rag } from "./settings.ts";

export interface FailedJob {
  readonly moves: MoveParts;
  readonly clock: Clock;
  /** Undefined when there is no such RAG, and so no folder. */
  readonly rag: Rag | undefined;
  readonly job: Omit<JobMessage, "options" | "source_type" | "submitted_by"> & {
    readonly started_at: string | null;
  };
  readonly fields: ErrorFields;
  /** Where an earlier run has put the file. */
  readonly move: Move | undefined;
  /** Which file it is, if that is known: another one in its place is not taken away. */
  readonly file: string | undefined;
}

/**
 * Takes the file of a job that failed for good to failed/, and writes why beside it. A path that is not allowed leads
 * to nobody's file: then there is only the record.
 */
export async function putIntoFailed(failed: FailedJob): Promise<void> {
  const { moves, clock, rag, job, fields, move, file } = failed;
  if (rag) {
    const folder = await targetFolder(rag, "failed");
    const paths = [job.source_path, ...(move ? [move.to, move.from] : [])];
    const source = await opened(rag, paths, file);
    let name = plainFilename(job.filename);
    try {
      if (source && dirname(source.path) === folder) name = basename(source.path);
      else if (source) name = basename((await moveFile(moves, source, { folder, filename: name })).to);
    } finally {
      await source?.handle.close();
    }
    const { job_id, rag_id, filename, submitted_at, started_at, retry_count, max_retries } = job;
    const record: ErrorRecord = {
      ...{ job_id, rag_id, filename, status: "failed", submitted_at, started_at },
      failed_at: isoTime(clock.now()),
      ...{ error: fields.error, error_type: fields.error_type, error_code: fields.error_code },
      ...{ retry_count, max_retries, suggestions: fields.suggestions, traceback: fields.traceback },
    };
    await writeErrorRecord(folder, name, record);
    if (source) return;
  }
  // Nothing was moved, and nothing will be.
  await moves.note({ from: "", to: "", state: "moved", file: "" });
}

/** From the first of these paths that has the file. */
async function opened(
  rag: Rag,
  paths: readonly string[],
  file: string | undefined,
): Promise<OpenedSource | undefined> {
  for (const path of paths) {
    try {
      const source = await openSource(rag, path);
      if (file === undefined || fileOf(source.stats) === file) return source;
      await source.handle.close();
    } catch (error) {
      if (!(error instanceof RagError)) throw error;
    }
  }
  return undefined;
}
