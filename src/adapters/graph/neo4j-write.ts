import { uuidOf } from "../../ids.ts";
import { normaliseName } from "../entities/normalise.ts";
import type { ChunkGraph } from "../graph.ts";
import * as cypher from "./cypher.ts";
import type { Run } from "./neo4j-link.ts";
import { storedConfidence, storedName, storedType } from "./stored.ts";

/**
 * Replaces what chunks said before. Every writer holds chunks, then all entities it will touch, each in the order of their
 * keys: two that write the same entities wait for each other and seldom in a ring; of those that do, the server ends one
 * and the driver runs it again.
 */
export async function writeChunks(run: Run, chunks: readonly ChunkGraph[]): Promise<void> {
  await run(cypher.WRITE_CHUNKS, {
    chunks: chunks.map(({ chunkKey: key, chunkId, documentId, tenant, collection }) => {
      return { key, chunkId, documentId, tenant, collection };
    }),
  });
  await replaceMentions(
    run,
    chunks.map(({ chunkKey }) => chunkKey),
    chunks.map(saidBy),
  );
}

export async function removeChunks(
  run: Run,
  { documentId, chunkKeys }: { documentId: string; chunkKeys: readonly string[] },
): Promise<void> {
  await run(cypher.HOLD_CHUNKS, { keys: chunkKeys });
  const held = await run(cypher.HELD_CHUNKS, { keys: chunkKeys, documentId });
  const keys = held.map(({ key }) => String(key));
  if (keys.length === 0) return;
  await replaceMentions(run, keys, []);
  await run(cypher.DROP_CHUNKS, { keys });
}

async function replaceMentions(run: Run, keys: readonly string[], said: readonly ChunkSays[]): Promise<void> {
  const changes = new Map<string, EntityChange>();
  const change = (entity: EntityRow | { readonly id: string }, by: number) => {
    const known = changes.get(entity.id);
    changes.set(entity.id, { ...entity, ...known, change: (known?.change ?? 0) + by });
  };
  for (const { id, chunks } of await run(cypher.MENTIONED, { keys })) change({ id: String(id) }, -chunks);
  for (const { entities } of said) for (const entity of entities.values()) change(entity, 1);
  if (changes.size === 0) return;
  const sorted = [...changes.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  await run(cypher.WRITE_ENTITIES, {
    entities: sorted.map((row) => ({ ...row, change: BigInt(row.change) })),
  });
  await run(cypher.FORGET_MENTIONS, { keys });
  await run(cypher.FORGET_RELATIONS, { keys });
  await run(cypher.WRITE_MENTIONS, { mentions: said.flatMap(({ mentions }) => mentions) });
  await run(cypher.WRITE_RELATIONS, { relations: said.flatMap(({ relations }) => relations) });
  const lost = sorted.filter((row) => row.change < 0).map(({ id }) => id);
  if (lost.length > 0) await run(cypher.DROP_UNMENTIONED, { ids: lost });
}

interface EntityRow {
  /** Follows from the rest: whoever finds the entity first gives it the same. */
  readonly id: string;
  readonly tenant: string;
  readonly collection: string;
  readonly name: string;
  readonly normalisedName: string;
  readonly type: string;
}

type EntityChange = (EntityRow | { readonly id: string }) & { readonly change: number };

interface Places {
  readonly confidence: number;
  readonly starts: readonly bigint[];
  readonly ends: readonly bigint[];
}

interface ChunkSays {
  readonly entities: ReadonlyMap<string, EntityRow>;
  readonly mentions: readonly (Places & { readonly chunkKey: string; readonly entityId: string })[];
  readonly relations: readonly (Places & Record<string, unknown>)[];
}

function saidBy(chunk: ChunkGraph): ChunkSays {
  const { chunkKey, documentId, tenant, collection, extraction } = chunk;
  const rows = extraction.entities.map(({ name, type }) => entityRow(chunk, name, type));
  const mentions = Map.groupBy(rows.keys(), (position) => rows[position]?.id);
  mentions.delete(undefined);
  const relations = Map.groupBy(extraction.relations, ({ source, target, type }) =>
    // Two names that are merged into one entity are not related to each other.
    rows[source] && rows[target] && rows[source].id !== rows[target].id
      ? JSON.stringify([rows[source].id, rows[target].id, storedType(type)])
      : undefined,
  );
  relations.delete(undefined);
  return {
    // Of several spellings the first is shown.
    entities: new Map(rows.toReversed().flatMap((row) => (row ? [[row.id, row] as const] : []))),
    mentions: [...mentions].map(([entityId, positions]) => {
      return { chunkKey, entityId: entityId!, ...placesOf(positions.map((at) => extraction.entities[at]!)) };
    }),
    relations: [...relations.values()].map((same) => {
      const { source, target, type } = same[0]!;
      const ends = { sourceId: rows[source]!.id, targetId: rows[target]!.id, type: storedType(type) };
      return { ...ends, chunkKey, documentId, tenant, collection, ...placesOf(same) };
    }),
  };
}

/** Undefined when nothing is left of a name. */
function entityRow({ tenant, collection }: ChunkGraph, given: string, kind: string): EntityRow | undefined {
  const name = storedName(given);
  const normalisedName = normaliseName(name);
  if (normalisedName === "") return undefined;
  const type = storedType(kind);
  const id = uuidOf("entity", tenant, collection, normalisedName, type);
  return { id, tenant, collection, name, normalisedName, type };
}

/** The surest place counts; all are kept. */
function placesOf(found: readonly { start: number; end: number; confidence: number }[]): Places {
  return {
    confidence: Math.max(...found.map(({ confidence }) => storedConfidence(confidence))),
    starts: found.map(({ start }) => BigInt(start)),
    ends: found.map(({ end }) => BigInt(end)),
  };
}
