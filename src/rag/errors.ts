import { type ErrorCode, messageOf, QuarryError } from "../errors.ts";
import { hideSecrets } from "../log.ts";
import type { SourceType } from "./message.ts";

interface RagErrorKind {
  readonly type: string;
  /** Whether trying again may help: such a job goes back into line, with 5, 10 and 30 seconds between. */
  readonly isRecoverable: boolean;
  /** What it is where no job is concerned: decides the exit code of a command and the HTTP status. */
  readonly code: ErrorCode;
  readonly suggestions: readonly string[];
}

const SKIP = "Try with --skip-validation flag (use with caution)";
const READABLE = "Check file permissions (must be readable)";
const AGAIN = "Submit the file again, or redrive the job: quarry rag dead-letter redrive JOB_ID";

/** Everything that a job can fail with. A closed list; docs/rag.md has the same. */
export const RAG_ERRORS = {
  ERR_MESSAGE_INVALID: {
    type: "MessageError",
    isRecoverable: false,
    code: "invalid_input",
    suggestions: ["Compare the message with docs/rag.md and push it again"],
  },
  ERR_RAG_UNKNOWN: {
    type: "ConfigurationError",
    isRecoverable: false,
    code: "not_found",
    suggestions: ["Add the RAG to rags in quarry.yaml and restart the workers, or correct rag_id"],
  },
  ERR_CONFIG_INVALID: {
    type: "ConfigurationError",
    isRecoverable: false,
    code: "invalid_input",
    suggestions: ["Correct the settings that the error names and restart the workers", AGAIN],
  },
  ERR_PATH_NOT_ALLOWED: {
    type: "PathError",
    isRecoverable: false,
    code: "invalid_input",
    suggestions: [
      "Put the file into the incoming folder of its RAG, as a file and not as a link",
      "Give source_path as an absolute path and filename without slashes",
    ],
  },
  ERR_FILE_NOT_FOUND: {
    type: "FileNotFoundError",
    isRecoverable: false,
    code: "not_found",
    suggestions: [
      "Put the file where source_path says before the job is pushed",
      "Check that workers see the same folder under the same path",
    ],
  },
  ERR_FILE_UNREADABLE: {
    type: "PermissionError",
    isRecoverable: false,
    code: "file_unreadable",
    suggestions: [READABLE, AGAIN],
  },
  ERR_FILE_EMPTY: {
    type: "ValidationError",
    isRecoverable: false,
    code: "file_unreadable",
    suggestions: ["Check that the file was copied completely before the job was pushed", AGAIN],
  },
  ERR_FILE_TOO_LARGE: {
    type: "ValidationError",
    isRecoverable: false,
    code: "file_too_large",
    suggestions: ["Split the file", "Raise QUARRY_FILE_MB_MAX or QUARRY_PAGES_MAX and restart the workers"],
  },
  ERR_FILE_ENCRYPTED: {
    type: "EncryptedFileError",
    isRecoverable: false,
    code: "file_encrypted",
    suggestions: ["Save the file without a password and submit it again"],
  },
  ERR_UNSUPPORTED_TYPE: {
    type: "UnsupportedTypeError",
    isRecoverable: false,
    code: "file_unsupported",
    suggestions: ["Convert the file to pdf, txt, md or docx", "Check that source_type says what the file is"],
  },
  ERR_PDF_INVALID: {
    type: "ParseError",
    isRecoverable: false,
    code: "file_unreadable",
    suggestions: [
      "Verify PDF is valid using: pdfinfo {filename}",
      "Try re-exporting the PDF from original source",
      READABLE,
      SKIP,
    ],
  },
  ERR_DOCX_INVALID: {
    type: "ParseError",
    isRecoverable: false,
    code: "file_unreadable",
    suggestions: ["Open the document in Word or LibreOffice and save it anew", READABLE, SKIP],
  },
  ERR_TEXT_INVALID: {
    type: "ParseError",
    isRecoverable: false,
    code: "file_unreadable",
    suggestions: ["Save the text as UTF-8", "Check that source_type says what the file is", SKIP],
  },
  ERR_READER_FAILED: {
    type: "ParseError",
    isRecoverable: true,
    code: "isolate_died",
    suggestions: ["Open the file, save it anew and submit it again", "Split the file"],
  },
  ERR_OUT_OF_MEMORY: {
    type: "MemoryError",
    isRecoverable: true,
    code: "resource_exhausted",
    suggestions: ["Split the file", "Give the workers more memory"],
  },
  ERR_DISK_FULL: {
    type: "DiskSpaceError",
    isRecoverable: true,
    code: "disk_full",
    suggestions: ["Free disk space for the data folder and the RAG's folders", AGAIN],
  },
  ERR_TIMEOUT: {
    type: "TimeoutError",
    isRecoverable: true,
    code: "timeout",
    suggestions: ["Check that Redis, the database and the embedding service answer", AGAIN],
  },
  ERR_SERVICE_UNAVAILABLE: {
    type: "ServiceUnavailableError",
    isRecoverable: true,
    code: "model_unavailable",
    suggestions: ["Check that the database, Redis and the embedding service can be reached", AGAIN],
  },
  ERR_EMBEDDING_FAILED: {
    type: "EmbeddingError",
    isRecoverable: true,
    code: "model_failed",
    suggestions: ["Look at what failed: quarry documents show DOCUMENT_ID", AGAIN],
  },
  ERR_MOVE_FAILED: {
    type: "FileMoveError",
    isRecoverable: true,
    code: "internal",
    suggestions: ["Check that workers may write into incoming, processed and failed", AGAIN],
  },
  ERR_WORKER_DIED: {
    type: "WorkerError",
    isRecoverable: true,
    code: "isolate_died",
    suggestions: ["Look into the log of the worker: the file may be what it died of", AGAIN],
  },
  ERR_INTERNAL: {
    type: "InternalError",
    isRecoverable: true,
    code: "internal",
    suggestions: ["Look into the log of the worker", AGAIN],
  },
} as const satisfies Record<string, RagErrorKind>;

