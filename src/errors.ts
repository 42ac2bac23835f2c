/** One error class, one closed list of codes. The code decides the exit code of a command and the HTTP status. */
const CODES = {
  invalid_declaration: { exit: 2, http: 500 },
  invalid_input: { exit: 2, http: 400 },
  unauthorized: { exit: 1, http: 401 },
  forbidden: { exit: 1, http: 403 },
  not_found: { exit: 1, http: 404 },
  method_not_allowed: { exit: 1, http: 405 },
  too_late: { exit: 1, http: 409 },
  request_too_large: { exit: 1, http: 413 },
  request_unsupported: { exit: 1, http: 415 },
  rate_limited: { exit: 1, http: 429 },
  constraint_violated: { exit: 1, http: 409 },
  lease_lost: { exit: 1, http: 409 },
  schema_mismatch: { exit: 1, http: 500 },
  migration_failed: { exit: 1, http: 500 },
  unsupported_runtime: { exit: 2, http: 500 },
  database_unavailable: { exit: 3, http: 503 },
  redis_unavailable: { exit: 3, http: 503 },
  store_unavailable: { exit: 3, http: 503 },
  store_failed: { exit: 1, http: 502 },
  database_failed: { exit: 1, http: 500 },
  commit_unknown: { exit: 3, http: 503 },
  disk_full: { exit: 3, http: 503 },
  timeout: { exit: 1, http: 504 },
  file_unreadable: { exit: 1, http: 422 },
  file_unsupported: { exit: 1, http: 415 },
  file_too_large: { exit: 1, http: 413 },
  file_encrypted: { exit: 1, http: 422 },
  resource_exhausted: { exit: 1, http: 503 },
  isolate_died: { exit: 1, http: 500 },
  model_failed: { exit: 1, http: 502 },
  model_unavailable: { exit: 3, http: 503 },
  address_unavailable: { exit: 3, http: 500 },
  shutting_down: { exit: 1, http: 503 },
  internal: { exit: 1, http: 500 },
} as const;

export type ErrorCode = keyof typeof CODES;
export const ERROR_CODES = Object.keys(CODES) as readonly ErrorCode[];

export class QuarryError extends Error {
  override readonly name = "QuarryError";
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }

  get exitCode(): number {
    return CODES[this.code].exit;
  }

  get httpStatus(): number {
    return CODES[this.code].http;
  }
}

export function isQuarryError(error: unknown, ...codes: ErrorCode[]): error is QuarryError {
  return error instanceof QuarryError && (codes.length === 0 || codes.includes(error.code));
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
