import { z } from "@hono/zod-openapi";
import { type FieldError, RefusedRequest } from "./problem.ts";

const PAIRS_MAX = 200;
const NUMBER = /^-?(0|[1-9]\d{0,15})(\.\d{1,15})?$/;

/** The query as its schema wants it. Strict where URLSearchParams shrugs: bad escapes and repeated names are refused. */
export function readQuery(search: string, schema: z.ZodObject | undefined): Record<string, unknown> {
  const pairs = search
    .replace(/^\?/, "")
    .split("&", PAIRS_MAX + 1)
    .filter(Boolean);
  if (pairs.length > PAIRS_MAX)
    throw new RefusedRequest("invalid_input", `the query has more than ${PAIRS_MAX} parameters`);
  const given = new Map<string, string[]>();
  for (const pair of pairs) {
    const at = pair.indexOf("=");
    const name = decoded(at < 0 ? pair : pair.slice(0, at));
    given.set(name, [...(given.get(name) ?? []), at < 0 ? "" : decoded(pair.slice(at + 1))]);
  }
  const errors: FieldError[] = [];
  const values: [string, unknown][] = [];
  for (const [name, texts] of given) {
    const field = fieldOf(schema, name);
    if (!field) errors.push({ path: name, message: "there is no such parameter" });
    else if (field instanceof z.ZodArray)
      values.push([name, texts.map((text) => typed(text, field.element as z.ZodType))]);
    else if (texts.length > 1) errors.push({ path: name, message: "is given more than once" });
    else values.push([name, typed(texts[0]!, field)]);
  }
  if (errors.length > 0) throw refusedParameters(errors);
  return Object.fromEntries(values);
}

/** Texts of a path or of headers, as the schema wants them. */
export function readTexts(
  texts: Readonly<Record<string, string | undefined>>,
  schema: z.ZodObject,
): Record<string, unknown> {
  const values: [string, unknown][] = [];
  for (const name of Object.keys(schema.shape)) {
    const text = texts[name];
    if (text !== undefined) values.push([name, typed(text, fieldOf(schema, name)!)]);
  }
  return Object.fromEntries(values);
}

export function refusedParameters(errors: readonly FieldError[]): RefusedRequest {
  const { path, message } = errors[0]!;
  return new RefusedRequest("invalid_input", path === "" ? message : `${path}: ${message}`, { errors });
}

/** What is under optional(), default() and the like. */
function fieldOf(schema: z.ZodObject | undefined, name: string): z.ZodType | undefined {
  if (!schema || !Object.hasOwn(schema.shape, name)) return undefined;
  let field = schema.shape[name] as z.ZodType;
  while (field instanceof z.ZodOptional || field instanceof z.ZodDefault || field instanceof z.ZodNullable)
    field = field.unwrap() as z.ZodType;
  return field;
}

/** A text that is no number stays a text, and the schema refuses it. */
function typed(text: string, field: z.ZodType): unknown {
  if (field instanceof z.ZodNumber) return NUMBER.test(text) ? Number(text) : text;
  if (field instanceof z.ZodBoolean) return text === "true" ? true : text === "false" ? false : text;
  return text;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw new RefusedRequest("invalid_input", "the query has a % that is not followed by a UTF-8 character");
  }
}