export type RagErrorCode = keyof typeof RAG_ERRORS;
export const RAG_ERROR_CODES = Object.keys(RAG_ERRORS) as readonly RagErrorCode[];

/** What went wrong with a job, in the words of the contract. */
export class RagError extends QuarryError {
  readonly errorCode: RagErrorCode;

  constructor(errorCode: RagErrorCode, message: string, options?: { cause?: unknown }) {
    super(RAG_ERRORS[errorCode].code, message, options);
    this.errorCode = errorCode;
  }

  get isRecoverable(): boolean {
    return RAG_ERRORS[this.errorCode].isRecoverable;
  }
}

const TRACEBACK_CHARS_MAX = 8_000;
const ERROR_CHARS_MAX = 2_000;

/** The fields of a job that tell of its failure. */
export interface ErrorFields {
  readonly error: string;
  readonly error_type: string;
  readonly error_code: RagErrorCode;
  readonly suggestions: readonly string[];
  readonly traceback: string;
}

export function errorFields(error: RagError, filename: string): ErrorFields {
  const { type, suggestions } = RAG_ERRORS[error.errorCode];
  return {
    error: hideSecrets(error.message).slice(0, ERROR_CHARS_MAX),
    error_type: type,
    error_code: error.errorCode,
    suggestions: suggestions.map((text) => text.replaceAll("{filename}", filename)),
    traceback: tracebackOf(error),
  };
}

/** With the causes below it. */
function tracebackOf(error: Error): string {
  const stacks: string[] = [];
  for (let cause: unknown = error; cause instanceof Error && stacks.length < 5; cause = cause.cause)
    stacks.push(cause.stack ?? String(cause));
  return hideSecrets(stacks.join("\ncaused by ")).slice(0, TRACEBACK_CHARS_MAX);
}

const INVALID: Record<SourceType, RagErrorCode> = {
  pdf: "ERR_PDF_INVALID",
  docx: "ERR_DOCX_INVALID",
  txt: "ERR_TEXT_INVALID",
  md: "ERR_TEXT_INVALID",
};

/** The code for a file that is not what its type says. */
export function invalidCode(type: SourceType): RagErrorCode {
  return INVALID[type];
}

