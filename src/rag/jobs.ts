import { rm } from "node:fs/promises";
import { type Clock, pause } from "../clock.ts";
import { QuarryError } from "../errors.ts";
import { RagError } from "./errors.ts";
import { checkedFilename } from "./filenames.ts";
import { openSource } from "./folders.ts";
import { ragOf, typeOf } from "./handle.ts";
import { sourceTypeOf, takeFile } from "./intake.ts";
import { type JobMessage, type JobOptions, newMessage } from "./message.ts";
import {
  CONNECTED_WITHIN_MS,
  type DeadLetterChoice,
  type DeadLetterListOptions,
  type DeadLetterPage,
  JobKept,
  type JobLevel,
  type JobListOptions,
  type JobPage,
  type JobStatus,
  type RagCounts,
  type RagQueue,
} from "./queue.ts";
import type { Rags } from "./settings.ts";

export interface SubmitJob {
  readonly rag_id: string;
  /** Inside the RAG's folder. */
  readonly source_path: string;
  /** By the extension of the filename, unless said. */
  readonly source_type?: string | undefined;
  /** That of the path, unless said. */
  readonly filename?: string | undefined;
  /** The caller's own: the same one again is the same job. */
  readonly job_id?: string | undefined;
  readonly submitted_by?: string | undefined;
  readonly options?: Partial<JobOptions> | undefined;
  readonly max_retries?: number | undefined;
  readonly priority?: JobLevel | undefined;
}

export interface SubmittedJob {
  readonly job_id: string;
  /** "known": a job of this id is in line, runs or is done already. */
  readonly verdict: "queued" | "known";
  readonly source_path: string;
}

export type SubmitFile = Omit<SubmitJob, "source_path" | "filename" | "job_id">;

export interface QueueHealth extends RagCounts {
  readonly queue: string;
  readonly connection: string;
  readonly workerConnected: boolean;
  /** How long dead letters are kept. */
  readonly deadLetterDays: number;
}

interface Parts {
  readonly rags: Rags;
  readonly queue: RagQueue;
  readonly clock: Clock;
}

const LOOK_EVERY_MS = 250;

/** Files of RAGs on their way to the index, as the contract has it. */
export class RagJobs {
  readonly queue: RagQueue;
  readonly rags: Rags;
  readonly #clock: Clock;

  constructor({ queue, rags, clock }: Parts) {
    this.queue = queue;
    this.rags = rags;
    this.#clock = clock;
  }

  /** A file that lies in the RAG's folder already. */
  async submit(job: SubmitJob): Promise<SubmittedJob> {
    const rag = ragOf(this.rags, job.rag_id);
    const source = await openSource(rag, job.source_path);
    await source.handle.close();
    const filename = checkedFilename(job.filename ?? source.name.split("/").at(-1)!);
    const type = job.source_type === undefined ? sourceTypeOf(filename) : typeOf(job.source_type);
    return this.#submit(job, { source_path: source.path, filename, source_type: type });
  }

  /** Any file: one from elsewhere is copied into the RAG's incoming folder first. */
  async submitFile(path: string, job: SubmitFile): Promise<SubmittedJob> {
    const rag = ragOf(this.rags, job.rag_id);
    const type = job.source_type === undefined ? sourceTypeOf(path) : typeOf(job.source_type);
    const taken = await takeFile(rag, path);
    try {
      const { path: source_path, filename } = taken;
      return await this.#submit(job, { source_path, filename, source_type: type });
    } catch (error) {
      if (taken.isCopied && !(error instanceof JobKept)) await rm(taken.path, { force: true });
      throw error;
    }
  }

  async read(jobId: string): Promise<JobStatus> {
    const status = await this.queue.read(jobId);
    if (status) return status;
    throw new QuarryError(
      "not_found",
      `there is no job ${jobId}; finished ones are kept for 7 days: see quarry rag list`,
    );
  }

  list(options?: JobListOptions): Promise<JobPage> {
    return this.queue.list(options);
  }

  deadLetters(options?: DeadLetterListOptions): Promise<DeadLetterPage> {
    return this.queue.deadLetters(options);
  }

  redrive(which: DeadLetterChoice): Promise<number> {
    return this.queue.redrive(which);
  }

  purge(which: DeadLetterChoice): Promise<number> {
    return this.queue.purge(which);
  }

  async health(): Promise<QueueHealth> {
    const counts = await this.queue.counts();
    const silentMs = counts.lastHeartbeatMsAgo;
    return {
      queue: "rag:ingest:queue",
      connection: this.queue.place,
      ...counts,
      workerConnected: silentMs !== null && silentMs < CONNECTED_WITHIN_MS,
      deadLetterDays: Math.round(this.queue.store.queue.retention!.failedMs! / 86_400_000),
    };
  }

  /** Resolves with the job when it is done or has failed; or as it is when the signal aborts. */
  async finished(
    jobId: string,
    signal: AbortSignal,
    onStatus?: (job: JobStatus) => void,
  ): Promise<JobStatus> {
    for (;;) {
      const job = await this.read(jobId);
      onStatus?.(job);
      if (job.status === "done" || job.status === "failed" || signal.aborted) return job;
      await pause(LOOK_EVERY_MS, signal);
    }
  }

  async #submit(
    { rag_id, options, submitted_by, max_retries, priority, job_id }: Omit<SubmitJob, "source_path">,
    file: Pick<JobMessage, "source_path" | "source_type" | "filename">,
  ): Promise<SubmittedJob> {
    const made = newMessage(
      {
        ...{ rag_id, ...file },
        ...(options && { options }),
        ...(submitted_by !== undefined && { submitted_by }),
        ...(max_retries !== undefined && { max_retries }),
      },
      this.#clock,
    );
    const message = job_id === undefined ? made : { ...made, job_id };
    const verdict = await this.queue.submit(message, { priority });
    return { job_id: message.job_id, verdict, source_path: file.source_path };
  }
}

/** Said where RAGs are asked for and none is configured. */
export function refuseWithoutRags({ rags }: RagJobs): void {
  if (rags.size > 0) return;
  throw new RagError(
    "ERR_CONFIG_INVALID",
    "no RAG is configured: name one in quarry.yaml, such as\n  rags:\n    policies_rag:\n      sources: data/sources/policies_rag",
  );
}
