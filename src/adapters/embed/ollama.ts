import { z } from "zod";
import { QuarryError } from "../../errors.ts";
import { ModelService } from "../model-service.ts";
import { ollamaUrl } from "../ollama-url.ts";
import { ollamaModel } from "./choice.ts";
import { openServiceEmbedder, type ServiceEmbedder, type ServiceSettings } from "./service.ts";
import { vectorOf } from "./vectors.ts";

export interface OllamaEmbedderSettings extends ServiceSettings {
  /** As in OLLAMA_HOST: an address, or a name and a port. */
  readonly host: string;
  readonly model?: string | undefined;
}

/** A local service reads one text after the other: a request of more would only be nearer to its timeout. */
const LIMITS = { textsMax: 64, tokensMax: 16_384 };

const Answer = z.object({
  embeddings: z.array(z.unknown()),
  prompt_eval_count: z.number().nullish().catch(undefined),
});

export async function openOllamaEmbedder(settings: OllamaEmbedderSettings): Promise<ServiceEmbedder> {
  const { host, dimensions, tokensMax, ...rest } = settings;
  const model = ollamaModel(settings.model ?? "");
  const service = new ModelService({
    name: "Ollama",
    url: ollamaUrl(host),
    urlSetting: "OLLAMA_HOST",
    ...rest,
  });
  return openServiceEmbedder({
    model,
    dimensions,
    tokensMax,
    limits: LIMITS,
    service,
    request: async (inputs, options) => {
      const answer = await service.ask({
        ...options,
        path: "/api/embed",
        body: { model, input: inputs, truncate: false, dimensions },
        whenMissing: `If it does not have the model, run: ollama pull ${model}`,
      });
      const { success, data } = Answer.safeParse(answer);
      if (!success) throw new QuarryError("model_failed", `${service.label} gave an answer without vectors`);
      return { vectors: data.embeddings.map(vectorOf), tokens: data.prompt_eval_count ?? undefined };
    },
  });
}
