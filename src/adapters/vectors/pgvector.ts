import type { Database, Row } from "../../database/database.ts";
import type { Hit, IndexFilter, Point, VectorStore } from "../vectors.ts";
import { clearVectorTables, prepareVectorTable, type VectorTable } from "./pgvector-schema.ts";
import { unitVector } from "./unit.ts";

export interface PgvectorSettings {
  readonly model: string;
  readonly dimensions: number;
  /** Up to so many are compared one by one; more go through the graph of neighbours. */
  readonly comparedMax?: number;
}

const COMPARED_MAX = 5_000;
/** How many candidates a walk through the graph keeps, of at most 1,000; see docs/stores.md for the recall this gives. */
const CANDIDATES_MIN = 200;
const CANDIDATES_MAX = 1_000;
/** How many a filtered walk may look at before those in the filter are compared one by one instead. */
const LOOKED_AT_MAX = 40_000;
const POINTS_PER_STATEMENT = 256;
/** Of unit vectors: finer than the 32-bit floats they become. */
const DIGITS_AFTER_POINT = 7;

/** Vectors in the database itself: a table for each model, searched by HNSW. */
export async function openPgvector(database: Database, settings: PgvectorSettings): Promise<VectorStore> {
  const table = await prepareVectorTable(database, settings);
  const statements = compile(table);
  const { comparedMax = COMPARED_MAX } = settings;
  const unit = (vector: Float32Array) => textOf(unitVector(vector, settings.dimensions));

  async function count(filter: IndexFilter, limit: number | null): Promise<number> {
    const [row] = await database.query<{ total: number }>(statements.count, [...filterOf(filter), limit]);
    return row!.total;
  }

  /** Undefined when it did not find enough: the filter leaves too few of those that are near. */
  async function walk(query: string, limit: number, filter: IndexFilter): Promise<FoundPoint[] | undefined> {
    const candidates = Math.min(CANDIDATES_MAX, Math.max(CANDIDATES_MIN, 2 * limit));
    if (!table.isIndexed || (limit > candidates && !table.isIterative)) return undefined;
    return database.transaction(async (session) => {
      await session.query(
        [
          `set local hnsw.ef_search = ${candidates}`,
          ...(table.isIterative
            ? [
                "set local hnsw.iterative_scan = strict_order",
                `set local hnsw.max_scan_tuples = ${LOOKED_AT_MAX}`,
              ]
            : []),
        ].join("; "),
      );
      const rows = await session.query<FoundPoint>(statements.walk, [...filterOf(filter), query, limit]);
      return rows.length === limit ? rows : undefined;
    });
  }

  return {
    async upsert(points) {
      const newest = new Map<string, Point>();
      for (const point of points) newest.set(keyOf(point), point);
      // In one order, so that two writers of the same points wait for each other instead of locking each other out.
      const rows = [...newest].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, point]) => point);
      const vectors = rows.map(({ vector }) => unit(vector));
      for (let start = 0; start < rows.length; start += POINTS_PER_STATEMENT) {
        const some = rows.slice(start, start + POINTS_PER_STATEMENT);
        await database.query(statements.upsert, [
          some.map(({ tenant }) => tenant),
          some.map(({ documentId }) => documentId),
          some.map(({ chunkId }) => chunkId),
          some.map(({ collection }) => collection),
          vectors.slice(start, start + POINTS_PER_STATEMENT),
        ]);
      }
    },
    async remove({ documentId, chunkIds }) {
      await database.query(statements.remove, [documentId, chunkIds ?? null]);
    },
    async search(vector, { limit, filter }) {
      const query = unit(vector);
      const isFew = (await count(filter, comparedMax + 1)) <= comparedMax;
      const rows =
        (isFew ? undefined : await walk(query, limit, filter)) ??
        (await database.query<FoundPoint>(statements.compare, [...filterOf(filter), query, limit]));
      return rows.map(hitOf);
    },
    count: (filter) => count(filter, null),
    clear: () => database.transaction((session) => clearVectorTables(session, table)),
    async close() {},
  };
}

type FoundPoint = Row & { chunk_id: string; document_id: string; score: number };

function compile({ name, schema, type }: VectorTable) {
  const inside =
    "tenant = $1 and ($2::text is null or collection = $2) and ($3::uuid[] is null or document_id = any($3))";
  const distance = `embedding operator(${schema}.<#>) $4::${schema}.${type}`;
  const found = "chunk_id, document_id, -distance as score";
  return {
    /** $1 tenants, $2 documents, $3 chunks, $4 collections, $5 vectors. What is the same already is not written again. */
    upsert: {
      name: "vectors.upsert",
      sql: `insert into ${name} as known (tenant, document_id, chunk_id, collection, embedding) select * from unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::${schema}.${type}[]) on conflict (tenant, document_id, chunk_id) do update set collection = excluded.collection, embedding = excluded.embedding where known.collection <> excluded.collection or known.embedding operator(${schema}.<>) excluded.embedding`,
    },
    /** $1 document, $2 chunk ids or null. */
    remove: {
      name: "vectors.remove",
      sql: `delete from ${name} where document_id = $1::uuid and ($2::text[] is null or chunk_id = any($2))`,
    },
    /** Each of these: $1 tenant, $2 collection or null, $3 documents or null. $4 how many are counted at most, or null. */
    count: {
      name: "vectors.count",
      sql: `select count(*) as total from (select 1 from ${name} where ${inside} limit $4::bigint) as inside`,
    },
    /** $4 vector, $5 limit. The order is the index's. */
    walk: {
      name: "vectors.walk",
      sql: `select chunk_id, document_id, -(${distance}) as score from ${name} where ${inside} order by ${distance} limit $5::bigint`,
    },
    /** $4 vector, $5 limit. All of them are looked at, so that no index can leave one out. */
    compare: {
      name: "vectors.compare",
      sql: `with inside as materialized (select chunk_id, document_id, ${distance} as distance from ${name} where ${inside}) select ${found} from inside order by distance, chunk_id limit $5::bigint`,
    },
  };
}

function filterOf({ tenant, collection, documentIds }: IndexFilter): unknown[] {
  return [tenant, collection ?? null, documentIds ?? null];
}

function hitOf(row: FoundPoint): Hit {
  return { chunkId: row.chunk_id, documentId: row.document_id, score: row.score };
}

function keyOf({ tenant, documentId, chunkId }: Point): string {
  return JSON.stringify([tenant, documentId, chunkId]);
}

function textOf(vector: Float32Array): string {
  return `[${Array.from(vector, (value) => value.toFixed(DIGITS_AFTER_POINT)).join(",")}]`;
}
