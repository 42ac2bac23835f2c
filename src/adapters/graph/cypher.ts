/**
 * The graph in Neo4j:
 *
 *   (:QuarryChunk)-[:MENTIONS]->(:QuarryEntity)-[:RELATED]->(:QuarryEntity)
 *
 * A chunk mentions an entity once, with the places where it does. What a chunk says of two entities is a RELATED of its
 * own that names the chunk, so that it goes with it. How many chunks mention an entity stands at the entity: counting
 * would walk to all of them.
 */

/** Made before anything else is asked; having them made again does nothing. */
export const SCHEMA = [
  "CREATE CONSTRAINT quarry_chunk_key IF NOT EXISTS FOR (c:QuarryChunk) REQUIRE c.key IS UNIQUE",
  "CREATE CONSTRAINT quarry_entity_id IF NOT EXISTS FOR (e:QuarryEntity) REQUIRE e.id IS UNIQUE",
  "CREATE INDEX quarry_chunk_document IF NOT EXISTS FOR (c:QuarryChunk) ON (c.documentId)",
  "CREATE INDEX quarry_entity_name IF NOT EXISTS FOR (e:QuarryEntity) ON (e.tenant, e.normalisedName)",
  "CREATE INDEX quarry_related_chunk IF NOT EXISTS FOR ()-[r:RELATED]-() ON (r.chunkKey)",
] as const;

/** $chunks, sorted. Holds them until the commit, whether they are new or known. */
export const WRITE_CHUNKS = `
UNWIND $chunks AS row
MERGE (c:QuarryChunk {key: row.key})
SET c.chunkId = row.chunkId, c.documentId = row.documentId, c.tenant = row.tenant, c.collection = row.collection`;

/** $documentId. */
export const CHUNKS_OF_DOCUMENT = `
MATCH (c:QuarryChunk {documentId: $documentId})
RETURN c.key AS key
ORDER BY key`;

/** $keys, sorted. To write a value that stands there already is to hold the node. */
export const HOLD_CHUNKS = `
UNWIND $keys AS key
MATCH (c:QuarryChunk {key: key})
SET c.documentId = c.documentId`;

/** $keys that are held. One that came to be another document's in the meantime does not come back: $documentId. */
export const HELD_CHUNKS = `
MATCH (c:QuarryChunk)
WHERE c.key IN $keys AND c.documentId = $documentId
RETURN c.key AS key`;

/** $keys. */
export const MENTIONED = `
MATCH (c:QuarryChunk)-[:MENTIONS]->(e:QuarryEntity)
WHERE c.key IN $keys
RETURN e.id AS id, count(c) AS chunks`;

/**
 * $entities, sorted by id, each once; `change` is by how many chunks more it is mentioned. A count is read and written in
 * one clause: the node is held first then, and two writers at once both count.
 */
export const WRITE_ENTITIES = `
UNWIND $entities AS row
MERGE (e:QuarryEntity {id: row.id})
ON CREATE SET e.tenant = row.tenant, e.collection = row.collection, e.name = row.name, e.normalisedName = row.normalisedName, e.type = row.type, e.mentions = 0
SET e.mentions = e.mentions + row.change`;

/** $keys. */
export const FORGET_MENTIONS = `
MATCH (c:QuarryChunk)-[m:MENTIONS]->(:QuarryEntity)
WHERE c.key IN $keys
DELETE m`;

/** $keys. */
export const FORGET_RELATIONS = `
MATCH (:QuarryEntity)-[r:RELATED]->(:QuarryEntity)
WHERE r.chunkKey IN $keys
DELETE r`;

/** $mentions. */
export const WRITE_MENTIONS = `
UNWIND $mentions AS row
MATCH (c:QuarryChunk {key: row.chunkKey})
MATCH (e:QuarryEntity {id: row.entityId})
MERGE (c)-[m:MENTIONS]->(e)
SET m.confidence = row.confidence, m.starts = row.starts, m.ends = row.ends`;

/** $relations. */
export const WRITE_RELATIONS = `
UNWIND $relations AS row
MATCH (s:QuarryEntity {id: row.sourceId})
MATCH (t:QuarryEntity {id: row.targetId})
MERGE (s)-[r:RELATED {type: row.type, chunkKey: row.chunkKey}]->(t)
SET r.documentId = row.documentId, r.tenant = row.tenant, r.collection = row.collection, r.confidence = row.confidence, r.starts = row.starts, r.ends = row.ends`;

