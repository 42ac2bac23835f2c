import type { Database, Row, Transaction } from "../../database/database.ts";
import { uuidv7 } from "../../ids.ts";
import { normaliseName } from "../entities/normalise.ts";
import type { Extraction } from "../entities.ts";
import type { ChunkGraph } from "../graph.ts";
import type { GraphStatements } from "./statements.ts";
import { storedConfidence, storedName, storedType } from "./stored.ts";

/** A row whose mention_count says by how much it changes. */
interface Change {
  readonly row: Row;
  /** Known when a chunk mentioned it before. */
  id: string | undefined;
  chunks: number;
}

interface Writer {
  readonly transaction: Transaction;
  readonly statements: GraphStatements;
  readonly database: Database;
}

/**
 * Replaces what chunks said before. Every writer locks chunks, then entities, then relations, each in the order of
 * their keys, and changes each row once: two that write the same entities wait for each other and never in a ring.
 */
export async function writeChunks(writer: Writer, chunks: readonly ChunkGraph[]): Promise<void> {
  const { transaction, statements } = writer;
  const rows = chunks.map((chunk) => ({
    chunk_key: chunk.chunkKey,
    chunk_id: chunk.chunkId,
    document_id: chunk.documentId,
    tenant: chunk.tenant,
    collection: chunk.collection,
  }));
  await transaction.query(statements.lockChunks, [JSON.stringify(rows)]);
  await replaceMentions(
    writer,
    chunks.map((chunk) => chunk.chunkKey),
    chunks,
  );
}

export async function removeChunks(
  writer: Writer,
  removal: { documentId: string; chunkKeys: readonly string[] },
): Promise<void> {
  const { transaction, statements, database } = writer;
  const locked = await transaction.query(statements.lockForRemoval, [
    database.dialect.keys(removal.chunkKeys),
    removal.documentId,
  ]);
  const keys = locked.map((row) => String(row.chunk_key));
  await replaceMentions(writer, keys, []);
  await transaction.query(statements.deleteChunks, [database.dialect.keys(keys)]);
}

async function replaceMentions(
  writer: Writer,
  chunkKeys: readonly string[],
  chunks: readonly ChunkGraph[],
): Promise<void> {
  const { transaction, statements, database } = writer;
  const keys = [database.dialect.keys(chunkKeys)];
  const entities = changesFrom(await transaction.query(statements.entitiesOfChunks, keys), entityKey);
  const relations = changesFrom(await transaction.query(statements.relationsOfChunks, keys), relationKey);
  await transaction.query(statements.deleteEntityMentions, keys);
  await transaction.query(statements.deleteRelationMentions, keys);

  const found = chunks.map((chunk) => ({ chunk, keys: addEntities(entities, chunk) }));
  await writeChanges(writer, statements.writeEntities, entities, entityKey);
  await transaction.query(statements.writeEntityMentions, [JSON.stringify(entityMentions(found, entities))]);

  const said = found.flatMap((entry) => addRelations(relations, entry, entities));
  await writeChanges(writer, statements.writeRelations, relations, relationKey);
  const mentions = strongest(
    said.map(({ key, ...mention }) => ({ ...mention, relation_id: relations.get(key)!.id })),
  );
  await transaction.query(statements.writeRelationMentions, [JSON.stringify(mentions)]);

  await transaction.query(statements.deleteOrphanRelations, [lostMentions(database, relations)]);
  await transaction.query(statements.deleteOrphanEntities, [lostMentions(database, entities)]);
}

function entityKey(row: Row): string {
  return JSON.stringify([row.tenant, row.collection, row.normalised_name, row.type]);
}

function relationKey(row: Row): string {
  return JSON.stringify([row.source_id, row.target_id, row.type]);
}

function changesFrom(rows: readonly Row[], keyOf: (row: Row) => string): Map<string, Change> {
  return new Map(
    rows.map(({ id, chunks, ...row }) => [keyOf(row), { row, id: String(id), chunks: -Number(chunks) }]),
  );
}

