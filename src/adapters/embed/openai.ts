import { z } from "zod";
import { QuarryError } from "../../errors.ts";
import { ModelService } from "../model-service.ts";
import { openServiceEmbedder, type ServiceEmbedder, type ServiceSettings } from "./service.ts";
import { vectorOf } from "./vectors.ts";

export interface OpenAiEmbedderSettings extends ServiceSettings {
  /** With its version: "https://api.openai.com/v1". */
  readonly baseUrl: string;
  readonly apiKey?: string | undefined;
  readonly model: string;
}

/** OpenAI takes 2,048 texts and 300,000 tokens; the count of other models' tokens is an estimate. */
const LIMITS = { textsMax: 2048, tokensMax: 250_000 };

const Answer = z.object({
  data: z.array(z.object({ index: z.number().int().optional(), embedding: z.unknown() })),
  usage: z
    .object({ total_tokens: z.number().nullish(), prompt_tokens: z.number().nullish() })
    .nullish()
    .catch(undefined),
});

/** OpenAI, and whatever speaks as it does. */
export async function openOpenAiEmbedder(settings: OpenAiEmbedderSettings): Promise<ServiceEmbedder> {
  const { baseUrl, model, dimensions, tokensMax, ...rest } = settings;
  const service = new ModelService({
    name: "the embedding service",
    url: baseUrl,
    urlSetting: "OPENAI_BASE_URL",
    keySetting: "OPENAI_API_KEY",
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
        path: "/embeddings",
        // A third of the bytes that the same numbers take in decimals.
        body: { model, input: inputs, encoding_format: "base64", dimensions },
        whenMissing: `Check that it has the model ${model}, and that OPENAI_BASE_URL ends as it should, often in /v1`,
      });
      const { success, data } = Answer.safeParse(answer);
      if (!success) throw new QuarryError("model_failed", `${service.label} gave an answer without vectors`);
      return {
        vectors: inOrder(data.data).map(({ embedding }) => vectorOf(embedding)),
        tokens: data.usage?.total_tokens || data.usage?.prompt_tokens || undefined,
      };
    },
  });
}

/** Some services leave the index out, and then keep the order. */
function inOrder<Item extends { index?: number | undefined }>(items: readonly Item[]): readonly Item[] {
  const indexes = new Set(items.map(({ index }) => index));
  if (indexes.has(undefined)) return items;
  const isWhole =
    indexes.size === items.length && items.every(({ index }) => index! >= 0 && index! < items.length);
  if (!isWhole) throw new QuarryError("model_failed", "the embedding service gave two vectors for one text");
  return items.toSorted((a, b) => a.index! - b.index!);
}
