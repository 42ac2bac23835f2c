import { z } from "@hono/zod-openapi";
import { ERROR_CODES, type ErrorCode, isQuarryError, QuarryError } from "../errors.ts";

export const PROBLEM_TYPE = "application/problem+json";

export const ProblemSchema = z
  .strictObject({
    type: z.string().describe("Names the kind of problem; urn:quarry:problem: and the code."),
    title: z.string(),
    status: z.int().min(400).max(599),
    detail: z.string().describe("What is wrong and what to do, for people."),
    code: z.enum(ERROR_CODES as [ErrorCode, ...ErrorCode[]]).describe("What is wrong, for programs."),
    instance: z.string().describe("The id of the request; the server's log has it too."),
    errors: z
      .array(z.strictObject({ path: z.string(), message: z.string() }))
      .optional()
      .describe("Each wrong field: where it is, and what is wrong with it."),
  })
  .openapi("Problem");

export type Problem = z.output<typeof ProblemSchema>;

export interface FieldError {
  readonly path: string;
  readonly message: string;
}

/** A problem that says more than its code: wrong fields, or headers that belong to the answer. */
export class RefusedRequest extends QuarryError {
  readonly errors: readonly FieldError[] | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: ErrorCode,
    message: string,
    more: { errors?: readonly FieldError[]; headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(code, message);
    this.errors = more.errors;
    this.headers = more.headers ?? {};
  }
}

/** Messages of these may name hosts, paths and statements; the log has them, callers get a sentence. */
const SAID_INSTEAD: Partial<Record<ErrorCode, string>> = {
  database_unavailable: "The database cannot be reached just now; try again in a moment.",
  redis_unavailable: "Redis cannot be reached just now; try again in a moment.",
  store_unavailable: "A store that is needed for this cannot be reached; the server's log says why.",
  store_failed: "A store that is needed for this failed; the server's log says why.",
  commit_unknown: "The database went away in the middle; look whether it was done before trying again.",
  disk_full: "There is no room left on the disk; make some, then try again.",
  resource_exhausted: "The server has no resources left for this just now; try again in a moment.",
  timeout: "It took too long; try again in a moment.",
  model_failed: "A model that is needed for this failed; the server's log says why.",
  model_unavailable: "A model that is needed for this cannot be reached; the server's log says why.",
  shutting_down: "The server is shutting down; try again in a moment.",
};

export function problemOf(error: unknown, requestId: string): Problem {
  const known = isQuarryError(error) ? error : new QuarryError("internal", "", { cause: error });
  const { code, httpStatus: status } = known;
  const isOurs = status >= 500;
  const errors = known instanceof RefusedRequest ? known.errors : undefined;
  return {
    type: `urn:quarry:problem:${code}`,
    title: titleOf(code),
    status,
    detail: isOurs
      ? (SAID_INSTEAD[code] ??
        "Something went wrong here; the server's log says what, under the request's id.")
      : known.message,
    code,
    instance: requestId,
    ...(errors && { errors: errors.map(({ path, message }) => ({ path, message })) }),
  };
}

export function problemResponse(error: unknown, requestId: string): Response {
  const problem = problemOf(error, requestId);
  const headers = error instanceof RefusedRequest ? error.headers : {};
  return new Response(JSON.stringify(problem), {
    status: problem.status,
    headers: { ...headers, "content-type": PROBLEM_TYPE },
  });
}

export function titleOf(code: ErrorCode): string {
  const words = code.replaceAll("_", " ");
  return words[0]!.toUpperCase() + words.slice(1);
}
