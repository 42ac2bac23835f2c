import { join } from "node:path";
import { chosenEmbedder } from "./adapters/embed/choice.ts";
import { openLocalEmbedder } from "./adapters/embed/local.ts";
import { openOllamaEmbedder } from "./adapters/embed/ollama.ts";
import { openOpenAiEmbedder } from "./adapters/embed/openai.ts";
import type { Embedder } from "./adapters/embed.ts";
import { openEmbeddedIndex } from "./adapters/embedded-index.ts";
import { openLocalEntities } from "./adapters/entities/local.ts";
import { openExtractor } from "./adapters/extract/local.ts";
import { openSqlGraph } from "./adapters/graph/sql.ts";
import { openTesseract } from "./adapters/ocr/tesseract.ts";
import type { Settings } from "./config.ts";
import { INDEX_FILE } from "./documents/files.ts";
import type { PipelineParts } from "./documents/lane-parts.ts";
import { QuarryError } from "./errors.ts";
import type { Log } from "./log.ts";

export interface OpenedParts extends PipelineParts {
  close(): Promise<void>;
}

/** Settings → adapters. Models are loaded when they are first asked. */
export async function openParts(
  settings: Settings,
  { log, ...base }: Pick<PipelineParts, "database" | "queues" | "files"> & { log: Log },
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
    const embedder = keep(await openEmbedder(settings, log));
    const index = keep(
      await openEmbeddedIndex({
        path: join(base.files.root, INDEX_FILE),
        model: embedder.model,
        dimensions: embedder.dimensions,
      }),
    );
    return {
      ...base,
      extractor: keep(openExtractor({ fileMb: settings.fileMbMax, pagesMax: settings.pagesMax })),
      ocr: keep(
        await openTesseract({ languages: settings.ocrLanguages.split("+"), threads: settings.ocrThreads }),
      ),
      embedder,
      entities: keep(await openLocalEntities()),
      vectors: index.vectors,
      fulltext: index.fulltext,
      graph: keep(openSqlGraph(base.database)),
      pollMs: settings.pollMs,
      ocrThreads: settings.ocrThreads,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function openEmbedder(settings: Settings, log: Log): Promise<Embedder> {
  const { provider, model } = chosenEmbedder(settings.embedder);
  const shared = { model, timeoutMs: settings.modelTimeoutMs, log };
  switch (provider) {
    case "local":
      return openLocalEmbedder();
    case "ollama":
      return openOllamaEmbedder({ ...shared, host: settings.ollamaHost });
    case "openai": {
      const { openaiBaseUrl: baseUrl, openaiApiKey: apiKey } = settings;
      if (apiKey === undefined && new URL(baseUrl).hostname === "api.openai.com")
        throw new QuarryError("invalid_input", "OpenAI wants a key: set OPENAI_API_KEY in the environment");
      return openOpenAiEmbedder({ ...shared, baseUrl, ...(apiKey !== undefined && { apiKey }) });
    }
    default:
      return provider satisfies never;
  }
}
