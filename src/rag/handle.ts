import { basename, dirname, join } from "node:path";
import { type Clock, isoTime } from "../clock.ts";
import type { Database } from "../database/database.ts";
import type { Documents } from "../documents/documents.ts";
import type { Reached, SearchableDocuments } from "../documents/searchable.ts";
import { isQuarryError, messageOf, QuarryError } from "../errors.ts";
import type { Log } from "../log.ts";
import { isMountAway } from "../mounts.ts";
import { untilBack } from "../outcomes.ts";
import type { Task } from "../queue/held.ts";
import { done, failed, type Outcome, retry } from "../queue/outcome.ts";
import { clearCollection, outlivesClearing } from "./clear.ts";
import { removeErrorRecord } from "./error-record.ts";
import { asPipelineError, asRagError, type ErrorFields, errorFields, RagError } from "./errors.ts";
import { putIntoFailed } from "./failed-files.ts";
import { checkedFilename, isThere, plainFilename } from "./filenames.ts";
import { type OpenedSource, openSource, targetFolder } from "./folders.ts";
import { SOURCE_TYPES, type SourceType } from "./message.ts";
import {
  fileOf,
  finishMove,
  fromStatus,
  type Move,
  type MoveParts,
  moveFile,
  type TakenFile,
  takenBy,
  toReport,
  toTaken,
} from "./moves.ts";
import { JobProgress } from "./progress.ts";
import type { JobReport, RagPayload, RagQueue } from "./queue.ts";
import type { Rag, Rags } from "./settings.ts";
import { validate } from "./validate.ts";

export interface RagParts {
  readonly database: Database;
  readonly rags: Rags;
  readonly queue: RagQueue;
  readonly documents: Documents;
  readonly searchable: SearchableDocuments;
  readonly fileBytesMax: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** No fault of the job's. */
const OUTAGE = ["database_unavailable", "redis_unavailable", "store_unavailable", "commit_unknown"] as const;

/**
 * Takes one job from its file to a document that can be searched. Every step may be repeated by whoever gets the job
 * next: what must not happen twice is noted with the job first.
 */
export async function handleJob(parts: RagParts, task: Task<RagPayload>): Promise<Outcome> {
  const work = new JobWork(parts, task);
  try {
    return await work.run();
  } catch (error) {
    // Whoever was told to stop leaves the answer to the engine.
    if (task.signal.aborted || isQuarryError(error, "lease_lost")) throw error;
    if (isOutage(error)) return untilBack(error);
    return work.fail(error).catch((problem) => {
      if (isOutage(problem)) return untilBack(problem);
      throw problem;
    });
  }
}

function isOutage(error: unknown): boolean {
  return isQuarryError(error, ...OUTAGE) || isMountAway(error);
}

class JobWork {
  readonly #parts: RagParts;
  readonly #task: Task<RagPayload>;
  readonly #moves: MoveParts;
  /** Which file the job is about, once that is known. */
  #file: string | undefined;

  constructor(parts: RagParts, task: Task<RagPayload>) {
    this.#parts = parts;
    this.#task = task;
    this.#moves = { jobId: this.#job.job_id, note: (move) => this.#note(toReport(move)) };
  }

  get #job() {
    return this.#task.row.job;
  }

