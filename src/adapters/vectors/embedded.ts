import type { Database, Row, Session, Transaction } from "../../database/database.ts";
import type { Hit, IndexFilter, Point, Removal, VectorStore } from "../vectors.ts";
import { Blocks, idsOf, type Place } from "./blocks.ts";
import { type Codec, codecFor, nearness } from "./codes.ts";
import { Nearest } from "./nearest.ts";
import { unitVector } from "./unit.ts";

/** Vectors are kept in 16 bits a dimension: cosines differ from the exact ones by about 0.00001. */
export const VECTOR_TABLES = [
  `create table points (
    id integer primary key,
    tenant text not null,
    chunk_id text not null,
    document_id text not null,
    collection text not null,
    block integer not null,
    slot integer not null,
    vector blob not null,
    unique (tenant, document_id, chunk_id)
  );`,
  "create index points_document on points (document_id, tenant, collection);",
  `create table vector_blocks (
    id integer primary key,
    tenant text not null,
    collection text not null,
    used integer not null,
    ids blob not null,
    codes blob not null
  );`,
  "create index vector_blocks_scope on vector_blocks (tenant, collection, used);",
];

const FULL_SCALE = 32_767;
/** How many of the first look are compared exactly; see docs/adr/0006 for what fewer would miss. */
const CANDIDATES_MIN = 300;
const CANDIDATES_PER_RESULT = 10;

export interface EmbeddedVectorSettings {
  readonly dimensions: number;
  readonly checkModel: (session: Session) => Promise<void>;
}

type StoredPoint = Row &
  Place & { id: number; tenant: string; document_id: string; chunk_id: string; collection: string };

const FIND = {
  name: "index.points_by_chunk",
  sql: "select p.id, p.tenant, p.document_id, p.chunk_id, p.collection, p.block, p.slot from json_each(?1) as wanted cross join points as p on p.tenant = wanted.value ->> 0 and p.document_id = wanted.value ->> 1 and p.chunk_id = wanted.value ->> 2",
};
const LAST_ID = { name: "index.last_point", sql: "select coalesce(max(id), 0) as id from points" };
const WRITE = {
  name: "index.write_point",
  sql: "insert or replace into points (id, tenant, chunk_id, document_id, collection, block, slot, vector) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
};
/** ?1 document, ?2 chunk ids or null. */
const REMOVE = {
  name: "index.remove_points",
  sql: "delete from points where document_id = ?1 and (?2 is null or chunk_id in (select value from json_each(?2))) returning block, slot",
};
/** Each of these: ?1 tenant, ?2 collection or null. */
const BLOCKS = {
  name: "index.blocks",
  sql: "select ids, codes from vector_blocks where tenant = ?1 and (?2 is null or collection = ?2)",
};
const COUNT = {
  name: "index.count_points",
  sql: "select coalesce(sum(used), 0) as total from vector_blocks where tenant = ?1 and (?2 is null or collection = ?2)",
};
const OF_DOCUMENTS = {
  name: "index.points_of_documents",
  sql: "select id from points where document_id in (select value from json_each(?3)) and tenant = ?1 and (?2 is null or collection = ?2)",
};
/** The filter stands here again: a point may have become another's since the blocks were read. */
const CANDIDATES = {
  name: "index.candidates",
  sql: "select p.chunk_id, p.document_id, p.vector from json_each(?3) as wanted cross join points as p on p.id = wanted.value where p.tenant = ?1 and (?2 is null or p.collection = ?2) and (?4 is null or p.document_id in (select value from json_each(?4)))",
};

