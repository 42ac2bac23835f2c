import { type Claim, type Database, done, openQueue, type QueueStore } from "../../src/index.ts";
import { compareTimes, type Figure, GROWTH_GOAL, median } from "../figures.ts";
import { progress } from "../progress.ts";
import { onEachDatabase, type Place, shortCount, timed } from "./places.ts";
import { type BenchRow, createQueueTable, declareQueue, series, settleDownWith } from "./quarry.ts";
import type { Scale, Scene } from "./scene.ts";

const BATCH = 100;
/** Small families come in numbers, so that each size has enough children to settle. */
const CHILDREN_MIN = 20_000;
const WARM_UP = 5;

interface Family {
  readonly siblings: number;
  readonly store: QueueStore<BenchRow>;
  readonly oneByOneMs: number[];
  readonly batchMs: number[];
}

/** Settling a child rolls up to its parent; what that costs must not depend on how many siblings it has. */
export function settleWithSiblings(scene: Scene): Promise<Figure[]> {
  return onEachDatabase(scene, async (place) => {
    const families: Family[] = [];
    for (const siblings of scene.scale.siblings)
      families.push(await createFamilies(place.database, siblings));
    await settleDownWith(place.database, place.url);
    for (const { store, siblings } of families) await workOff(store, Math.max(siblings, CHILDREN_MIN) / 2);
    await settleOneByOne(families, scene.scale);
    await settleInBatches(families, Math.ceil(scene.scale.samples / 3));
    return [
      ...figures(place, families, "one at a time", ({ oneByOneMs }) => median(oneByOneMs)),
      // A batch of a hundred touches ten families of ten, so the smallest to compare with has a thousand.
      ...figures(place, families.slice(1), `${BATCH} at a time`, ({ batchMs }) => median(batchMs) / BATCH),
    ];
  });
}

async function createFamilies(database: Database, siblings: number): Promise<Family> {
  const parents = `parents_${siblings}`;
  const queue = declareQueue(`children_${siblings}`, {
    rollUp: [{ table: parents, key: { column: "id", type: "integer" }, via: "parent_id", status: "status" }],
  });
  const count = Math.max(siblings, CHILDREN_MIN);
  const isPg = database.dialect.name === "postgres";
  const id = isPg ? "bigint" : "integer";
  await database.query(`drop table if exists ${parents}`);
  await database.query(
    `create table ${parents} (id ${id} primary key, status text not null default 'pending')`,
  );
  await database.query(`insert into ${parents} (id) select n from ${series(database, count / siblings)}`);
  await createQueueTable(database, queue, ", parent_id bigint");
  const payload = isPg ? `'{"n":1}'::jsonb` : `'{"n":1}'`;
  await database.query(
    `insert into ${queue.table} (payload, parent_id) select ${payload}, (n - 1) / ${siblings} + 1 from ${series(database, count)}`,
  );
  return { siblings, store: openQueue(database, queue), oneByOneMs: [], batchMs: [] };
}

/** Rows that were claimed and settled leave traces in indexes, which a fresh table does not show. */
async function workOff(store: QueueStore<BenchRow>, count: number): Promise<void> {
  for (let left = count; left > 0; ) {
    const claims = await store.claim({ worker: "bench", limit: Math.min(left, 1_000) });
    await store.settle(settlements(claims));
    left -= claims.length;
  }
}

async function settleOneByOne(families: readonly Family[], { samples }: Scale): Promise<void> {
  const held = await Promise.all(
    families.map(({ store }) => store.claim({ worker: "bench", limit: samples + WARM_UP })),
  );
  for (let sample = 0; sample < samples + WARM_UP; sample++) {
    for (const [index, { store, oneByOneMs }] of families.entries()) {
      const ms = await timed(() => store.settle(settlements([held[index]![sample]!])));
      if (sample >= WARM_UP) oneByOneMs.push(ms);
    }
  }
}

async function settleInBatches(families: readonly Family[], samples: number): Promise<void> {
  for (let sample = 0; sample < samples; sample++) {
    for (const { store, batchMs } of families) {
      const claims = await store.claim({ worker: "bench", limit: BATCH });
      batchMs.push(await timed(() => store.settle(settlements(claims))));
    }
  }
}

function settlements(claims: readonly Claim<BenchRow>[]) {
  return claims.map((claim) => ({ claim, outcome: done() }));
}

function figures(
  place: Place,
  families: readonly Family[],
  how: string,
  msOf: (family: Family) => number,
): Figure[] {
  const [smallest, ...larger] = families as [Family, ...Family[]];
  const seen = families.map((family) => `${shortCount(family.siblings)} ${msOf(family).toFixed(3)} ms`);
  progress(`${place.name} settle ${how}, per child with siblings: ${seen.join(", ")}`);
  return larger.map((family) =>
    compareTimes({
      measure: `${place.name} settle ${how}, ${shortCount(family.siblings)} siblings`,
      unit: "ms/child",
      quarry: msOf(family),
      peer: `quarry, ${shortCount(smallest.siblings)} siblings`,
      peerValue: msOf(smallest),
      goal: family === larger.at(-1) ? GROWTH_GOAL : null,
    }),
  );
}
