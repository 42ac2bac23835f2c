import type { RecordShape } from "neo4j-driver";
import { normaliseName } from "../entities/normalise.ts";
import type { ChunkGraph, GraphEntity, GraphRelation, GraphStore } from "../graph.ts";
import type { IndexFilter } from "../vectors.ts";
import * as cypher from "./cypher.ts";
import { findChunksNear, type GraphView } from "./near.ts";
import { Neo4jLink, type Neo4jSettings } from "./neo4j-link.ts";
import { removeChunks, writeChunks } from "./neo4j-write.ts";
import { NAMES_MAX, newestByKey, partsOf, RELATIONS_MAX } from "./stored.ts";

/** The graph in Neo4j. It is opened whether the server is there or not: whoever needs it is told. */
export function openNeo4jGraph(settings: Neo4jSettings): GraphStore {
  const link = new Neo4jLink(settings);
  return {
    async put(chunks) {
      for (const part of partsOf<ChunkGraph>(newestByKey(chunks)))
        await link.write((run) => writeChunks(run, part));
    },

    async remove({ documentId, chunkKeys }) {
      // Of a cluster, only where writes go is all that was written known to be.
      const found = await link.write((run) => run(cypher.CHUNKS_OF_DOCUMENT, { documentId }));
      const wanted = chunkKeys && new Set(chunkKeys);
      const keys = found.map(({ key }) => String(key)).filter((key) => wanted?.has(key) ?? true);
      for (const part of partsOf(keys))
        await link.write((run) => removeChunks(run, { documentId, chunkKeys: part }));
    },

    async find(names, filter) {
      const normalised = [...new Set(names.slice(0, NAMES_MAX).map(normaliseName))];
      const asked = { ...valuesOf(filter), names: normalised };
      const found = (await link.read(cypher.findEntities(narrowed(filter)), asked)).map(entityOf);
      return found.sort((a, b) => b.mentions - a.mentions || (a.id < b.id ? -1 : 1));
    },

    chunksNear: (entityIds, { limit, filter }) => findChunksNear(viewOf(link, filter), entityIds, limit),

    async relationsOf(id, filter) {
      const asked = { ...valuesOf(filter), id, limit: BigInt(RELATIONS_MAX) };
      return (await link.read(cypher.relationsOf(narrowed(filter)), asked)).map(relationOf);
    },

    async list({ limit, filter, type, name }) {
      const by = { type: type !== undefined, name: name !== undefined };
      const part = name === undefined ? {} : { name: normaliseName(name) };
      const asked = { ...valuesOf(filter), limit: BigInt(limit), ...(by.type && { type }), ...part };
      return (await link.read(cypher.listEntities(narrowed(filter), by), asked)).map(entityOf);
    },

    async check() {
      await link.read("RETURN 1 AS one", {});
    },

    close: () => link.close(),
  };
}

function narrowed(filter: IndexFilter): cypher.Narrowed {
  return { byCollection: filter.collection !== undefined, byDocuments: filter.documentIds !== undefined };
}

function valuesOf({ tenant, collection, documentIds }: IndexFilter): Record<string, unknown> {
  return { tenant, ...(collection !== undefined && { collection }), ...(documentIds && { documentIds }) };
}

function viewOf(link: Neo4jLink, filter: IndexFilter): GraphView {
  const values = valuesOf(filter);
  const by = narrowed(filter);
  return {
    entities: async (ids) => (await link.read(cypher.countsOf(by), { ...values, ids })).map(countedOf),
    links: async (ids, limit) => {
      const asked = { ...values, ids, limit: BigInt(limit) };
      return (await link.read(cypher.linksOf(by), asked)).map(countedOf);
    },
    mentions: async (ids, limit) => {
      const asked = { ...values, ids, limit: BigInt(limit) };
      const rows = await link.read(cypher.mentionsOf(by), asked);
      return rows.map(({ entityId, confidence, chunkId, documentId }) => {
        return { entityId, confidence, chunkId, documentId };
      });
    },
  };
}

function countedOf({ id, mentions }: RecordShape) {
  return { id: String(id), mentions: Number(mentions) };
}

function entityOf({ id, name, type, mentions }: RecordShape): GraphEntity {
  return { id: String(id), name: String(name), type: String(type), mentions: Number(mentions) };
}

function relationOf(row: RecordShape): GraphRelation {
  const end = (alias: string) =>
    entityOf({
      id: row[`${alias}_id`],
      name: row[`${alias}_name`],
      type: row[`${alias}_type`],
      mentions: row[`${alias}_mentions`],
    });
  return {
    source: end("source"),
    target: end("target"),
    type: String(row.type),
    confidence: Number(row.confidence),
    mentions: Number(row.mentions),
  };
}
