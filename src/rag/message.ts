import { randomBytes } from "node:crypto";
import { z } from "zod";
import { type Clock, isoTime } from "../clock.ts";
import { firstProblem } from "../problems.ts";

/** File types that a job may name. Any other fails as unsupported, with its file, and not as malformed. */
export const SOURCE_TYPES = ["pdf", "txt", "md", "docx"] as const;
export type SourceType = (typeof SOURCE_TYPES)[number];

/** What is longer is nobody's job: a job names a file, it does not carry one. */
export const MESSAGE_BYTES_MAX = 64 * 1024;

/** Part of the names of keys, so no colon: `rag:ingest:job:<id>:ttl` must belong to one job only. */
const JOB_ID = /^[A-Za-z0-9][\w.@-]{0,199}$/;
/** As Python, JavaScript and others write it: microseconds or none, with or without a zone. */
const TIME = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:?\d\d)?$/;

/** Producers in other languages write null for what they do not know. */
const optional = <Schema extends z.ZodType>(schema: Schema, fallback: z.output<Schema>) =>
  z.preprocess((value) => value ?? fallback, schema);
const flag = (fallback: boolean) => optional(z.boolean(), fallback);
const text = (max: number) => z.string().min(1).max(max);
const count = z.int().min(0).max(1_000);

export const jobIdSchema = z
  .string()
  .regex(JOB_ID, "use 1 to 200 letters, digits and _ . @ - and begin with a letter or a digit");

/** A message as the contract has it. Fields that it does not know are kept. */
export const jobMessageSchema = z.looseObject({
  job_id: jobIdSchema,
  rag_id: text(100),
  source_path: text(4_096),
  source_type: text(20),
  filename: text(1_000),
  submitted_at: z.string().regex(TIME, "give a time such as 2025-01-10T20:15:30.123456Z"),
  submitted_by: optional(text(200), "cli"),
  options: optional(
    z.looseObject({ reindex: flag(false), skip_validation: flag(false), preserve_metadata: flag(true) }),
    { reindex: false, skip_validation: false, preserve_metadata: true },
  ),
  retry_count: optional(count, 0),
  max_retries: optional(count, 3),
});

export interface JobOptions {
  /** Clear the collection first. */
  readonly reindex: boolean;
  readonly skip_validation: boolean;
  readonly preserve_metadata: boolean;
}

export interface JobMessage {
  readonly job_id: string;
  readonly rag_id: string;
  readonly source_path: string;
  /** One of SOURCE_TYPES, or what a foreign producer wrote instead. */
  readonly source_type: string;
  readonly filename: string;
  readonly submitted_at: string;
  readonly submitted_by: string;
  readonly options: JobOptions;
  readonly retry_count: number;
  readonly max_retries: number;
}

export type ReadMessage =
  | { readonly job: JobMessage; readonly problem?: undefined }
  | { readonly job?: undefined; readonly problem: string };

/** What a producer pushed, with the contract's defaults, or what is wrong with it. */
export function readMessage(pushed: string): ReadMessage {
  if (Buffer.byteLength(pushed) > MESSAGE_BYTES_MAX)
    return { problem: `it has more than ${MESSAGE_BYTES_MAX} bytes: name a file instead of sending one` };
  let value: unknown;
  try {
    value = JSON.parse(pushed);
  } catch {
    return { problem: "it is not JSON" };
  }
  if (isComplete(value)) return { job: value };
  const parsed = jobMessageSchema.safeParse(value);
  if (parsed.success) return { job: parsed.data };
  return { problem: firstProblem(parsed.error, "it is no message") };
}

/** What the schema would give back as it is: a message with every field, each as it should be. Most are, and this is quick. */
function isComplete(value: unknown): value is JobMessage {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const job = value as Record<string, unknown>;
  return (
    isText(job.job_id, 200) &&
    JOB_ID.test(job.job_id) &&
    isText(job.rag_id, 100) &&
    isText(job.source_path, 4_096) &&
    isText(job.source_type, 20) &&
    isText(job.filename, 1_000) &&
    isText(job.submitted_by, 200) &&
    isText(job.submitted_at, 50) &&
    TIME.test(job.submitted_at) &&
    isCount(job.retry_count) &&
    isCount(job.max_retries) &&
    hasFlags(job.options)
  );
}

function hasFlags(options: unknown): boolean {
  if (typeof options !== "object" || options === null || Array.isArray(options)) return false;
  const { reindex, skip_validation, preserve_metadata } = options as Record<string, unknown>;
  return [reindex, skip_validation, preserve_metadata].every((value) => typeof value === "boolean");
}

function isText(value: unknown, max: number): value is string {
  return typeof value === "string" && value.length >= 1 && value.length <= max;
}

function isCount(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 1_000;
}

/** When the producer says that it submitted the job; without a zone it is UTC. */
export function submittedMs({ submitted_at: time }: Pick<JobMessage, "submitted_at">): number {
  const [, date, clock, zone = "Z"] = /^(.{10}).([\d:.]+)(.+)?$/.exec(time)!;
  return Date.parse(`${date}T${clock}${zone.replace(/^(...)(\d\d)$/, "$1:$2")}`);
}

let serial = randomBytes(4).readUInt32BE();

/**
 * Counted on from a random number: of 20,000 ids with 32 random bits in one second, two are the same one time in twenty, and
 * one of their files would be taken for known.
 */
export function newJobId(ragId: string, clock: Clock): string {
  serial = (serial + 1) >>> 0;
  return `rag-${ragId}-${Math.floor(clock.now() / 1_000)}-${serial.toString(16).padStart(8, "0")}`;
}

export interface NewJobMessage
  extends Pick<JobMessage, "rag_id" | "source_path" | "source_type" | "filename"> {
  readonly submitted_by?: string;
  readonly options?: Partial<JobOptions>;
  readonly max_retries?: number;
}

/** A message for a job that is new, with its id. */
export function newMessage(job: NewJobMessage, clock: Clock): JobMessage {
  return {
    job_id: newJobId(job.rag_id, clock),
    rag_id: job.rag_id,
    source_path: job.source_path,
    source_type: job.source_type,
    filename: job.filename,
    submitted_at: isoTime(clock.now()),
    submitted_by: job.submitted_by ?? "cli",
    options: { reindex: false, skip_validation: false, preserve_metadata: true, ...job.options },
    retry_count: 0,
    max_retries: job.max_retries ?? 3,
  };
}
