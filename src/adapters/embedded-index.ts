import type { Session } from "../database/database.ts";
import { type Migration, migrate } from "../database/migrate.ts";
import { openSqlite } from "../database/sqlite.ts";
import { QuarryError } from "../errors.ts";
import { clearTexts, openEmbeddedTexts, TEXT_TABLES } from "./fulltext/embedded.ts";
import type { TextIndex } from "./fulltext.ts";
import { clearVectors, openEmbeddedVectors, VECTOR_TABLES } from "./vectors/embedded.ts";
import type { VectorStore } from "./vectors.ts";

export interface EmbeddedIndexSettings {
  /** A file of its own; several processes may use it at once. Or ":memory:". */
  readonly path: string;
  /** The embedder's; vectors of two models are never compared. */
  readonly model: string;
  readonly dimensions: number;
  /** Empties the index and makes it one of this model. */
  readonly isStartedOver?: boolean;
}

export interface EmbeddedIndex {
  readonly vectors: VectorStore;
  readonly fulltext: TextIndex;
  close(): Promise<void>;
}

const SCHEMA: readonly Migration[] = [
  {
    version: 1,
    name: "index",
    sql: [
      "create table index_model (model text not null, dimensions integer not null);",
      ...VECTOR_TABLES,
      ...TEXT_TABLES,
    ].join("\n"),
  },
];

/** A search reads all codes of a tenant; mapped, they are not copied page by page first, which saves a fifth. */
const MAPPED_BYTES_MAX = 2 ** 30;

/** Vectors and words of chunks in one SQLite file. */
export async function openEmbeddedIndex(settings: EmbeddedIndexSettings): Promise<EmbeddedIndex> {
  const database = openSqlite({ path: settings.path });
  try {
    await database.query(`pragma mmap_size = ${MAPPED_BYTES_MAX}`);
    await migrate(database, SCHEMA);
    await database.transaction((transaction) => settleModel(transaction, settings));
  } catch (error) {
    await database.close();
    throw error;
  }
  return {
    vectors: openEmbeddedVectors(database, { ...settings, checkModel }),
    fulltext: openEmbeddedTexts(database),
    close: () => database.close(),
  };

  /** Another process may have started the index over since it was opened here. */
  async function checkModel(session: Session): Promise<void> {
    refuseOtherModel(await storedModel(session), settings);
  }
}

async function settleModel(session: Session, settings: EmbeddedIndexSettings): Promise<void> {
  const stored = await storedModel(session);
  if (stored && !settings.isStartedOver) return refuseOtherModel(stored, settings);
  await clearVectors(session);
  await clearTexts(session);
  await session.query("delete from index_model");
  await session.query("insert into index_model values (?, ?)", [settings.model, settings.dimensions]);
}

interface StoredModel {
  readonly model: string;
  readonly dimensions: number;
}

async function storedModel(session: Session): Promise<StoredModel | undefined> {
  const [row] = await session.query<{ model: string; dimensions: number }>(
    "select model, dimensions from index_model",
  );
  return row;
}

function refuseOtherModel(stored: StoredModel | undefined, settings: EmbeddedIndexSettings): void {
  const { path, model, dimensions } = settings;
  if (stored?.model === model && stored.dimensions === dimensions) return;
  throw new QuarryError(
    "schema_mismatch",
    `the index ${path} was made with ${stored?.model} (${stored?.dimensions} dimensions), the embedder is now ${model} (${dimensions}): run "quarry reindex" to make it anew, or set the old embedder again`,
  );
}