  async run(): Promise<Outcome> {
    const rag = ragOf(this.#parts.rags, this.#job.rag_id);
    const noted = await this.#parts.queue.read(this.#job.job_id);
    // Whatever becomes of the file: those that come with it are meant for an empty collection.
    // But a worker that cannot see the RAG's folders would empty it for nothing.
    const isCleared = noted?.cleared_at || !this.#job.options.reindex;
    if (!isCleared && (await isThere(rag.folders.sources))) await this.#clear(rag);
    const type = typeOf(this.#job.source_type);
    checkedFilename(this.#job.filename);
    const processed = await targetFolder(rag, "processed");
    const move = noted && fromStatus(noted);
    const isProcessed = move !== undefined && dirname(move.to) === processed;
    if (move && move.state !== "moved") await this.#finish(move, isProcessed);
    // Only the answer is missing.
    if (isProcessed) return this.#done(noted?.document_id ?? undefined);
    // Otherwise a move has ended an earlier run, with a failure, and this one begins anew.
    const taken = noted && takenBy(noted);
    const known = taken ? (noted.document_id ?? undefined) : undefined;
    const source = taken ? await this.#reopen(rag, taken) : await this.#open(rag, move);
    try {
      const id = known ?? (await this.#takeIn(rag, type, source!, { isRetried: move !== undefined }));
      if (known !== undefined && this.#task.attempt > 1) await this.#retryFailed(known);
      const reached = await this.#untilSearchable(id, type);
      await this.#forgetFailure(rag, [source?.path, noted?.moved_to]);
      if (source) await this.#putAway(source, processed);
      return await this.#done(id, reached);
    } finally {
      await source?.handle.close();
    }
  }

  /** Writes the failure down, and takes the file away if this was the last try. */
  async fail(error: unknown): Promise<Outcome> {
    const { job, task } = { job: this.#job, task: this.#task };
    const type = SOURCE_TYPES.find((known) => known === job.source_type);
    const failure = asRagError(error, type);
    const fields = errorFields(failure, job.filename);
    const { error: reason, ...report } = fields;
    await this.#note(report);
    const isAgain = failure.isRecoverable && task.attempt < task.attemptsMax;
    this.#log(fields, isAgain ? "a job failed and is tried again" : "a job failed");
    if (isAgain) return retry(reason);
    const rag = this.#parts.rags.get(job.rag_id);
    const status = await this.#parts.queue.read(job.job_id);
    const { clock } = this.#parts;
    const failedJob = { ...job, started_at: status?.started_at ?? null, retry_count: task.attempt };
    const move = status && fromStatus(status);
    const file = this.#file;
    await putIntoFailed({ moves: this.#moves, clock, rag, job: failedJob, fields, move, file }).catch(
      (problem) => {
        if (this.#task.signal.aborted || isQuarryError(problem, "lease_lost") || isOutage(problem))
          throw problem;
        // The janitor tries again: see leftovers.ts.
        this.#parts.log.warn({ job: job.job_id, error: messageOf(problem) }, "the file stays where it is");
      },
    );
    return failed(reason);
  }

  /** The rest, suggestions and traceback, is in the job's status and its record. */
  #log({ error, error_type, error_code }: ErrorFields, what: string): void {
    const { job_id: job, rag_id: rag, filename: file } = this.#job;
    this.#parts.log.warn(
      { job, rag, file, attempt: this.#task.attempt, error, error_type, error_code },
      what,
    );
  }

  async #note(fields: JobReport): Promise<void> {
    this.#task.signal.throwIfAborted();
    if (await this.#parts.queue.report(this.#task, fields)) return;
    throw new QuarryError("lease_lost", `job ${this.#job.job_id}: another worker has it now`);
  }

  /** Brings a move to its end that a worker before us began. */
  async #finish(move: Move, isProcessed: boolean): Promise<void> {
    this.#file = move.file;
    try {
      await finishMove(this.#moves, move);
    } catch (error) {
      if (!isProcessed || !isMissing(error)) throw error;
    }
  }

  /** Where the message says, or where the failure of an earlier run has put it. */
  async #open(rag: Rag, move: Move | undefined): Promise<OpenedSource> {
    const source = await openSource(rag, this.#job.source_path).catch((error) => {
      if (move && isMissing(error)) return openSource(rag, move.to);
      throw error;
    });
    this.#file = fileOf(source.stats);
    return source;
  }

  /** The document is there already, so the file is only wanted for its move; and only if it is the same one. */
  async #reopen(rag: Rag, { path, file }: TakenFile): Promise<OpenedSource | undefined> {
    this.#file = file;
    const source = await openSource(rag, path).catch((error) => {
      if (isMissing(error)) return undefined;
      throw error;
    });
    if (!source || fileOf(source.stats) === file) return source;
    await source.handle.close();
    return undefined;
  }

  async #takeIn(
    rag: Rag,
    type: SourceType,
    source: OpenedSource,
    { isRetried }: { isRetried: boolean },
  ): Promise<string> {
    const { options, filename } = this.#job;
    if (!options.skip_validation) await validate(source, { type, bytesMax: this.#parts.fileBytesMax });
    this.#task.signal.throwIfAborted();
    const { id, change } = await this.#parts.documents.add({
      path: source.path,
      opened: source.handle,
      filename: namedAs(filename, type),
      // Wherever the file lies: a new version of it replaces this one.
      source: `rag:${rag.id}/${join(dirname(source.name), filename)}`,
      tenant: rag.tenant,
      collection: rag.collection,
      metadata: { rag_id: rag.id, source_type: type, submitted_by: this.#job.submitted_by },
      isMetadataKept: options.preserve_metadata,
      chunking: rag.chunking,
      isRetried: isRetried || this.#task.attempt > 1,
    });
    await this.#note({ document_id: id, ...toTaken({ path: source.path, file: fileOf(source.stats) }) });
    const isNew = change === "added" || change === "replaced";
    return isNew || (await this.#isKept(rag, id)) ? id : this.#takeIn(rag, type, source, { isRetried });
  }

  /** A document that was there before may be one that another job is about to clear away. */
  async #isKept(rag: Rag, documentId: string): Promise<boolean> {
    const { signal } = this.#task;
    return outlivesClearing(this.#parts, rag, { documentId, signal }).catch(async (error) => {
      await this.#note({ document_id: null, moved_from: null, move_state: null });
      throw error;
    });
  }

  async #clear(rag: Rag): Promise<void> {
    await clearCollection(this.#parts, rag, this.#job);
    await this.#note({ cleared_at: isoTime(this.#parts.clock.now()) });
  }

  async #retryFailed(id: string): Promise<void> {
    await this.#parts.documents.retry(id).catch((error) => {
      if (!isQuarryError(error, "not_found")) throw error;
    });
  }

