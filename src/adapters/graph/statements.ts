import type { Statement } from "../../database/database.ts";
import type { Dialect } from "../../database/dialect.ts";
import { RELATIONS_MAX } from "./stored.ts";

export type GraphStatements = ReturnType<typeof compileGraphStatements>;

/** Parameters that start with a filter take: $1 tenant, $2 collection or null, $3 document ids or null. */
export function compileGraphStatements(dialect: Dialect) {
  const named = (name: string, sql: string): Statement => ({ name: `graph.${name}`, sql });
  return {
    lockChunks: named("lock_chunks", lockChunksSql(dialect)),
    chunksOfDocument: named("chunks_of_document", chunksOfDocumentSql(dialect)),
    lockForRemoval: named("lock_for_removal", lockForRemovalSql(dialect)),
    deleteChunks: named("delete_chunks", deleteByChunkSql(dialect, "graph_chunks")),
    entitiesOfChunks: named("entities_of_chunks", entitiesOfChunksSql(dialect)),
    relationsOfChunks: named("relations_of_chunks", relationsOfChunksSql(dialect)),
    deleteEntityMentions: named("delete_entity_mentions", deleteByChunkSql(dialect, "entity_mentions")),
    deleteRelationMentions: named("delete_relation_mentions", deleteByChunkSql(dialect, "relation_mentions")),
    writeEntities: named("write_entities", writeEntitiesSql(dialect)),
    writeRelations: named("write_relations", writeRelationsSql(dialect)),
    writeEntityMentions: named("write_entity_mentions", writeMentionsSql(dialect, "entity")),
    writeRelationMentions: named("write_relation_mentions", writeMentionsSql(dialect, "relation")),
    deleteOrphanEntities: named("delete_orphan_entities", deleteOrphansSql(dialect, "entities")),
    deleteOrphanRelations: named("delete_orphan_relations", deleteOrphansSql(dialect, "relations")),
    find: named("find", findSql(dialect)),
    entities: named("entities", entitiesSql(dialect)),
    links: named("links", linksSql(dialect)),
    mentions: named("mentions", mentionsSql(dialect)),
    relationsOf: named("relations_of", relationsOfSql(dialect)),
    list: named("list", listSql(dialect)),
  };
}

/** $1 chunks, sorted. Holds them until the commit, whether they are new or known. */
function lockChunksSql(dialect: Dialect): string {
  const columns = ["chunk_key", "chunk_id", "document_id", "tenant", "collection"];
  const updates = columns.slice(1).map((name) => `${name} = excluded.${name}`);
  return `insert into graph_chunks (${columns.join(", ")}) ${rowsOf(dialect, "graph_chunks", columns)} on conflict (chunk_key) do update set ${updates.join(", ")}`;
}

/** $1 document, $2 chunk keys or null. */
function chunksOfDocumentSql(dialect: Dialect): string {
  return `select chunk_key from graph_chunks where document_id = ${uuid(dialect, 1)} and (${uuids(dialect, 2)} is null or ${dialect.isOneOf("chunk_key", 2, "uuid")}) order by chunk_key`;
}

/** $1 chunk keys. One that came to be another document's in the meantime does not come back: $2 document. */
function lockForRemovalSql(dialect: Dialect): string {
  return `select chunk_key from graph_chunks where ${dialect.isOneOf("chunk_key", 1, "uuid")} and document_id = ${uuid(dialect, 2)} order by chunk_key${dialect.lockParents}`;
}

/** $1 chunk keys. */
function deleteByChunkSql(dialect: Dialect, table: string): string {
  return `delete from ${table} where ${dialect.isOneOf("chunk_key", 1, "uuid")}`;
}

/** $1 chunk keys. */
function entitiesOfChunksSql(dialect: Dialect): string {
  return `select e.id, e.tenant, e.collection, e.name, e.normalised_name, e.type, count(distinct m.chunk_key) as chunks from entity_mentions as m join entities as e on e.id = m.entity_id where ${dialect.isOneOf("m.chunk_key", 1, "uuid")} group by e.id, e.tenant, e.collection, e.name, e.normalised_name, e.type`;
}

/** $1 chunk keys. */
function relationsOfChunksSql(dialect: Dialect): string {
  return `select r.id, r.tenant, r.collection, r.source_id, r.target_id, r.type, count(distinct m.chunk_key) as chunks from relation_mentions as m join relations as r on r.id = m.relation_id where ${dialect.isOneOf("m.chunk_key", 1, "uuid")} group by r.id, r.tenant, r.collection, r.source_id, r.target_id, r.type`;
}

/** $1 entities, sorted; their mention_count is by how much it changes. */
function writeEntitiesSql(dialect: Dialect): string {
  const columns = ["id", "tenant", "collection", "name", "normalised_name", "type", "mention_count"];
  return `insert into entities (${columns.join(", ")}) ${rowsOf(dialect, "entities", columns)} on conflict (tenant, normalised_name, type, collection) do update set mention_count = entities.mention_count + excluded.mention_count returning id, tenant, collection, normalised_name, type`;
}

/** $1 relations, sorted; their mention_count is by how much it changes. */
function writeRelationsSql(dialect: Dialect): string {
  const columns = ["id", "tenant", "collection", "source_id", "target_id", "type", "mention_count"];
  return `insert into relations (${columns.join(", ")}) ${rowsOf(dialect, "relations", columns)} on conflict (source_id, target_id, type) do update set mention_count = relations.mention_count + excluded.mention_count returning id, source_id, target_id, type`;
}

