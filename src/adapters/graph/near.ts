import type { Hit } from "../vectors.ts";

/** Neighbours say less than what was asked for. */
const NEIGHBOUR_WEIGHT = 0.3;
const NEIGHBOURS_MAX = 10;
/** What stands in more chunks is nobody's telling neighbour, and has none. */
const TELLING_MENTIONS_MAX = 100;
/** Names that stand everywhere are left out once rarer ones lead to this many chunks. */
const CHUNKS_MAX = 1_000;
const ROWS_MAX = 3_000;

export interface Counted {
  readonly id: string;
  /** In how many chunks. */
  readonly mentions: number;
}

export interface Mention {
  readonly entityId: string;
  readonly confidence: number;
  readonly chunkId: string;
  readonly documentId: string;
}

/** What a graph is asked, step by step, by somebody who may see a part of it. */
export interface GraphView {
  entities(ids: readonly string[]): Promise<Counted[]>;
  /** What these are related to, and how many chunks say so; the same one may come more than once. */
  links(ids: readonly string[], limit: number): Promise<Counted[]>;
  mentions(ids: readonly string[], limit: number): Promise<Mention[]>;
}

/**
 * Chunks that mention entities or their neighbours. An entity counts for more the fewer chunks mention it, and once
 * in a chunk however often it stands there. In steps and not in one statement: each has one plan on every store.
 */
export async function findChunksNear(
  view: GraphView,
  entityIds: readonly string[],
  limit: number,
): Promise<Hit[]> {
  const seeds = telling(await view.entities(entityIds));
  const neighbours = await neighboursOf(view, seeds);
  const weights = new Map([
    ...neighbours.map((entity) => [entity.id, NEIGHBOUR_WEIGHT * rarityOf(entity)] as const),
    ...seeds.map((entity) => [entity.id, rarityOf(entity)] as const),
  ]);
  return bestChunks(await view.mentions([...weights.keys()], ROWS_MAX), weights).slice(0, limit);
}

/** The rarest is always among them. */
function telling(entities: readonly Counted[]): Counted[] {
  let chunks = 0;
  return entities
    .toSorted((a, b) => a.mentions - b.mentions)
    .filter((entity, index) => {
      chunks += entity.mentions;
      return index === 0 || chunks <= CHUNKS_MAX;
    });
}

async function neighboursOf(view: GraphView, seeds: readonly Counted[]): Promise<Counted[]> {
  const ids = seeds.filter(({ mentions }) => mentions <= TELLING_MENTIONS_MAX).map(({ id }) => id);
  const strengths = new Map<string, number>();
  for (const { id, mentions } of await view.links(ids, ROWS_MAX))
    strengths.set(id, (strengths.get(id) ?? 0) + mentions);
  for (const { id } of seeds) strengths.delete(id);
  const strengthOf = (entity: Counted) => strengths.get(entity.id)! * rarityOf(entity);
  return (await view.entities([...strengths.keys()]))
    .filter(({ mentions }) => mentions <= TELLING_MENTIONS_MAX)
    .sort((a, b) => strengthOf(b) - strengthOf(a) || (a.id < b.id ? -1 : 1))
    .slice(0, NEIGHBOURS_MAX);
}

function rarityOf({ mentions }: Counted): number {
  return 1 / (1 + Math.log(Math.max(1, mentions)));
}

function bestChunks(mentions: readonly Mention[], weights: ReadonlyMap<string, number>): Hit[] {
  const surest = new Map<string, Mention>();
  for (const mention of mentions) {
    const key = `${mention.documentId} ${mention.chunkId} ${mention.entityId}`;
    if ((surest.get(key)?.confidence ?? -1) < mention.confidence) surest.set(key, mention);
  }
  const hits = new Map<string, Hit>();
  for (const { entityId, confidence, chunkId, documentId } of surest.values()) {
    const key = `${documentId} ${chunkId}`;
    const score = (hits.get(key)?.score ?? 0) + weights.get(entityId)! * confidence;
    hits.set(key, { chunkId, documentId, score });
  }
  return [...hits.entries()]
    .sort(([a, x], [b, y]) => y.score - x.score || (a < b ? -1 : 1))
    .map(([, hit]) => hit);
}