/** Finds candidates by codes of two bits a dimension, then compares those in full. */
export function openEmbeddedVectors(database: Database, settings: EmbeddedVectorSettings): VectorStore {
  const codec = codecFor(settings.dimensions);

  async function search(vector: Float32Array, limit: number, filter: IndexFilter): Promise<Hit[]> {
    const query = unitVector(vector, settings.dimensions);
    const { tenant, collection = null, documentIds } = filter;
    const documents = documentIds ? JSON.stringify(documentIds) : null;
    const allowed = documents ? await idsOfDocuments(documents, filter) : undefined;
    const wanted = Math.max(CANDIDATES_MIN, CANDIDATES_PER_RESULT * limit);
    const candidates =
      allowed && allowed.size <= wanted ? [...allowed] : await firstLook(query, { wanted, filter, allowed });
    const rows = await database.query<{ chunk_id: string; document_id: string; vector: Uint8Array }>(
      CANDIDATES,
      [tenant, collection, JSON.stringify(candidates), documents],
    );
    const hits = rows.map((row) => ({
      chunkId: row.chunk_id,
      documentId: row.document_id,
      score: cosine(query, row.vector),
    }));
    return hits.sort((a, b) => b.score - a.score || (a.chunkId < b.chunkId ? -1 : 1)).slice(0, limit);
  }

  async function idsOfDocuments(documents: string, filter: IndexFilter): Promise<Set<number>> {
    const params = [filter.tenant, filter.collection ?? null, documents];
    return new Set((await database.query<{ id: number }>(OF_DOCUMENTS, params)).map((row) => row.id));
  }

  async function firstLook(
    query: Float32Array,
    options: { wanted: number; filter: IndexFilter; allowed: ReadonlySet<number> | undefined },
  ): Promise<number[]> {
    const { tenant, collection = null } = options.filter;
    const blocks = await database.query<{ ids: Uint8Array; codes: Uint8Array }>(BLOCKS, [tenant, collection]);
    const nearest = new Nearest(options.wanted);
    const table = codec.tableOf(query);
    for (const { ids, codes } of blocks)
      scan({ table, codec, nearest, allowed: options.allowed }, idsOf(ids), codes);
    return nearest.ids();
  }

  return {
    async upsert(points) {
      const checked = points.map((point) => ({
        ...point,
        vector: unitVector(point.vector, settings.dimensions),
      }));
      if (checked.length === 0) return;
      await database.transaction(async (transaction) => {
        await settings.checkModel(transaction);
        await writePoints(transaction, codec, checked);
      });
    },
    async remove(removal) {
      await database.transaction((transaction) => removePoints(transaction, codec, removal));
    },
    async search(vector, { limit, filter }) {
      await settings.checkModel(database);
      return search(vector, limit, filter);
    },
    async count(filter) {
      const { tenant, collection = null, documentIds } = filter;
      if (documentIds) return (await idsOfDocuments(JSON.stringify(documentIds), filter)).size;
      const [row] = await database.query<{ total: number }>(COUNT, [tenant, collection]);
      return row!.total;
    },
    clear: () => database.transaction(clearVectors),
    async close() {},
  };
}

export async function clearVectors(session: Session): Promise<void> {
  for (const table of ["vector_blocks", "points"]) await session.query(`delete from ${table}`);
}

interface Scan {
  readonly table: Float32Array;
  readonly codec: Codec;
  readonly nearest: Nearest;
  readonly allowed: ReadonlySet<number> | undefined;
}

function scan({ table, codec, nearest, allowed }: Scan, ids: Uint32Array, codes: Uint8Array): void {
  for (let slot = 0; slot < ids.length; slot++) {
    const score = nearness(table, codes, slot * codec.bytes, nearest.floor);
    if (score <= nearest.floor) continue;
    const id = ids[slot]!;
    if (id !== 0 && (!allowed || allowed.has(id))) nearest.add(id, score);
  }
}

/** Of one chunk given twice the last counts. */
async function writePoints(transaction: Transaction, codec: Codec, points: readonly Point[]): Promise<void> {
  const keyOf = (...parts: readonly string[]) => JSON.stringify(parts);
  const newest = new Map(
    points.map((point) => [keyOf(point.tenant, point.documentId, point.chunkId), point]),
  );
  const found = await transaction.query<StoredPoint>(FIND, [`[${[...newest.keys()].join(",")}]`]);
  const stored = new Map(found.map((row) => [keyOf(row.tenant, row.document_id, row.chunk_id), row]));
  let [{ id: lastId } = { id: 0 }] = await transaction.query<{ id: number }>(LAST_ID);
  const blocks = new Blocks(transaction, codec);
  for (const [key, point] of newest) {
    const before = stored.get(key);
    const id = before?.id ?? ++lastId;
    const place = await placeOf(blocks, point, id, before);
    await transaction.query(WRITE, [
      id,
      point.tenant,
      point.chunkId,
      point.documentId,
      point.collection,
      place.block,
      place.slot,
      fixedPoint(point.vector),
    ]);
  }
  await blocks.write();
}

async function placeOf(
  blocks: Blocks,
  point: Point,
  id: number,
  before: StoredPoint | undefined,
): Promise<Place> {
  if (before?.collection === point.collection) {
    await blocks.replace(before, point.vector);
    return before;
  }
  if (before) await blocks.free(before);
  return blocks.add(point, id, point.vector);
}

async function removePoints(transaction: Transaction, codec: Codec, removal: Removal): Promise<void> {
  const chunkIds = removal.chunkIds ? JSON.stringify(removal.chunkIds) : null;
  const blocks = new Blocks(transaction, codec);
  for (const place of await transaction.query<Row & Place>(REMOVE, [removal.documentId, chunkIds]))
    await blocks.free(place);
  await blocks.write();
}

function fixedPoint(vector: Float32Array): Uint8Array {
  return new Uint8Array(Int16Array.from(vector, (value) => Math.round(value * FULL_SCALE)).buffer);
}

function cosine(query: Float32Array, stored: Uint8Array): number {
  const vector = new Int16Array(stored.buffer, stored.byteOffset, query.length);
  let sum = 0;
  for (let dimension = 0; dimension < vector.length; dimension++)
    sum += query[dimension]! * vector[dimension]!;
  return sum / FULL_SCALE;
}
