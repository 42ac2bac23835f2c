import { type Database, done, openQueue, type QueueStore } from "../../src/index.ts";
import { compareTimes, type Figure, GROWTH_GOAL, median } from "../figures.ts";
import { progress } from "../progress.ts";
import { onEachDatabase, shortCount, timed } from "./places.ts";
import { type BenchRow, createQueueTable, declareQueue, series, settleDownWith } from "./quarry.ts";
import type { Scene } from "./scene.ts";

const SMALL_GROUPS = 1_000;
const CLAIM = 50;
/** Enough for every claim to find one of it, and too few to be felt. */
const FEW_WAITING = 100;

interface Crowd {
  readonly waiting: number;
  readonly claimMs: number[];
  readonly settleMs: number[];
}

/**
 * A thousand groups of one task each, alone and behind a group of very many. The large group stands first in the
 * queue's order, so every claim meets its head and every settlement passes its turn on.
 */
export function exclusiveGroups({ scale, ...scene }: Scene): Promise<Figure[]> {
  return onEachDatabase(scene, async ({ name, url, database }) => {
    const crowd = (waiting: number): Crowd => ({ waiting, claimMs: [], settleMs: [] });
    const [alone, few, many] = [crowd(0), crowd(FEW_WAITING), crowd(scale.waitingInGroup)];
    const crowds = [alone, few, many];
    for (let round = 0; round < scale.rounds; round++) {
      const stores: QueueStore<BenchRow>[] = [];
      for (const { waiting } of crowds) stores.push(await createGroups(database, waiting));
      await settleDownWith(database, url);
      for (let claimed = 0; claimed < SMALL_GROUPS; claimed += CLAIM) {
        for (const [index, store] of stores.entries()) await claimAndSettle(store, crowds[index]!);
      }
    }
    const compare = (verb: string, base: Crowd, msOf: (crowd: Crowd) => number) => {
      const seen = crowds.map((crowd) => `${shortCount(crowd.waiting)} ${msOf(crowd).toFixed(2)} ms`);
      progress(`${name} groups, ${verb} ${CLAIM} with one group of: ${seen.join(", ")}`);
      return compareTimes({
        measure: `${name} exclusive groups, ${verb} ${CLAIM}, one group of ${shortCount(many.waiting)}`,
        unit: "ms",
        quarry: msOf(many),
        peer: base === alone ? "quarry, only groups of one" : `quarry, one group of ${base.waiting}`,
        peerValue: msOf(base),
        goal: GROWTH_GOAL,
      });
    };
    return [
      compare("claim", alone, ({ claimMs }) => median(claimMs)),
      // Where nobody waits, no turn is passed: that is less work, not a shorter queue.
      compare("settle", few, ({ settleMs }) => median(settleMs)),
    ];
  });
}

async function createGroups(database: Database, waiting: number): Promise<QueueStore<BenchRow>> {
  const queue = declareQueue(`groups_${waiting}`, {
    group: { columns: ["team"], turn: "has_turn" },
  });
  await createQueueTable(database, queue, ", team integer not null, has_turn boolean not null default false");
  const payload = database.dialect.name === "postgres" ? `'{"n":1}'::jsonb` : `'{"n":1}'`;
  const insert = `insert into ${queue.table} (payload, team, has_turn) select ${payload}`;
  if (waiting > 0) await database.query(`${insert}, 0, n = 1 from ${series(database, waiting)}`);
  await database.query(`${insert}, n, true from ${series(database, SMALL_GROUPS)}`);
  return openQueue(database, queue);
}

async function claimAndSettle(store: QueueStore<BenchRow>, { claimMs, settleMs }: Crowd): Promise<void> {
  let claims: Awaited<ReturnType<typeof store.claim>> = [];
  claimMs.push(
    await timed(async () => {
      claims = await store.claim({ worker: "bench", limit: CLAIM });
    }),
  );
  const settlements = claims.map((claim) => ({ claim, outcome: done() }));
  settleMs.push(await timed(() => store.settle(settlements)));
}