/** $1 mentions. */
function writeMentionsSql(dialect: Dialect, of: "entity" | "relation"): string {
  const columns = [`${of}_id`, "chunk_key", "start_offset", "end_offset", "confidence"];
  return `insert into ${of}_mentions (${columns.join(", ")}) ${rowsOf(dialect, `${of}_mentions`, columns)}`;
}

/** $1 ids that lost a mention; this transaction holds them. */
function deleteOrphansSql(dialect: Dialect, table: string): string {
  return `delete from ${table} where ${dialect.isOneOf("id", 1, "uuid")} and mention_count <= 0`;
}

/** Filter, $4 normalised names. In no order: one would lead SQLite to the index that has it. */
function findSql(dialect: Dialect): string {
  return `select e.id, e.name, e.type, e.mention_count as mentions from entities as e where ${isSeen(dialect)} and ${dialect.isOneOf("e.normalised_name", 4, "text")}`;
}

/** $1 ids. */
function entitiesSql(dialect: Dialect): string {
  return `select id, tenant, collection, mention_count from entities where ${dialect.isOneOf("id", 1, "uuid")}`;
}

/** $1 ids, $2 limit: what each is related to. */
function linksSql(dialect: Dialect): string {
  const linked = (from: string, to: string) =>
    `select ${to} as id, mention_count from relations where ${dialect.isOneOf(from, 1, "uuid")}`;
  return `${linked("source_id", "target_id")} union all ${linked("target_id", "source_id")} limit ${dialect.param(2, "integer")}`;
}

/** Filter, $4 entity ids, $5 limit. */
function mentionsSql(dialect: Dialect): string {
  return `select m.entity_id, m.confidence, c.chunk_id, c.document_id from entity_mentions as m join graph_chunks as c on c.chunk_key = m.chunk_key where ${dialect.isOneOf("m.entity_id", 4, "uuid")} and c.tenant = ${dialect.param(1, "text")} and ${isInCollection(dialect, "c")} and ${isOfDocuments(dialect)} limit ${dialect.param(5, "integer")}`;
}

/** Filter, $4 entity. Each chunk that says the same makes it surer: what is left is the doubt of all of them. */
function relationsOfSql(dialect: Dialect): string {
  const end = (alias: string) =>
    ["id", "name", "type", "mention_count"].map((name) => `${alias}.${name} as ${alias}_${name}`).join(", ");
  const touches = (column: string) =>
    `select r.id from relations as r where r.${column} = ${uuid(dialect, 4)} and r.tenant = ${dialect.param(1, "text")} and ${isInCollection(dialect, "r")}`;
  const evidence = `select m.relation_id, m.chunk_key, max(m.confidence) as confidence from relation_mentions as m join graph_chunks as c on c.chunk_key = m.chunk_key where m.relation_id in (${touches("source_id")} union ${touches("target_id")}) and ${isOfDocuments(dialect)} group by m.relation_id, m.chunk_key`;
  const doubt = "exp(sum(ln(1.000001 - confidence)))";
  return (
    `with evidence as (${evidence}), merged as (select relation_id, count(*) as mentions, 1 - ${doubt} as confidence from evidence group by relation_id) ` +
    `select ${end("source")}, ${end("target")}, r.type, merged.confidence, merged.mentions from merged join relations as r on r.id = merged.relation_id ` +
    `join entities as source on source.id = r.source_id join entities as target on target.id = r.target_id ` +
    `order by merged.mentions desc, merged.confidence desc, r.id limit ${RELATIONS_MAX}`
  );
}

/** Filter, $4 limit, $5 type or null, $6 pattern of the normalised name or null. */
function listSql(dialect: Dialect): string {
  const isOptional = (index: number, test: string) =>
    `(${dialect.param(index, "text")} is null or ${test} ${dialect.param(index, "text")}${test.endsWith("like") ? " escape '\\'" : ""})`;
  return `select e.id, e.name, e.type, e.mention_count as mentions from entities as e where ${isSeen(dialect)} and ${isOptional(5, "e.type =")} and ${isOptional(6, "e.normalised_name like")} order by e.mention_count desc, e.normalised_name, e.id limit ${dialect.param(4, "integer")}`;
}

function isInside(dialect: Dialect): string {
  return `e.tenant = ${dialect.param(1, "text")} and ${isInCollection(dialect, "e")}`;
}

function isInCollection(dialect: Dialect, alias: string): string {
  const collection = dialect.param(2, "text");
  return `(${collection} is null or ${alias}.collection = ${collection})`;
}

function isSeen(dialect: Dialect): string {
  const mentioned = `exists (select 1 from entity_mentions as m join graph_chunks as c on c.chunk_key = m.chunk_key where m.entity_id = e.id and ${dialect.isOneOf("c.document_id", 3, "uuid")})`;
  return `${isInside(dialect)} and (${uuids(dialect, 3)} is null or ${mentioned})`;
}

function isOfDocuments(dialect: Dialect): string {
  return `(${uuids(dialect, 3)} is null or ${dialect.isOneOf("c.document_id", 3, "uuid")})`;
}

/** Rows of a JSON parameter in their order: whoever writes them locks them in that order. */
function rowsOf(dialect: Dialect, table: string, columns: readonly string[]): string {
  const source = dialect.recordset(table, 1);
  const values = columns.map((name) => source.column(name, "plain"));
  return `select ${values.join(", ")} from ${source.from} where true`;
}

function uuid(dialect: Dialect, index: number): string {
  return dialect.name === "postgres" ? `$${index}::uuid` : `?${index}`;
}

function uuids(dialect: Dialect, index: number): string {
  return dialect.name === "postgres" ? `$${index}::uuid[]` : `?${index}`;
}
