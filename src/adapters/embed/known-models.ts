export interface KnownModel {
  readonly dimensions: number;
  /** How many tokens it reads at once, as its services run it. */
  readonly window: number;
}

const KNOWN = new Map<string, KnownModel>([
  ["nomic-embed-text", { dimensions: 768, window: 2048 }],
  ["nomic-embed-text-v1", { dimensions: 768, window: 2048 }],
  ["nomic-embed-text-v1.5", { dimensions: 768, window: 2048 }],
  ["mxbai-embed-large", { dimensions: 1024, window: 512 }],
  ["mxbai-embed-large-v1", { dimensions: 1024, window: 512 }],
  ["all-minilm", { dimensions: 384, window: 256 }],
  ["all-minilm-l6-v2", { dimensions: 384, window: 256 }],
  ["bge-m3", { dimensions: 1024, window: 8192 }],
  ["text-embedding-3-small", { dimensions: 1536, window: 8191 }],
  ["text-embedding-3-large", { dimensions: 3072, window: 8191 }],
  ["text-embedding-ada-002", { dimensions: 1536, window: 8191 }],
]);

export function knownModel(model: string): KnownModel | undefined {
  return KNOWN.get(plainName(model));
}

/** Without the owner before it and the tag behind it: "BAAI/bge-m3", "bge-m3:latest" → "bge-m3". */
export function plainName(model: string): string {
  return model.toLowerCase().replace(/^.*\//, "").replace(/:.*$/, "");
}
