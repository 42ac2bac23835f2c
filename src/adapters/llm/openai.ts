import { z } from "zod";
import { isQuarryError, QuarryError } from "../../errors.ts";
import type { Llm, LlmRequest } from "../llm.ts";
import { ModelService } from "../model-service.ts";
import { completionOf, type LlmServiceSettings, OUTAGE_MS_MAX, type Said } from "./service.ts";

export interface OpenAiLlmSettings extends LlmServiceSettings {
  /** With its version: "https://api.openai.com/v1". */
  readonly baseUrl: string;
  readonly apiKey?: string | undefined;
}

const Answer = z.object({
  choices: z
    .array(
      z.object({
        message: z.object({ content: z.string().nullish(), refusal: z.string().nullish() }),
        finish_reason: z.string().nullish(),
      }),
    )
    .min(1),
  usage: z.object({ total_tokens: z.number().nullish() }).nullish().catch(undefined),
});

const KNOWS_NO_SCHEMA = /response_format|json_schema/i;

/** OpenAI, and whatever speaks as it does. */
export function openOpenAiLlm(settings: OpenAiLlmSettings): Llm {
  const { baseUrl, model, ...rest } = settings;
  const service = new ModelService({
    name: "the model service",
    url: baseUrl,
    urlSetting: "OPENAI_BASE_URL",
    keySetting: "OPENAI_API_KEY",
    outageMsMax: OUTAGE_MS_MAX,
    ...rest,
  });
  const isOpenAi = new URL(baseUrl).hostname === "api.openai.com";
  let takesSchema = true;

  const ask = (request: LlmRequest, signal: AbortSignal) =>
    service.ask({
      signal,
      path: "/chat/completions",
      body: bodyOf(request, { model, isOpenAi }),
      isSplittable: false,
      whenMissing: `Check that it has the model ${model}, and that OPENAI_BASE_URL ends as it should, often in /v1`,
    });

  /** Not every service can hold a model to a schema; the answer is checked in any case. */
  async function askAsFarAsItCan(request: LlmRequest, signal: AbortSignal): Promise<unknown> {
    const { schema, ...plain } = request;
    if (!schema || !takesSchema) return ask(plain, signal);
    try {
      return await ask(request, signal);
    } catch (error) {
      if (!isQuarryError(error, "invalid_input") || !KNOWS_NO_SCHEMA.test(error.message)) throw error;
      takesSchema = false;
      return ask(plain, signal);
    }
  }

  return {
    model,
    complete: async (request, signal) => {
      const { success, data } = Answer.safeParse(await askAsFarAsItCan(request, signal));
      if (!success)
        throw new QuarryError("model_failed", `${service.label} gave an answer without a message`);
      return completionOf(saidIn(data, service.label), request, service.label);
    },
    close: async () => service.close(),
  };
}

function saidIn({ choices, usage }: z.output<typeof Answer>, service: string): Said {
  const { message, finish_reason } = choices[0]!;
  if (message.refusal || finish_reason === "content_filter")
    throw new QuarryError("model_failed", `${service} refused to answer`);
  return {
    text: message.content ?? "",
    isCut: finish_reason === "length",
    tokens: usage?.total_tokens ?? undefined,
  };
}

function bodyOf(
  { system, messages, schema, tokensMax }: LlmRequest,
  { model, isOpenAi }: { model: string; isOpenAi: boolean },
): Record<string, unknown> {
  return {
    model,
    messages: [{ role: "system", content: system }, ...messages],
    // OpenAI's newer models know the one, most other services the other; and those models choose their temperature.
    ...(isOpenAi ? { max_completion_tokens: tokensMax } : { max_tokens: tokensMax, temperature: 0 }),
    ...(schema && {
      response_format: { type: "json_schema", json_schema: { name: "answer", strict: true, schema } },
    }),
  };
}
