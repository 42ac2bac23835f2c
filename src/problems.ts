import type { z } from "zod";

/** The first thing that is wrong with a value: where it stands (`whole`: in all of it), and what is wrong. */
export function firstProblem({ issues }: z.ZodError, whole: string): string {
  const [issue] = issues;
  return `${issue!.path.join(".") || whole}: ${problemOf(issue!)}`;
}

const WRONG_TYPE = /^Invalid input: expected (\w+), received (\w+)$/;

/** In words for somebody who never saw the schema. */
export function problemOf({ message }: z.core.$ZodIssue): string {
  const [, expected, received] = WRONG_TYPE.exec(message) ?? [];
  if (expected === undefined || received === undefined) return message;
  if (received === "undefined") return "it is missing";
  return `it must be ${named(expected)}, not ${named(received)}`;
}

const NAMES: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  record: "an object",
  object: "an object",
  null: "null",
};

function named(type: string): string {
  return NAMES[type] ?? type;
}
