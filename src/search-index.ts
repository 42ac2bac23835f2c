import { join } from "node:path";
import type { Embedder } from "./adapters/embed.ts";
import { openEmbeddedIndex } from "./adapters/embedded-index.ts";
import type { TextIndex } from "./adapters/fulltext.ts";
import type { VectorStore } from "./adapters/vectors.ts";
import type { Settings } from "./config.ts";
import type { Database } from "./database/database.ts";
import { unindexedDocuments } from "./documents/unindexed.ts";
import { isQuarryError, messageOf, QuarryError } from "./errors.ts";
import type { Log } from "./log.ts";

/** In the data folder. */
const INDEX_FILE = "index.db";

/** What searches look into, wherever it is kept. */
export interface SearchIndex {
  readonly vectors: VectorStore;
  readonly fulltext: TextIndex;
  close(): Promise<void>;
}

interface IndexParts {
  readonly database: Database;
  readonly embedder: Embedder;
}

/** Documents whose points are not in it are a mistake of the settings, and said before anybody misses them. */
export async function openSearchIndex(
  settings: Settings,
  { log, ...parts }: IndexParts & { log: Log },
): Promise<SearchIndex> {
  const index = await openIndex(settings, parts);
  try {
    await refuseOtherIndex(settings, parts.database, index.vectors);
    return index;
  } catch (error) {
    if (isQuarryError(error, "store_unavailable")) {
      log.warn({ error: messageOf(error) }, "the vectors' store is away: what needs it waits");
      return index;
    }
    await index.close();
    throw error;
  }
}

/** Empties it, whatever embedder it was made with. */
export async function clearSearchIndex(settings: Settings, parts: IndexParts): Promise<void> {
  const index = await openIndex(settings, parts, { isStartedOver: true });
  try {
    await index.vectors.clear();
    await index.fulltext.clear();
  } finally {
    await index.close();
  }
}

/** Words are kept beside the rows when several machines share them, else in the file of the embedded index. */
async function openIndex(
  settings: Settings,
  { database, embedder }: IndexParts,
  options: { isStartedOver?: boolean } = {},
): Promise<SearchIndex> {
  const { model, dimensions } = embedder;
  const openFile = () =>
    openEmbeddedIndex({ path: join(settings.dataFolder, INDEX_FILE), model, dimensions, ...options });
  if (settings.vectors === "embedded") return openFile();
  const vectors = await openVectors(settings, database, { model, dimensions });
  if (database.dialect.name === "sqlite") {
    const { fulltext, close } = await openFile();
    return { vectors, fulltext, close };
  }
  const { openPostgresTexts } = await import("./adapters/fulltext/postgres.ts");
  return { vectors, fulltext: await openPostgresTexts(database), close: async () => undefined };
}

async function openVectors(
  settings: Settings,
  database: Database,
  embedder: { model: string; dimensions: number },
): Promise<VectorStore> {
  if (settings.vectors === "pgvector") {
    const { openPgvector } = await import("./adapters/vectors/pgvector.ts");
    return openPgvector(database, embedder);
  }
  const { openQdrantVectors } = await import("./adapters/vectors/qdrant.ts");
  const { qdrantUrl: url, qdrantApiKey: apiKey } = settings;
  const [folder] = await database.query("select id from data_folder");
  return openQdrantVectors({ url: url!, apiKey, namespace: String(folder!.id), ...embedder });
}

/** Whether it answers, when no database says yet which of its points are ours. */
export async function reachQdrant({ qdrantUrl: url, qdrantApiKey: apiKey }: Settings): Promise<void> {
  const { openQdrantVectors } = await import("./adapters/vectors/qdrant.ts");
  const nothing = { namespace: "none", model: "none", dimensions: 1 };
  await openQdrantVectors({ url: url!, apiKey, ...nothing }).count({ tenant: "default" });
}

async function refuseOtherIndex(settings: Settings, database: Database, vectors: VectorStore): Promise<void> {
  const missing = await unindexedDocuments(database, vectors);
  if (missing.length === 0) return;
  throw new QuarryError(
    "schema_mismatch",
    `QUARRY_VECTORS is ${settings.vectors}, and documents that were indexed are not there (${missing[0]} is one): run "quarry reindex" to bring all of them there, or set QUARRY_VECTORS${settings.vectors === "qdrant" ? ", QDRANT_URL" : ""} and QUARRY_EMBEDDER as they were`,
  );
}
