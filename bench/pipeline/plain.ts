import { basename, join } from "node:path";
import type { Embedder } from "../../src/adapters/embed.ts";
import { openEmbeddedIndex } from "../../src/adapters/embedded-index.ts";
import { openLocalEntities } from "../../src/adapters/entities/local.ts";
import { openExtractor } from "../../src/adapters/extract/local.ts";
import { openSqlGraph } from "../../src/adapters/graph/sql.ts";
import { type Chunk, chunkIds, chunkPage, embeddedText } from "../../src/documents/chunker.ts";
import { migrate, openDatabase, readMigrations } from "../../src/index.ts";
import type { Contender } from "./contender.ts";
import { Batches, eachOf } from "./plain-batches.ts";

const TENANT = "default";
const COLLECTION = "default";
const FILES_AT_ONCE = 4;
const PAGES_AT_ONCE = 16;
const CHUNKS_PER_BATCH = 32;
const OVERLAP_TOKENS = 24;

interface PlainChunk extends Chunk {
  readonly key: string;
  readonly chunkId: string;
  readonly documentId: string;
  readonly pageNumber: number;
  readonly title: string | undefined;
}

export interface PlainOptions {
  readonly name: string;
  readonly folder: string;
  readonly embedder: Embedder;
  /** "vector" leaves out the graph. */
  readonly upTo: "vector" | "graphrag";
  /** Embeds while files are still being read. */
  readonly isOverlapped: boolean;
  readonly onStored?: () => void;
}

/**
 * The same work by hand, with the very same parts and stores: a loop over files, a few at once, that embeds, stores
 * and relates in batches while the next files are read. No row says how far it is; what it had not finished when it
 * was killed is lost, and a file that fails fails everything.
 */
export async function openPlain(options: PlainOptions): Promise<Contender> {
  const { folder, embedder } = options;
  const signal = new AbortController().signal;
  const database = openDatabase(join(folder, "plain.db"));
  await migrate(database, readMigrations(join(import.meta.dirname, "../../migrations/sqlite")));
  await database.query("create table plain_documents (id text primary key, filename text, title text)");
  await database.query(
    "create table plain_chunks (key text primary key, chunk_id text, document_id text, page_number integer, heading_path text, content text)",
  );
  const index = await openEmbeddedIndex({
    path: join(folder, "index.db"),
    model: embedder.model,
    dimensions: embedder.dimensions,
  });
  const extractor = openExtractor();
  const entities = await openLocalEntities();
  const graph = openSqlGraph(database);

  async function readFile(path: string, take: (chunks: PlainChunk[]) => Promise<void>): Promise<void> {
    const file = { path, filename: basename(path) };
    const { pageCount, title, furniture } = await extractor.inspect(file, signal);
    const documentId = crypto.randomUUID();
    await database.query("insert into plain_documents values (?, ?, ?)", [
      documentId,
      file.filename,
      title ?? null,
    ]);
    for (let first = 1; first <= pageCount; first += PAGES_AT_ONCE) {
      const last = Math.min(first + PAGES_AT_ONCE - 1, pageCount);
      const pages = Array.from({ length: last - first + 1 }, (_, position) => first + position);
      for (const page of await extractor.read(file, { pages, furniture }, signal)) {
        const { chunks } = chunkPage(page.markdown, {
          title,
          headingsBefore: page.headings ?? [],
          tokensMax: embedder.tokensMax,
          overlapTokens: OVERLAP_TOKENS,
          countTokens: (text) => embedder.tokenizer.count(text),
        });
        const ids = chunkIds(path, chunks);
        const known = { documentId, title, pageNumber: page.pageNumber };
        await take(
          chunks.map((chunk, i) => ({ ...chunk, ...known, key: crypto.randomUUID(), chunkId: ids[i]! })),
        );
      }
    }
  }

  async function store(chunks: readonly PlainChunk[]): Promise<void> {
    const { vectors } = await embedder.embed(chunks.map(embeddedText), signal);
    await database.transaction(async (transaction) => {
      for (const { key, chunkId, documentId, pageNumber, headingPath, content } of chunks)
        await transaction.query(
          { name: "plain.chunk", sql: "insert into plain_chunks values (?, ?, ?, ?, ?, ?)" },
          [key, chunkId, documentId, pageNumber, JSON.stringify(headingPath), content],
        );
    });
    await index.vectors.upsert(chunks.map((chunk, i) => ({ ...placeOf(chunk), vector: vectors[i]! })));
    await index.fulltext.upsert(
      chunks.map((chunk) => ({
        ...placeOf(chunk),
        context: [chunk.title, ...chunk.headingPath].filter(Boolean).join("\n"),
        content: chunk.content,
      })),
    );
    options.onStored?.();
  }

  async function relate(chunks: readonly PlainChunk[]): Promise<void> {
    const extractions = await entities.extract(
      chunks.map(({ content }) => content),
      signal,
    );
    await graph.put(
      chunks.map((chunk, i) => ({ ...placeOf(chunk), chunkKey: chunk.key, extraction: extractions[i]! })),
    );
  }

  return {
    name: options.name,
    take: async (paths) => {
      const related = new Batches<PlainChunk>({ size: CHUNKS_PER_BATCH, atOnce: 1, work: relate });
      const stored = new Batches<PlainChunk>({
        size: CHUNKS_PER_BATCH,
        atOnce: 2,
        work: async (chunks) => {
          await store(chunks);
          if (options.upTo === "graphrag") await related.add(chunks);
        },
      });
      const held: PlainChunk[] = [];
      const take = async (chunks: PlainChunk[]) => {
        if (options.isOverlapped) await stored.add(chunks);
        else held.push(...chunks);
      };
      await eachOf(paths, FILES_AT_ONCE, (path) => readFile(path, take));
      await stored.add(held);
      await stored.end();
      await related.end();
    },
    close: async () => {
      await Promise.all([extractor.close(), entities.close()]);
      await index.close();
      await database.close();
    },
  };
}

function placeOf({ chunkId, documentId }: PlainChunk) {
  return { chunkId, documentId, tenant: TENANT, collection: COLLECTION };
}
