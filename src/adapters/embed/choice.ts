/** The model that comes with the package. */
export const LOCAL_MODEL = "all-MiniLM-L6-v2-q8";

export interface EmbedderChoice {
  readonly provider: "local" | "ollama" | "openai";
  readonly model: string;
}

/** `local`, `ollama:MODEL` or `openai:MODEL`. Models may have colons in their names. */
export function chosenEmbedder(setting: string): EmbedderChoice {
  const [provider, ...rest] = setting.split(":");
  const model = rest.join(":");
  if (provider === "ollama") return { provider, model: model || "nomic-embed-text" };
  return provider === "openai" ? { provider, model } : { provider: "local", model: LOCAL_MODEL };
}
