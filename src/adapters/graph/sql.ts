import type { Database, Row } from "../../database/database.ts";
import { normaliseName } from "../entities/normalise.ts";
import type { ChunkGraph, GraphEntity, GraphRelation, GraphStore } from "../graph.ts";
import type { IndexFilter } from "../vectors.ts";
import { findChunksNear, type GraphView } from "./near.ts";
import { compileGraphStatements, type GraphStatements } from "./statements.ts";
import { NAMES_MAX, newestByKey, partsOf } from "./stored.ts";
import { removeChunks, writeChunks } from "./write.ts";

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
      for (const part of partsOf<ChunkGraph>(newestByKey(chunks)))
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

    chunksNear: (entityIds, { limit, filter }) =>
      findChunksNear(viewOf({ database, statements, filter, params: paramsOf(filter) }), entityIds, limit),

    async relationsOf(entityId, filter) {
      const rows = await database.query(statements.relationsOf, [...paramsOf(filter), entityId]);
      return rows.map(relationOf);
    },

    async list({ limit, filter, type, name }) {
      const pattern = name === undefined ? null : `%${escaped(normaliseName(name))}%`;
      const params = [...paramsOf(filter), limit, type ?? null, pattern];
      return (await database.query(statements.list, params)).map((row) => entityOf(row));
    },

    async check() {
      await database.query(statements.entities, [dialect.keys([])]);
    },

    async close() {},
  };
}

interface Viewer {
  readonly database: Database;
  readonly statements: GraphStatements;
  readonly filter: IndexFilter;
  /** Tenant, collection or null, document ids or null. */
  readonly params: readonly unknown[];
}

function viewOf({ database, statements, filter, params }: Viewer): GraphView {
  const { dialect } = database;
  return {
    async entities(ids) {
      const rows = await database.query(statements.entities, [dialect.keys(ids)]);
      return rows
        .filter(
          (row) => row.tenant === filter.tenant && row.collection === (filter.collection ?? row.collection),
        )
        .map(countedOf);
    },
    async links(ids, limit) {
      return (await database.query(statements.links, [dialect.keys(ids), limit])).map(countedOf);
    },
    async mentions(ids, limit) {
      const rows = await database.query(statements.mentions, [...params, dialect.keys(ids), limit]);
      return rows.map((row) => ({
        entityId: String(row.entity_id),
        confidence: Number(row.confidence),
        chunkId: String(row.chunk_id),
        documentId: String(row.document_id),
      }));
    },
  };
}

function countedOf(row: Row) {
  return { id: String(row.id), mentions: Number(row.mention_count) };
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