function count(changes: Map<string, Change>, key: string, row: Row): void {
  const change = changes.get(key);
  if (change) change.chunks += 1;
  else changes.set(key, { row, id: undefined, chunks: 1 });
}

/** Returns the key of each of the chunk's entities, by position; undefined where nothing is left of a name. */
function addEntities(changes: Map<string, Change>, chunk: ChunkGraph): (string | undefined)[] {
  const rows = chunk.extraction.entities.map((entity) => {
    const name = storedName(entity.name);
    const normalised = normaliseName(name);
    if (normalised === "") return undefined;
    return {
      tenant: chunk.tenant,
      collection: chunk.collection,
      name,
      normalised_name: normalised,
      type: storedType(entity.type),
    };
  });
  const keys = rows.map((row) => row && entityKey(row));
  const seen = new Set<string | undefined>([undefined]);
  for (const [index, key] of keys.entries()) {
    if (seen.has(key)) continue;
    seen.add(key);
    count(changes, key!, rows[index]!);
  }
  return keys;
}

interface Found {
  readonly chunk: ChunkGraph;
  readonly keys: readonly (string | undefined)[];
}

function entityMentions(found: readonly Found[], entities: ReadonlyMap<string, Change>): Row[] {
  const mentions = found.flatMap(({ chunk, keys }) =>
    chunk.extraction.entities.flatMap((entity, index) => {
      const key = keys[index];
      return key === undefined ? [] : { ...placeOf(entity, chunk), entity_id: entities.get(key)!.id };
    }),
  );
  return strongest(mentions);
}

/** Two names that are merged into one entity are not related to each other. */
function addRelations(
  changes: Map<string, Change>,
  { chunk, keys }: Found,
  entities: ReadonlyMap<string, Change>,
): (Row & { key: string })[] {
  const idOf = (position: number) => entities.get(keys[position] ?? "")?.id;
  const said = chunk.extraction.relations.flatMap((relation) => {
    const [source, target] = [idOf(relation.source), idOf(relation.target)];
    if (!source || !target || source === target) return [];
    const row = {
      tenant: chunk.tenant,
      collection: chunk.collection,
      source_id: source,
      target_id: target,
      type: storedType(relation.type),
    };
    return { row, mention: { ...placeOf(relation, chunk), key: relationKey(row) } };
  });
  for (const [key, row] of new Map(said.map(({ row, mention }) => [mention.key, row])))
    count(changes, key, row);
  return said.map(({ mention }) => mention);
}

function placeOf(
  found: Pick<Extraction["entities"][number], "start" | "end" | "confidence">,
  chunk: ChunkGraph,
) {
  return {
    chunk_key: chunk.chunkKey,
    start_offset: found.start,
    end_offset: found.end,
    confidence: storedConfidence(found.confidence),
  };
}

/** Of mentions of one thing in one place the surest. */
function strongest(mentions: readonly Row[]): Row[] {
  const best = new Map<string, Row>();
  for (const mention of mentions) {
    const { confidence, ...place } = mention;
    const key = JSON.stringify(Object.values(place));
    if (!best.has(key) || Number(best.get(key)!.confidence) < Number(confidence)) best.set(key, mention);
  }
  return [...best.values()];
}

async function writeChanges(
  { transaction, database }: Writer,
  statement: GraphStatements["writeEntities"],
  changes: ReadonlyMap<string, Change>,
  keyOf: (row: Row) => string,
): Promise<void> {
  const keys = [...changes.keys()].filter((key) => changes.get(key)!.chunks !== 0).sort();
  const rows = keys.map((key) => {
    const { row, id, chunks } = changes.get(key)!;
    return { ...row, id: id ?? uuidv7(database.clock.now()), mention_count: chunks };
  });
  for (const written of await transaction.query(statement, [JSON.stringify(rows)]))
    changes.get(keyOf(written))!.id = String(written.id);
}

function lostMentions(database: Database, changes: ReadonlyMap<string, Change>): unknown {
  const lost = [...changes.values()].filter((change) => change.chunks < 0);
  return database.dialect.keys(lost.map((change) => change.id!));
}
