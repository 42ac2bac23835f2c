import type { Database } from "../../database/database.ts";
import type { Hit, IndexFilter } from "../vectors.ts";
import type { GraphStatements } from "./statements.ts";

/** Neighbours say less than what was asked for. */
const NEIGHBOUR_WEIGHT = 0.3;
const NEIGHBOURS_MAX = 10;
/** What stands in more chunks is nobody's telling neighbour, and has none. */
const TELLING_MENTIONS_MAX = 100;
/** Names that stand everywhere are left out once rarer ones lead to this many chunks. */
const CHUNKS_MAX = 1_000;
const ROWS_MAX = 3_000;

interface Asked {
  readonly database: Database;
  readonly statements: GraphStatements;
  /** Tenant, collection or null, document ids or null. */
  readonly filterParams: readonly unknown[];
}

interface Entity {
  readonly id: string;
  readonly mentions: number;
}

/**
 * Chunks that mention entities or their neighbours. An entity counts for more the fewer chunks mention it, and once
 * in a chunk however often it stands there. In steps and not in one statement: each has one plan on both databases.
 */
export async function findChunksNear(
  asked: Asked,
  entityIds: readonly string[],
  { limit, filter }: { limit: number; filter: IndexFilter },
): Promise<Hit[]> {
  const seeds = telling(await entitiesOf(asked, entityIds, filter));
  const neighbours = await neighboursOf(asked, seeds, filter);
  const weights = new Map([
    ...neighbours.map((entity) => [entity.id, NEIGHBOUR_WEIGHT * rarityOf(entity)] as const),
    ...seeds.map((entity) => [entity.id, rarityOf(entity)] as const),
  ]);
  return bestChunks(await mentionsOf(asked, [...weights.keys()]), weights).slice(0, limit);
}

async function entitiesOf(
  { database, statements }: Asked,
  ids: readonly string[],
  filter: IndexFilter,
): Promise<Entity[]> {
  const rows = await database.query(statements.entities, [database.dialect.keys(ids)]);
  return rows
    .filter((row) => row.tenant === filter.tenant && row.collection === (filter.collection ?? row.collection))
    .map((row) => ({ id: String(row.id), mentions: Number(row.mention_count) }));
}

/** The rarest is always among them. */
function telling(entities: readonly Entity[]): Entity[] {
  let chunks = 0;
  return entities
    .toSorted((a, b) => a.mentions - b.mentions)
    .filter((entity, index) => {
      chunks += entity.mentions;
      return index === 0 || chunks <= CHUNKS_MAX;
    });
}

async function neighboursOf(asked: Asked, seeds: readonly Entity[], filter: IndexFilter): Promise<Entity[]> {
  const { database, statements } = asked;
  const ids = seeds.filter(({ mentions }) => mentions <= TELLING_MENTIONS_MAX).map(({ id }) => id);
  const links = await database.query(statements.links, [database.dialect.keys(ids), ROWS_MAX]);
  const strengths = new Map<string, number>();
  for (const { id, mention_count } of links)
    strengths.set(String(id), (strengths.get(String(id)) ?? 0) + Number(mention_count));
  for (const { id } of seeds) strengths.delete(id);
  const strengthOf = (entity: Entity) => strengths.get(entity.id)! * rarityOf(entity);
  return (await entitiesOf(asked, [...strengths.keys()], filter))
    .filter(({ mentions }) => mentions <= TELLING_MENTIONS_MAX)
    .sort((a, b) => strengthOf(b) - strengthOf(a) || (a.id < b.id ? -1 : 1))
    .slice(0, NEIGHBOURS_MAX);
}

function rarityOf({ mentions }: Entity): number {
  return 1 / (1 + Math.log(Math.max(1, mentions)));
}

type Mention = { entity_id: string; confidence: number; chunk_id: string; document_id: string };

function mentionsOf(
  { database, statements, filterParams }: Asked,
  ids: readonly string[],
): Promise<Mention[]> {
  return database.query<Mention>(statements.mentions, [
    ...filterParams,
    database.dialect.keys(ids),
    ROWS_MAX,
  ]);
}

function bestChunks(mentions: readonly Mention[], weights: ReadonlyMap<string, number>): Hit[] {
  const surest = new Map<string, Mention>();
  for (const mention of mentions) {
    const key = `${mention.document_id} ${mention.chunk_id} ${mention.entity_id}`;
    if ((surest.get(key)?.confidence ?? -1) < mention.confidence) surest.set(key, mention);
  }
  const hits = new Map<string, Hit>();
  for (const { entity_id, confidence, chunk_id: chunkId, document_id: documentId } of surest.values()) {
    const key = `${documentId} ${chunkId}`;
    const score = (hits.get(key)?.score ?? 0) + weights.get(entity_id)! * confidence;
    hits.set(key, { chunkId, documentId, score });
  }
  return [...hits.entries()]
    .sort(([a, x], [b, y]) => y.score - x.score || (a < b ? -1 : 1))
    .map(([, hit]) => hit);
}
