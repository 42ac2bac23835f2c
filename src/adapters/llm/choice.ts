export type LlmChoice =
  | { readonly provider: "none" }
  | { readonly provider: "ollama" | "openai"; readonly model: string };

/** `none`, `ollama:MODEL` or `openai:MODEL`. Models may have colons in their names. */
export function chosenLlm(setting: string): LlmChoice {
  const [provider, ...rest] = setting.split(":");
  return provider === "ollama" || provider === "openai"
    ? { provider, model: rest.join(":") }
    : { provider: "none" };
}
