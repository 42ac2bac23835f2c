import { z } from "zod";
import { termsOf } from "../adapters/fulltext/terms.ts";
import { catalogueQuery } from "./catalogue-questions.ts";
import { type Step, WORKER_KINDS } from "./planners.ts";

export const STEPS_MAX = 6;
const TASK_LENGTH_MAX = 1_000;

/** A plan as a model has to give it. */
export const planSchema = z.strictObject({
  workers: z
    .array(
      z.strictObject({ kind: z.enum(WORKER_KINDS), task: z.string().trim().min(1).max(TASK_LENGTH_MAX) }),
    )
    .min(1)
    .max(STEPS_MAX),
});

const ASKS =
  "who|whom|whose|what|which|when|where|why|how|is|are|was|were|does|do|did|has|have|had|can|could|may|must|should|will|would|list|show|tell|name|find|count";
/** Between two questions in one sentence: "… and when …", "…, who …", "…; what …". */
const JOINT = new RegExp(
  String.raw`(?:\s*[;]\s*|\s*,\s*(?:and\s+|or\s+|but\s+)?|\s+and\s+(?:also\s+)?)(?=(?:${ASKS})\b)`,
  "iu",
);
const SENTENCE = /(?<=[?!.])\s+/u;
/** What stands for something that was named before. */
const REFERS_BACK = /\b(?:it|its|they|them|their|theirs|he|him|his|she|her|hers|this|these|those)\b/iu;
const STARTS_QUESTION = new RegExp(`^(?:${ASKS})\\b`, "iu");
/** Words with a capital that do not begin the sentence. */
const NAME = /(?<=\S\s\(?)\p{Lu}[\p{L}\p{N}'’-]*(?:\s\p{Lu}[\p{L}\p{N}'’-]*)*/gu;

/** Says how something is asked for, not what. Terms of several words stand in others as well. */
const GENERIC = / |^(?:many|much|documents?|files?|papers|pages?|mentions?|list|collections?)$/;

interface Part {
  readonly text: string;
  /** The part before it stands in the same sentence. */
  readonly isBeside: boolean;
}

/**
 * A plan without a model: one part for each question in it. A part that leaves unsaid what it is about takes the words
 * of the one before along, or the search would look for "it". What is about the catalogue goes to the catalogue.
 */
export function decompose(question: string): Step[] {
  const steps: Step[] = [];
  for (const part of partsOf(question)) {
    const step = stepOf(part, steps.at(-1)?.task);
    if (!steps.some(({ task }) => task === step.task)) steps.push(step);
  }
  return steps;
}

function stepOf(part: Part, before: string | undefined): Step {
  // The catalogue has to be told the name itself.
  const [name] = before === undefined ? [] : namesIn(before);
  const named = name === undefined ? part.text : part.text.replace(REFERS_BACK, () => name);
  if (catalogueQuery(named) !== undefined && !REFERS_BACK.test(named)) return { kind: "sql", task: named };
  return { kind: "standard", task: withSubject(part, before) };
}

function partsOf(text: string): Part[] {
  const whole = text.replaceAll(/\s+/g, " ").trim().slice(0, TASK_LENGTH_MAX);
  const parts: Part[] = [];
  for (const sentence of mergedStatements(whole.split(SENTENCE))) {
    const pieces = sentence.split(JOINT).map((piece) => piece.trim());
    // "Was it built, is it safe" are two; "The pump, which is old, fails" is none.
    const isSplit = STARTS_QUESTION.test(sentence) && pieces.every(isTelling);
    for (const [index, text] of (isSplit ? pieces : [sentence]).entries())
      parts.push({ text, isBeside: index > 0 });
  }
  const told = parts.filter(({ text }) => isTelling(text));
  return told.length > 0 ? told.slice(0, STEPS_MAX) : [{ text: whole, isBeside: false }];
}

/** What is said before a question belongs to it: "I am ill. Whom do I tell?" */
function mergedStatements(sentences: readonly string[]): string[] {
  const merged: string[] = [];
  let before = "";
  for (const sentence of sentences) {
    const together = before === "" ? sentence : `${before} ${sentence}`;
    if (sentence.endsWith("?") || STARTS_QUESTION.test(sentence)) {
      merged.push(together);
      before = "";
    } else before = together;
  }
  if (before === "") return merged;
  return merged.length === 0 ? [before] : [...merged.slice(0, -1), `${merged.at(-1)} ${before}`];
}

/** Has a word to search for. "and why" alone has none. */
function isTelling(part: string): boolean {
  return part.split(" ").length > 1 && termsOf(part).length > 0;
}

function namesIn(text: string): string[] {
  return text.match(NAME) ?? [];
}

function withSubject({ text, isBeside }: Part, before: string | undefined): string {
  const isUnsaid = REFERS_BACK.test(text) || (isBeside && namesIn(text).length === 0);
  if (!isUnsaid || before === undefined) return text;
  const known = new Set(termsOf(text));
  const words = termsOf(before).filter((term) => !known.has(term) && !GENERIC.test(term));
  const subject = namesIn(before).length > 0 ? namesIn(before) : words;
  return subject.length === 0 ? text : `${text.replace(/\?$/, "")} (${subject.join(" ")})?`;
}
