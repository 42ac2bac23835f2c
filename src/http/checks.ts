import type { z } from "@hono/zod-openapi";
import { problemOf } from "../problems.ts";
import { refusedParameters } from "./parameters.ts";
import type { FieldError, RefusedRequest } from "./problem.ts";

const ERRORS_MAX = 20;

/** The value as the schema makes it, or a refusal that names each wrong field. Never quotes what was sent. */
export function checked<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  refuseBadText(value, []);
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw refusedParameters(parsed.error.issues.flatMap(errorsOf).slice(0, ERRORS_MAX));
}

function errorsOf(issue: z.core.$ZodIssue): FieldError[] {
  const path = issue.path.map(String);
  if (issue.code === "invalid_union" && issue.errors.length > 0) return errorsOfClosest(issue);
  if (issue.code === "unrecognized_keys")
    return issue.keys.map((key) => ({ path: [...path, key].join("."), message: "there is no such field" }));
  return [{ path: path.join("."), message: problemOf(issue) }];
}

/** Of several shapes, the one that fits furthest is most likely the one that was meant: too much of the right kind is nearer than another kind. */
function errorsOfClosest({ path, errors }: z.core.$ZodIssueInvalidUnion): FieldError[] {
  const fit = (issues: readonly z.core.$ZodIssue[]) =>
    Math.max(...issues.map((issue) => 2 * issue.path.length + (issue.code === "invalid_type" ? 0 : 1)));
  const [closest = []] = errors.toSorted((a, b) => fit(b) - fit(a));
  return closest.flatMap((issue) => errorsOf({ ...issue, path: [...path, ...issue.path] }));
}

/** No database keeps NUL or half a character in a text, and a key of this name is never meant well. */
function refuseBadText(value: unknown, path: readonly string[]): void {
  if (typeof value === "string") {
    if (value.includes("\0")) throw refusedText(path, "holds the character NUL");
    if (!value.isWellFormed()) throw refusedText(path, "holds half of a surrogate pair");
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) refuseBadText(item, [...path, String(index)]);
  } else if (value !== null && typeof value === "object") {
    for (const [key, item] of Object.entries(value)) {
      if (key === "__proto__") throw refusedText(path, "has a field of a name that is not allowed");
      refuseBadText(key, path);
      refuseBadText(item, [...path, key]);
    }
  }
}

function refusedText(path: readonly string[], message: string): RefusedRequest {
  return refusedParameters([{ path: path.join("."), message }]);
}