/** Whatever was thrown, as one of the errors that a job can fail with. */
export function asRagError(error: unknown, type: SourceType | undefined): RagError {
  if (error instanceof RagError) return error;
  const code = error instanceof QuarryError ? codeOf(error.code, type) : codeOfSystem(error);
  return new RagError(code, messageOf(error), { cause: error });
}

function codeOf(code: ErrorCode, type: SourceType | undefined): RagErrorCode {
  switch (code) {
    case "not_found":
      return "ERR_FILE_NOT_FOUND";
    case "file_unreadable":
      return type ? INVALID[type] : "ERR_FILE_UNREADABLE";
    case "file_unsupported":
      return "ERR_UNSUPPORTED_TYPE";
    case "file_too_large":
    case "request_too_large":
      return "ERR_FILE_TOO_LARGE";
    case "file_encrypted":
      return "ERR_FILE_ENCRYPTED";
    case "isolate_died":
      return "ERR_READER_FAILED";
    case "resource_exhausted":
      return "ERR_OUT_OF_MEMORY";
    case "disk_full":
      return "ERR_DISK_FULL";
    case "timeout":
      return "ERR_TIMEOUT";
    case "model_failed":
      return "ERR_EMBEDDING_FAILED";
    case "model_unavailable":
    case "database_unavailable":
    case "redis_unavailable":
    case "store_unavailable":
    case "commit_unknown":
    case "rate_limited":
    case "address_unavailable":
    case "shutting_down":
    case "lease_lost":
      return "ERR_SERVICE_UNAVAILABLE";
    case "invalid_input":
    case "invalid_declaration":
    case "schema_mismatch":
    case "migration_failed":
    case "unsupported_runtime":
    case "unauthorized":
    case "forbidden":
      return "ERR_CONFIG_INVALID";
    case "method_not_allowed":
    case "request_unsupported":
    case "too_late":
    case "constraint_violated":
    case "database_failed":
    case "store_failed":
    case "internal":
      return "ERR_INTERNAL";
    default:
      return code satisfies never;
  }
}

const OF_SYSTEM: Readonly<Record<string, RagErrorCode>> = {
  ENOENT: "ERR_FILE_NOT_FOUND",
  ENOTDIR: "ERR_FILE_NOT_FOUND",
  EACCES: "ERR_FILE_UNREADABLE",
  EPERM: "ERR_FILE_UNREADABLE",
  ENOSPC: "ERR_DISK_FULL",
  EDQUOT: "ERR_DISK_FULL",
  ENOMEM: "ERR_OUT_OF_MEMORY",
  ETIMEDOUT: "ERR_TIMEOUT",
  ECONNREFUSED: "ERR_SERVICE_UNAVAILABLE",
  ECONNRESET: "ERR_SERVICE_UNAVAILABLE",
};

function codeOfSystem(error: unknown): RagErrorCode {
  const { code } = (error ?? {}) as NodeJS.ErrnoException;
  return OF_SYSTEM[code ?? ""] ?? "ERR_INTERNAL";
}

/** How the pipeline says it: its rows keep what was said, not the code. */
const SAID: readonly (readonly [RegExp, RagErrorCode])[] = [
  [/protected by a password|encrypted archive/, "ERR_FILE_ENCRYPTED"],
  [/cannot be read: it is an?\b|cannot be read: its content is of no known kind/, "ERR_UNSUPPORTED_TYPE"],
  [/is empty \(0 bytes\)/, "ERR_FILE_EMPTY"],
  [/raise QUARRY_PAGES_MAX|raise QUARRY_FILE_MB_MAX|looks like a zip bomb/, "ERR_FILE_TOO_LARGE"],
  [/raise the memory limit/, "ERR_OUT_OF_MEMORY"],
  [/raise the time limit/, "ERR_TIMEOUT"],
  [/worker \S+ stopped renewing its lease/, "ERR_WORKER_DIED"],
];

/** Why a document failed in the pipeline. */
export function asPipelineError(
  failure: { readonly phase: string; readonly error: string | null },
  type: SourceType,
): RagError {
  const said = failure.error ?? "";
  const code = SAID.find(([pattern]) => pattern.test(said))?.[1];
  const otherwise = failure.phase === "ocr" ? INVALID[type] : "ERR_EMBEDDING_FAILED";
  return new RagError(code ?? otherwise, said || "the document failed; its rows do not say why");
}
