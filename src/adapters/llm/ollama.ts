import { z } from "zod";
import { QuarryError } from "../../errors.ts";
import type { Llm, LlmRequest } from "../llm.ts";
import { ModelService } from "../model-service.ts";
import { ollamaUrl } from "../ollama-url.ts";
import { completionOf, type LlmServiceSettings, OUTAGE_MS_MAX, promptTokens } from "./service.ts";

export interface OllamaLlmSettings extends LlmServiceSettings {
  /** As in OLLAMA_HOST: an address, or a name and a port. */
  readonly host: string;
}

const Answer = z.object({
  message: z.object({ content: z.string() }),
  done_reason: z.string().nullish(),
  prompt_eval_count: z.number().nullish().catch(undefined),
  eval_count: z.number().nullish().catch(undefined),
});

const WINDOW_MIN = 8_192;

export function openOllamaLlm(settings: OllamaLlmSettings): Llm {
  const { host, model, ...rest } = settings;
  const service = new ModelService({
    name: "Ollama",
    url: ollamaUrl(host),
    urlSetting: "OLLAMA_HOST",
    outageMsMax: OUTAGE_MS_MAX,
    ...rest,
  });
  return {
    model,
    complete: async (request, signal) => {
      const answer = await service.ask({
        signal,
        path: "/api/chat",
        body: bodyOf(model, request),
        isSplittable: false,
        whenMissing: `If it does not have the model, run: ollama pull ${model}`,
      });
      const { success, data } = Answer.safeParse(answer);
      if (!success)
        throw new QuarryError("model_failed", `${service.label} gave an answer without a message`);
      const said = {
        text: data.message.content,
        isCut: data.done_reason === "length",
        tokens: (data.prompt_eval_count ?? 0) + (data.eval_count ?? 0),
      };
      return completionOf(said, request, service.label);
    },
    close: async () => service.close(),
  };
}

function bodyOf(model: string, request: LlmRequest): Record<string, unknown> {
  const { system, messages, schema, tokensMax } = request;
  return {
    model,
    messages: [{ role: "system", content: system }, ...messages],
    stream: false,
    ...(schema && { format: schema }),
    options: { temperature: 0, num_predict: tokensMax, num_ctx: windowFor(request) },
  };
}

/** By itself Ollama takes a small window and drops what does not fit in silence. Another size loads the model anew, so sizes double. */
function windowFor(request: LlmRequest): number {
  // Tokens of some languages are shorter than the estimate.
  const needed = 1.5 * promptTokens(request) + request.tokensMax;
  return WINDOW_MIN * 2 ** Math.max(0, Math.ceil(Math.log2(needed / WINDOW_MIN)));
}
