import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Embedder } from "../../src/adapters/embed.ts";
import { type EmbeddedIndex, openEmbeddedIndex } from "../../src/adapters/embedded-index.ts";
import { openSqlGraph } from "../../src/adapters/graph/sql.ts";
import type { GraphStore } from "../../src/adapters/graph.ts";
import { type Database, migrate, openDatabase, readMigrations } from "../../src/index.ts";
import { progress } from "../progress.ts";
import { pick, randomFrom } from "./random.ts";
import { Vectors, Vocabulary } from "./vocabulary.ts";

export const TENANT = "default";
const CHUNKS_PER_DOCUMENT = 100;
/** Written at once. */
const DOCUMENTS_PER_STEP = 10;
const CHUNKS_PER_PAGE = 2;
const QUERY_WORDS = 5;
/** How far a question lies from the text that answers it. */
const QUERY_SPREAD = 0.6;
const PROGRESS_EVERY = 20_000;
/** One chunk in so many speaks of somebody. */
const CHUNKS_PER_NAME = 4;

export interface Query {
  readonly text: string;
  readonly vector: Float32Array;
}

export interface SearchData {
  readonly database: Database;
  readonly index: EmbeddedIndex;
  readonly graph: GraphStore;
  readonly indexPath: string;
  /** One after the other: a hundred thousand arrays would make work for the garbage collector while others are timed. */
  readonly vectors: Float32Array;
  readonly queries: readonly Query[];
  close(): Promise<void>;
}

interface NewChunk {
  readonly key: string;
  readonly chunkId: string;
  readonly documentId: string;
  readonly position: number;
  readonly content: string;
  readonly vector: Float32Array;
}

/** Documents as they stand in every store when the pipeline is done with them, written directly. */
export async function makeSearchData(options: {
  readonly folder: string;
  readonly embedder: Embedder;
  readonly chunks: number;
  readonly queries: number;
}): Promise<SearchData> {
  const { folder, embedder } = options;
  const database = openDatabase(join(folder, "quarry.db"), { synchronous: "normal" });
  await migrate(database, readMigrations(join(import.meta.dirname, "../../migrations/sqlite")));
  const indexPath = join(folder, "index.db");
  const { model, dimensions } = embedder;
  const index = await openEmbeddedIndex({ path: indexPath, model, dimensions });
  const graph = openSqlGraph(database);
  const vocabulary = new Vocabulary(1);
  const space = new Vectors(2, dimensions);
  const random = randomFrom(3);
  const vectors = new Float32Array(options.chunks * dimensions);
  let written = 0;
  const samples: NewChunk[] = [];
  while (written < options.chunks) {
    const documents = Array.from({ length: DOCUMENTS_PER_STEP }, () => newDocument(vocabulary, space));
    const chunks = documents.flat();
    await writeRows(database, documents);
    await writeIndex(index, chunks);
    await graph.put(chunks.filter((_, position) => position % CHUNKS_PER_NAME === 0).map(namesOf));
    for (const { vector } of chunks) vectors.set(vector, dimensions * written++);
    samples.push(...documents.map((document) => pick(document, random)));
    if (written % PROGRESS_EVERY === 0) progress(`${written} chunks are written`);
  }
  const queries = Array.from({ length: options.queries }, () =>
    queryFor(pick(samples, random), space, random),
  );
  return {
    database,
    index,
    graph,
    indexPath,
    vectors,
    queries,
    close: async () => {
      await index.close();
      await database.close();
    },
  };
}

function newDocument(vocabulary: Vocabulary, space: Vectors): NewChunk[] {
  const documentId = crypto.randomUUID();
  return Array.from({ length: CHUNKS_PER_DOCUMENT }, (_, position) => {
    const content = vocabulary.text();
    const chunkId = createHash("sha256").update(content).digest("hex");
    return { key: crypto.randomUUID(), chunkId, documentId, position, content, vector: space.any() };
  });
}

/** Some words of a text, and a vector near its own. */
function queryFor({ content, vector }: NewChunk, space: Vectors, random: () => number): Query {
  const words = content.split(" ");
  const text = Array.from({ length: QUERY_WORDS }, () => pick(words, random)).join(" ");
  return { text, vector: space.near(vector, QUERY_SPREAD) };
}

function placeOf({ chunkId, documentId }: NewChunk) {
  return { chunkId, documentId, tenant: TENANT, collection: "default" };
}

async function writeIndex({ vectors, fulltext }: EmbeddedIndex, chunks: readonly NewChunk[]): Promise<void> {
  await vectors.upsert(chunks.map((chunk) => ({ ...placeOf(chunk), vector: chunk.vector })));
  const context = chunks[0]!.content.split(" ").slice(0, 4).join(" ");
  await fulltext.upsert(chunks.map((chunk) => ({ ...placeOf(chunk), context, content: chunk.content })));
}

/** Its last word is a name. */
function namesOf(chunk: NewChunk) {
  const { content } = chunk;
  const start = content.lastIndexOf(" ") + 1;
  const name = { name: content.slice(start), type: "person", confidence: 0.8, start, end: content.length };
  return { ...placeOf(chunk), chunkKey: chunk.key, extraction: { entities: [name], relations: [] } };
}

const PHASES_DONE = "'completed', 'completed'";

const DOCUMENT = {
  name: "bench.document",
  sql: `insert into documents (id, filename, source, total_pages, ocr_status, vector_index_status, graphrag_index_status) values (?1, 'notes.pdf', ?1, ?2, 'completed', ${PHASES_DONE})`,
};
const PAGE = {
  name: "bench.page",
  sql: `insert into task_queue_page (id, document_id, page_number, is_chunked, chunk_count, ocr_status, vector_status, graphrag_status) values (?1, ?2, ?3, true, ${CHUNKS_PER_PAGE}, 'completed', ${PHASES_DONE})`,
};
const CHUNK = {
  name: "bench.chunk",
  sql: `insert into task_queue_chunk (id, page_id, document_id, chunk_id, chunk_index, content, vector_status, graphrag_status) values (?1, ?2, ?3, ?4, ?5, ?6, ${PHASES_DONE})`,
};

async function writeRows(database: Database, documents: readonly (readonly NewChunk[])[]): Promise<void> {
  await database.transaction(async (transaction) => {
    for (const chunks of documents) {
      const { documentId } = chunks[0]!;
      const pages = Array.from({ length: chunks.length / CHUNKS_PER_PAGE }, () => crypto.randomUUID());
      await transaction.query(DOCUMENT, [documentId, pages.length]);
      for (const [position, id] of pages.entries())
        await transaction.query(PAGE, [id, documentId, position + 1]);
      for (const { key, chunkId, position, content } of chunks) {
        const page = pages[Math.floor(position / CHUNKS_PER_PAGE)];
        const place = [documentId, chunkId, position % CHUNKS_PER_PAGE];
        await transaction.query(CHUNK, [key, page, ...place, content]);
      }
    }
  });
}
