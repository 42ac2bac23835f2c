import type { Database, Row } from "../../database/database.ts";
import { normaliseName } from "../entities/normalise.ts";
import type { ChunkGraph, GraphEntity, GraphRelation, GraphStore } from "../graph.ts";
import type { IndexFilter } from "../vectors.ts";
import { findChunksNear } from "./near.ts";
import { compileGraphStatements } from "./statements.ts";
import { removeChunks, writeChunks } from "./write.ts";

const CHUNKS_PER_TRANSACTION_MAX = 200;
const NAMES_MAX = 1_000;

/** The graph as tables of the main database (migration 0002). Closing it leaves the database open. */
export function openSqlGraph(database: Database): GraphStore {
  const { dialect } = database;
  const statements = compileGraphStatements(dialect);
  const paramsOf = (filter: IndexFilter) => [
    filter.tenant,
    filter.collection ?? null,
    filter.documentIds ? dialect.keys(filter.documentIds) : null,
  ];

  return {
    async put(chunks) {
      const newest = new Map(chunks.map((chunk) => [chunk.chunkKey, chunk]));
      const sorted = [...newest.keys()].sort().map((key) => newest.get(key)!);
      for (const part of partsOf<ChunkGraph>(sorted))
        await database.transaction((transaction) => writeChunks({ transaction, statements, database }, part));
    },

    async remove({ documentId, chunkKeys }) {
      const keys = chunkKeys ? dialect.keys(chunkKeys) : null;
      const found = await database.query(statements.chunksOfDocument, [documentId, keys]);
      for (const part of partsOf(found.map((row) => String(row.chunk_key))))
        await database.transaction((transaction) =>
          removeChunks({ transaction, statements, database }, { documentId, chunkKeys: part }),
        );
    },

    async find(names, filter) {
      const normalised = new Set(names.slice(0, NAMES_MAX).map(normaliseName));
      const params = [...paramsOf(filter), dialect.keys([...normalised])];
      const found = (await database.query(statements.find, params)).map((row) => entityOf(row));
      return found.sort((a, b) => b.mentions - a.mentions || (a.id < b.id ? -1 : 1));
    },

    async chunksNear(entityIds, options) {
      const filterParams = paramsOf(options.filter);
      return findChunksNear({ database, statements, filterParams }, entityIds, options);
    },

    async relationsOf(entityId, filter) {
      const rows = await database.query(statements.relationsOf, [...paramsOf(filter), entityId]);
      return rows.map(relationOf);
    },

    async list({ limit, filter, type, name }) {
      const pattern = name === undefined ? null : `%${escaped(normaliseName(name))}%`;
      const params = [...paramsOf(filter), limit, type ?? null, pattern];
      return (await database.query(statements.list, params)).map((row) => entityOf(row));
    },

    async close() {},
  };
}

function* partsOf<T>(all: readonly T[]): Generator<readonly T[]> {
  for (let start = 0; start < all.length; start += CHUNKS_PER_TRANSACTION_MAX)
    yield all.slice(start, start + CHUNKS_PER_TRANSACTION_MAX);
}

function entityOf(row: Row): GraphEntity {
  return {
    id: String(row.id),
    name: String(row.name),
    type: String(row.type),
    mentions: Number(row.mentions),
  };
}

function relationOf(row: Row): GraphRelation {
  const end = (alias: string) =>
    entityOf({
      id: row[`${alias}_id`],
      name: row[`${alias}_name`],
      type: row[`${alias}_type`],
      mentions: row[`${alias}_mention_count`],
    });
  return {
    source: end("source"),
    target: end("target"),
    type: String(row.type),
    confidence: Number(row.confidence),
    mentions: Number(row.mentions),
  };
}

function escaped(text: string): string {
  return text.replace(/[\\%_]/g, "\\$&");
}