/** $ids of entities that lost a mention; this transaction holds them. */
export const DROP_UNMENTIONED = `
UNWIND $ids AS id
MATCH (e:QuarryEntity {id: id})
WHERE e.mentions <= 0
DETACH DELETE e`;

/** $keys that are held. */
export const DROP_CHUNKS = `
MATCH (c:QuarryChunk)
WHERE c.key IN $keys
DETACH DELETE c`;

/** What of a filter is given; its values are $tenant, $collection and $documentIds. */
export interface Narrowed {
  readonly byCollection: boolean;
  readonly byDocuments: boolean;
}

const ENTITY = "e.id AS id, e.name AS name, e.type AS type, e.mentions AS mentions";

/** $names, normalised. */
export function findEntities(narrowed: Narrowed): string {
  return `
${entitiesOf(narrowed)} AND e.normalisedName IN $names
RETURN DISTINCT ${ENTITY}`;
}

/** $limit, $type, $name: a part of the normalised name. */
export function listEntities(narrowed: Narrowed, by: { type: boolean; name: boolean }): string {
  const type = by.type ? " AND e.type = $type" : "";
  const name = by.name ? " AND e.normalisedName CONTAINS $name" : "";
  return `
${entitiesOf(narrowed)}${type}${name}
RETURN DISTINCT ${ENTITY}, e.normalisedName AS normalisedName
ORDER BY mentions DESC, normalisedName, id
LIMIT $limit`;
}

/** $ids. */
export function countsOf(narrowed: Narrowed): string {
  return `
MATCH (e:QuarryEntity)
WHERE e.id IN $ids AND ${isInside("e", narrowed)}
RETURN e.id AS id, e.mentions AS mentions`;
}

/** $ids, $limit: what each is related to, and how many chunks say so. */
export function linksOf(narrowed: Narrowed): string {
  return `
MATCH (e:QuarryEntity)-[r:RELATED]-(other:QuarryEntity)
WHERE e.id IN $ids AND ${isInside("e", narrowed)} AND ${isInside("other", narrowed)}
WITH e, other, count(r) AS mentions
RETURN other.id AS id, mentions
LIMIT $limit`;
}

/** $ids, $limit. */
export function mentionsOf(narrowed: Narrowed): string {
  return `
MATCH (e:QuarryEntity)<-[m:MENTIONS]-(c:QuarryChunk)
WHERE e.id IN $ids AND ${isInside("c", narrowed)}${isOfDocuments("c", narrowed)}
RETURN e.id AS entityId, m.confidence AS confidence, c.chunkId AS chunkId, c.documentId AS documentId
LIMIT $limit`;
}

/** $id, $limit. Each chunk that says the same makes it surer: what is left is the doubt of all of them. */
export function relationsOf(narrowed: Narrowed): string {
  const end = (alias: string) =>
    ["id", "name", "type", "mentions"].map((name) => `${alias}.${name} AS ${alias}_${name}`).join(", ");
  return `
MATCH (e:QuarryEntity {id: $id})-[r:RELATED]-(:QuarryEntity)
WHERE ${isInside("r", narrowed)}${isOfDocuments("r", narrowed)}
WITH startNode(r) AS source, endNode(r) AS target, r.type AS type, count(r) AS mentions, exp(sum(log(1.000001 - r.confidence))) AS doubt
RETURN ${end("source")}, ${end("target")}, type, 1.0 - doubt AS confidence, mentions
ORDER BY mentions DESC, confidence DESC, source_id, target_id, type
LIMIT $limit`;
}

/** Only what one of the documents mentions, where documents are given. */
function entitiesOf(narrowed: Narrowed): string {
  const mentioned = narrowed.byDocuments ? "<-[:MENTIONS]-(c:QuarryChunk)" : "";
  return `MATCH (e:QuarryEntity)${mentioned}
WHERE ${isInside("e", narrowed)}${isOfDocuments("c", narrowed)}`;
}

function isInside(alias: string, { byCollection }: Narrowed): string {
  return `${alias}.tenant = $tenant${byCollection ? ` AND ${alias}.collection = $collection` : ""}`;
}

function isOfDocuments(alias: string, { byDocuments }: Narrowed): string {
  return byDocuments ? ` AND ${alias}.documentId IN $documentIds` : "";
}
