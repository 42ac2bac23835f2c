import { chosenLlm } from "./adapters/llm/choice.ts";
import { openOllamaLlm } from "./adapters/llm/ollama.ts";
import { openOpenAiLlm } from "./adapters/llm/openai.ts";
import type { Llm } from "./adapters/llm.ts";
import type { LimitsByService } from "./adapters/model-limits.ts";
import { ollamaUrl } from "./adapters/ollama-url.ts";
import type { Settings } from "./config.ts";
import type { Log } from "./log.ts";

/** The model of QUARRY_LLM; undefined when there is none. */
export function openLlm(
  settings: Settings,
  { log, limits }: { readonly log: Log; readonly limits: LimitsByService },
): Llm | undefined {
  const { llm, llmTimeoutMs: timeoutMs, ollamaHost: host, openaiBaseUrl: baseUrl } = settings;
  const chosen = chosenLlm(llm);
  if (chosen.provider === "none") return undefined;
  const shared = { model: chosen.model, timeoutMs, log };
  if (chosen.provider === "ollama")
    return openOllamaLlm({ ...shared, host, limits: limits.of(ollamaUrl(host)) });
  return openOpenAiLlm({ ...shared, baseUrl, apiKey: settings.openaiApiKey, limits: limits.of(baseUrl) });
}
