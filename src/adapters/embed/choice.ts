/** The model that comes with the package. */
export const LOCAL_MODEL = "all-MiniLM-L6-v2-q8";

export interface EmbedderChoice {
  readonly provider: "local" | "ollama" | "openai";
  readonly model: string;
}

/** To Ollama, a model without a tag is the latest; jobs must find it under one name. */
export function ollamaModel(name: string): string {
  return name.replace(/:latest$/, "") || "nomic-embed-text";
}

/** `local`, `ollama:MODEL` or `openai:MODEL`. Models may have colons in their names. */
export function chosenEmbedder(setting: string): EmbedderChoice {
  const [provider, ...rest] = setting.split(":");
  const model = rest.join(":");
  if (provider === "ollama") return { provider, model: ollamaModel(model) };
  return provider === "openai" ? { provider, model } : { provider: "local", model: LOCAL_MODEL };
}
