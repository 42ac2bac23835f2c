import { chosenEmbedder } from "./adapters/embed/choice.ts";
import { openLocalEmbedder } from "./adapters/embed/local.ts";
import { openOllamaEmbedder } from "./adapters/embed/ollama.ts";
import { openOpenAiEmbedder } from "./adapters/embed/openai.ts";
import type { Embedder } from "./adapters/embed.ts";
import { openLlmEntities } from "./adapters/entities/llm.ts";
import { openLocalEntities } from "./adapters/entities/local.ts";
import type { EntityExtractor } from "./adapters/entities.ts";
import { openExtractor } from "./adapters/extract/local.ts";
import { openSqlGraph } from "./adapters/graph/sql.ts";
import type { GraphStore } from "./adapters/graph.ts";
import type { LimitsByService } from "./adapters/model-limits.ts";
import { openTesseract } from "./adapters/ocr/tesseract.ts";
import { openVisionOcr } from "./adapters/ocr/vision.ts";
import type { Ocr } from "./adapters/ocr.ts";
import { ollamaUrl } from "./adapters/ollama-url.ts";
import type { Settings } from "./config.ts";
import type { Database } from "./database/database.ts";
import type { PipelineParts } from "./documents/lane-parts.ts";
import { QuarryError } from "./errors.ts";
import { openLlm } from "./llm.ts";
import type { Log } from "./log.ts";
import { clearSearchIndex, openSearchIndex } from "./search-index.ts";

export interface OpenedParts extends PipelineParts {
  close(): Promise<void>;
}

interface Around {
  readonly log: Log;
  readonly limits: LimitsByService;
}

/** Settings → adapters. Models are loaded when they are first asked. */
export async function openParts(
  settings: Settings,
  { log, limits, ...base }: Pick<PipelineParts, "database" | "queues" | "files"> & Around,
): Promise<OpenedParts> {
  const opened: { close(): Promise<void> }[] = [];
  const keep = <T extends { close(): Promise<void> }>(part: T): T => {
    opened.push(part);
    return part;
  };
  const close = async () => {
    for (const part of opened.splice(0).reverse()) await part.close();
  };
  try {
    const embedder = keep(await openEmbedder(settings, { log, limits }));
    const index = keep(await openSearchIndex(settings, { ...base, embedder, log }));
    return {
      ...base,
      extractor: keep(openExtractor({ fileMb: settings.fileMbMax, pagesMax: settings.pagesMax })),
      ocr: keep(await openOcr(settings, { log, limits })),
      embedder,
      entities: keep(await openEntities(settings, { log, limits })),
      vectors: index.vectors,
      fulltext: index.fulltext,
      graph: keep(await openGraph(settings, base.database, log)),
      pollMs: settings.pollMs,
      ocrThreads: settings.ocrThreads,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Empties what searches look into, for an index made anew with the settings of now. */
export async function clearIndex(
  settings: Settings,
  { log, limits, ...base }: Pick<PipelineParts, "database"> & Around,
): Promise<void> {
  const embedder = await openEmbedder(settings, { log, limits });
  try {
    await clearSearchIndex(settings, { ...base, embedder });
  } finally {
    await embedder.close();
  }
}

export function openEmbedder(settings: Settings, { log, limits }: Around): Promise<Embedder> {
  const { provider, model } = chosenEmbedder(settings.embedder);
  const shared = { model, timeoutMs: settings.modelTimeoutMs, log };
  switch (provider) {
    case "local":
      return openLocalEmbedder();
    case "ollama": {
      const { ollamaHost: host } = settings;
      return openOllamaEmbedder({ ...shared, host, limits: limits.of(ollamaUrl(host)) });
    }
    case "openai": {
      const { openaiBaseUrl: baseUrl, openaiApiKey: apiKey } = settings;
      wantKey(baseUrl, apiKey, "OPENAI_API_KEY");
      return openOpenAiEmbedder({ ...shared, baseUrl, apiKey, limits: limits.of(baseUrl) });
    }
    default:
      return provider satisfies never;
  }
}

export async function openOcr(settings: Settings, { log, limits }: Around): Promise<Ocr> {
  const { ocrThreads: threads, openaiBaseUrl, llmTimeoutMs: timeoutMs } = settings;
  if (settings.ocr === "local")
    return openTesseract({ languages: settings.ocrLanguages.split("+"), threads });
  // A key is for the service it was given for.
  const isOwn = settings.ocrUrl !== undefined;
  const service = isOwn
    ? { urlSetting: "QUARRY_OCR_URL", keySetting: "QUARRY_OCR_API_KEY", apiKey: settings.ocrApiKey }
    : { urlSetting: "OPENAI_BASE_URL", keySetting: "OPENAI_API_KEY", apiKey: settings.openaiApiKey };
  const baseUrl = settings.ocrUrl ?? openaiBaseUrl;
  wantKey(baseUrl, service.apiKey, service.keySetting);
  const model = settings.ocr.slice("openai:".length);
  return openVisionOcr({ ...service, baseUrl, model, timeoutMs, threads, log, limits: limits.of(baseUrl) });
}

async function openEntities(settings: Settings, around: Around): Promise<EntityExtractor> {
  if (settings.entities === "local") return openLocalEntities();
  const llm = openLlm(settings, around);
  if (llm) return openLlmEntities(llm);
  throw new QuarryError("invalid_input", "QUARRY_ENTITIES is llm: set QUARRY_LLM to the model");
}

/** Only one of the database's own needs it. */
export async function openGraph(
  settings: Settings,
  database: Database | undefined,
  log: Log,
): Promise<GraphStore> {
  const { graph, neo4jUrl: url, neo4jUser: user, neo4jPassword: password } = settings;
  if (graph === "sql" || url === undefined) return openSqlGraph(database!);
  const { openNeo4jGraph } = await import("./adapters/graph/neo4j.ts");
  return openNeo4jGraph({ url, user, password, database: settings.neo4jDatabase, log });
}

function wantKey(baseUrl: string, apiKey: string | undefined, setting: string): void {
  if (apiKey === undefined && new URL(baseUrl).hostname === "api.openai.com")
    throw new QuarryError("invalid_input", `OpenAI wants a key: set ${setting} in the environment`);
}
