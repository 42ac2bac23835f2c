import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { firstProblem } from "../src/problems.ts";

const schema = z.strictObject({
  name: z.string(),
  size: z.int("give a whole number").optional(),
  options: z.object({ reindex: z.boolean() }).optional(),
});

test("what is wrong with a value is told in words, with its place", () => {
  const problem = (value: unknown) => firstProblem(schema.safeParse(value).error!, "the thing");
  assert.equal(problem({}), "name: it is missing");
  assert.equal(problem({ name: 7 }), "name: it must be a text, not a number");
  assert.equal(problem("x"), "the thing: it must be an object, not a text");
  assert.equal(problem({ name: "x", size: 1.5 }), "size: give a whole number");
  assert.equal(
    problem({ name: "x", options: { reindex: "no" } }),
    "options.reindex: it must be true or false, not a text",
  );
});