  async #untilSearchable(id: string, type: SourceType): Promise<Reached> {
    const { documents, searchable, queue } = this.#parts;
    const progress = new JobProgress((fields) => queue.report(this.#task, fields));
    const reached = await searchable.reached(id, this.#task.signal, (counts) => progress.told(counts));
    await progress.written();
    if (reached !== "failed") return reached;
    const { failures } = await documents.show(id);
    throw asPipelineError(failures[0] ?? { phase: "ocr", error: null }, type);
  }

  /**
   * What an earlier run has said about its failure is not true any more. Before the file is moved, which is noted as the
   * job's end: whoever comes after a crash looks for the record until then.
   */
  async #forgetFailure(rag: Rag, paths: readonly (string | null | undefined)[]): Promise<void> {
    if (!(await isThere(rag.folders.failed))) return;
    const failed = await targetFolder(rag, "failed");
    const names = paths.flatMap((path) => (path && dirname(path) === failed ? [basename(path)] : []));
    for (const name of new Set([plainFilename(this.#job.filename), ...names]))
      await removeErrorRecord(failed, name, this.#job.job_id);
  }

  async #putAway(source: OpenedSource, processed: string): Promise<void> {
    if (dirname(source.path) === processed) return;
    try {
      await moveFile(this.#moves, source, { folder: processed, filename: this.#job.filename });
    } catch (error) {
      // A newer version lies in its place, for a job of its own; what we had of it is in the index.
      if (!isMissing(error)) throw error;
      await this.#note({ moved_to: null, ...toTaken({ path: source.path, file: fileOf(source.stats) }) });
    }
  }

  async #done(id: string | undefined, reached?: Reached): Promise<Outcome> {
    if (id === undefined) return done();
    const counts = (await this.#parts.searchable.counts([id])).get(id);
    const suggestions = reached === "partly" ? [`A part could not be read: quarry documents show ${id}`] : [];
    await this.#note({ error_type: null, error_code: null, suggestions, traceback: null });
    return done({
      document_id: id,
      // A version that was replaced meanwhile has none any more: what was reported stays.
      ...(counts && {
        chunks_created: counts.chunks,
        embeddings_generated: counts.embedded,
        tokens_used: counts.tokens,
      }),
    });
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof RagError && error.errorCode === "ERR_FILE_NOT_FOUND";
}

export function ragOf(rags: Rags, id: string): Rag {
  const rag = rags.get(id);
  if (rag) return rag;
  const known = rags.size > 0 ? `there are ${[...rags.keys()].join(", ")}` : "none is configured";
  throw new RagError("ERR_RAG_UNKNOWN", `there is no RAG ${JSON.stringify(id)}; ${known}`);
}

export function typeOf(given: string): SourceType {
  const type = SOURCE_TYPES.find((known) => known === given);
  if (type) return type;
  throw new RagError(
    "ERR_UNSUPPORTED_TYPE",
    `source_type ${JSON.stringify(given)} is not supported; there are ${SOURCE_TYPES.join(", ")}`,
  );
}

/** The reader goes by content and extension: what is called otherwise than its type gets the extension of it. */
function namedAs(filename: string, type: SourceType): string {
  const isNamed =
    type === "md" ? /\.(md|markdown)$/i.test(filename) : filename.toLowerCase().endsWith(`.${type}`);
  return isNamed ? filename : `${filename}.${type}`;
}
