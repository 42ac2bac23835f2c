import { z } from "zod";
import { QuarryError } from "../errors.ts";

export interface LlmMessage {
  readonly role: "user" | "assistant";
  readonly content: string;
}

export interface LlmRequest {
  /** What this program wants, and nothing that anybody else wrote. */
  readonly system: string;
  readonly messages: readonly LlmMessage[];
  /** A JSON Schema the answer has to fit. Services heed it as far as they can: the answer is checked anyway. */
  readonly schema?: Readonly<Record<string, unknown>> | undefined;
  /** Of the answer. */
  readonly tokensMax: number;
}

export interface Completion {
  readonly text: string;
  /** Read and written, in the model's own count: what services charge for. */
  readonly tokens: number;
}

/** A language model. */
export interface Llm {
  readonly model: string;
  complete(request: LlmRequest, signal: AbortSignal): Promise<Completion>;
  close(): Promise<void>;
}

export interface StructuredRequest<Value> extends Omit<LlmRequest, "schema"> {
  readonly schema: z.ZodType<Value>;
}

const FENCED = /^```[a-z]*\s*\n([\s\S]*?)\n?```$/i;
const PROBLEMS_MAX = 5;

/** An answer in the form of a schema. One that does not fit is told what is wrong with it and asked once more. */
export async function completeAs<Value>(
  llm: Pick<Llm, "model" | "complete">,
  { schema, ...request }: StructuredRequest<Value>,
  signal: AbortSignal,
): Promise<Value> {
  const asked = { ...request, schema: wireSchema(schema) };
  const first = await llm.complete(asked, signal);
  const read = readAs(schema, first.text);
  if (read.success) return read.value;
  const messages: LlmMessage[] = [
    ...request.messages,
    { role: "assistant", content: first.text },
    {
      role: "user",
      content: `That cannot be used: ${read.problem}. Answer again, with the JSON alone and as it was asked for.`,
    },
  ];
  const second = await llm.complete({ ...asked, messages }, signal);
  const again = readAs(schema, second.text);
  if (again.success) return again.value;
  throw new QuarryError(
    "model_failed",
    `the model ${llm.model} twice gave an answer of another form: ${again.problem}`,
  );
}

type Read<Value> = { success: true; value: Value } | { success: false; problem: string };

function readAs<Value>(schema: z.ZodType<Value>, text: string): Read<Value> {
  const bare = FENCED.exec(text.trim())?.[1] ?? text;
  let json: unknown;
  try {
    json = JSON.parse(bare);
  } catch {
    return { success: false, problem: "it is not JSON" };
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return { success: true, value: parsed.data };
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join(".") || "it"}: ${message}`);
  return { success: false, problem: problems.slice(0, PROBLEMS_MAX).join("; ") };
}

/** Services refuse a schema for a word they do not know; lengths are checked here in any case. */
const UNKNOWN_TO_SOME = new Set(["$schema", "minLength", "maxLength", "minItems", "maxItems", "pattern"]);

function wireSchema(schema: z.ZodType): Record<string, unknown> {
  return JSON.parse(
    JSON.stringify(z.toJSONSchema(schema), (name, value) => (UNKNOWN_TO_SOME.has(name) ? undefined : value)),
  );
}
