import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { QdrantClient } from "@qdrant/js-client-rest";
import pg from "pg";
import { openEmbeddedIndex } from "../../src/adapters/embedded-index.ts";
import { openPgvector } from "../../src/adapters/vectors/pgvector.ts";
import { openQdrantVectors } from "../../src/adapters/vectors/qdrant.ts";
import { qdrantNames } from "../../src/adapters/vectors/qdrant-names.ts";
import type { Point, VectorStore } from "../../src/adapters/vectors.ts";
import { openDatabase } from "../../src/index.ts";
import { startPgvector } from "../../test/support/pgvector.ts";
import { openQdrant } from "../../test/support/qdrant.ts";

export const DIMENSIONS = 384;
const MODEL = "bench";

/** The same client as the store has, called with nothing around it. */
export interface BareLoop {
  write(points: readonly Point[]): Promise<void>;
  close(): Promise<void>;
}

export interface Place {
  readonly name: string;
  /** What a reader of its figures has to know. */
  readonly note?: string;
  /** How much of the others' load it is given. */
  readonly share: number;
  /** The share of the bare loop's rate to reach; null where the loop does less than the store. */
  readonly goal: number | null;
  open(): Promise<{ store: VectorStore; settled(): Promise<void>; close(): Promise<void> }>;
  openBare(): Promise<BareLoop>;
  close(): Promise<void>;
}

export async function openPlaces(folder: string): Promise<Place[]> {
  return [embedded(folder), await qdrant(), await pgvector()];
}

function embedded(folder: string): Place {
  return {
    name: "embedded",
    note: "the bare loop writes rows with a blob and nothing that could be searched",
    share: 1,
    goal: null,
    open: async () => {
      const path = join(folder, `${randomUUID()}.db`);
      const index = await openEmbeddedIndex({ path, model: MODEL, dimensions: DIMENSIONS });
      return { store: index.vectors, settled: async () => undefined, close: () => index.close() };
    },
    openBare: async () => {
      const database = new DatabaseSync(join(folder, `${randomUUID()}.db`));
      database.exec(
        "pragma journal_mode = wal; create table points (chunk text, document text, tenant text, collection text, vector blob, primary key (tenant, document, chunk))",
      );
      const insert = database.prepare("insert or replace into points values (?, ?, ?, ?, ?)");
      return {
        write: async (points) => {
          database.exec("begin immediate");
          for (const { chunkId, documentId, tenant, collection, vector } of points)
            insert.run(
              chunkId,
              documentId,
              tenant,
              collection,
              new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength),
            );
          database.exec("commit");
        },
        close: async () => database.close(),
      };
    },
    close: async () => undefined,
  };
}

async function qdrant(): Promise<Place> {
  const server = await openQdrant();
  const { url, apiKey } = server;
  const client = new QdrantClient({
    url,
    checkCompatibility: false,
    ...(apiKey !== undefined && { headers: { "api-key": apiKey } }),
  });
  return {
    name: "Qdrant",
    share: 1,
    goal: 0.9,
    open: async () => {
      const identity = { namespace: randomUUID(), model: MODEL, dimensions: DIMENSIONS };
      const store = openQdrantVectors({ url, apiKey, ...identity });
      const name = qdrantNames(identity).nameOf("c");
      return { store, settled: () => green(client, name), close: () => store.clear() };
    },
    openBare: async () => {
      const name = `bare_${randomUUID()}`;
      await client.createCollection(name, { vectors: { size: DIMENSIONS, distance: "Cosine" } });
      for (const [field_name, field_schema] of [
        ["tenant", { type: "keyword", is_tenant: true }],
        ["document", { type: "uuid" }],
        ["chunk", { type: "keyword" }],
      ] as const)
        await client.createPayloadIndex(name, { field_name, field_schema, wait: true });
      return {
        write: async (points) => {
          await client.upsert(name, {
            wait: true,
            points: points.map(({ vector, tenant, documentId, chunkId, collection }) => ({
              id: randomUUID(),
              vector: Array.from(vector),
              payload: { tenant, document: documentId, chunk: chunkId, collection },
            })),
          });
        },
        close: async () => {
          await client.deleteCollection(name);
        },
      };
    },
    close: () => server.stop(),
  };
}

/** Qdrant builds its index behind our back; searches are measured with it. */
async function green(client: QdrantClient, name: string): Promise<void> {
  for (let quiet = 0; quiet < 3; ) {
    const { status } = await client.getCollection(name);
    quiet = status === "green" ? quiet + 1 : 0;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

async function pgvector(): Promise<Place> {
  const { url, description, stop } = await startPgvector();
  const isPglite = description === "PGlite";
  return {
    name: "pgvector",
    ...(isPglite && {
      note: "PGlite: PostgreSQL as WebAssembly in this very process, many times slower than a server, with a twentieth of the vectors",
    }),
    share: isPglite ? 1 / 20 : 1,
    goal: 0.9,
    open: async () => {
      const database = openDatabase(url, { poolMax: 1 });
      // PGlite has one session for all connections, and what was prepared in it outlives them.
      if (isPglite) await database.query("deallocate all");
      const store = await openPgvector(database, { model: MODEL, dimensions: DIMENSIONS, comparedMax: 200 });
      return {
        store,
        settled: async () => undefined,
        close: async () => {
          await store.clear();
          await database.close();
        },
      };
    },
    openBare: async () => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      const table = `bare_${randomUUID().replaceAll("-", "")}`;
      await client.query(
        `create table ${table} (tenant text, document_id uuid, chunk_id text, collection text, embedding vector(${DIMENSIONS}), primary key (tenant, document_id, chunk_id)); create index on ${table} (document_id); create index on ${table} (tenant, collection); create index on ${table} using hnsw (embedding vector_ip_ops)`,
      );
      return {
        write: async (points) => {
          await client.query({
            text: `insert into ${table} select * from unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::vector[])`,
            values: [
              points.map(({ tenant }) => tenant),
              points.map(({ documentId }) => documentId),
              points.map(({ chunkId }) => chunkId),
              points.map(({ collection }) => collection),
              points.map(({ vector }) => `[${Array.from(vector).join(",")}]`),
            ],
          });
        },
        close: async () => {
          await client.query(`drop table ${table}`);
          await client.end();
        },
      };
    },
    close: stop,
  };
}
