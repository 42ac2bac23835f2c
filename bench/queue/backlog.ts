import { type Database, openQueue, type QueueStore } from "../../src/index.ts";
import { compareTimes, type Figure, GROWTH_GOAL, median } from "../figures.ts";
import { progress } from "../progress.ts";
import { onEachDatabase, type Place, shortCount, timed } from "./places.ts";
import { type BenchRow, createQueueTable, declareQueue, series, settleDownWith } from "./quarry.ts";
import type { Scene } from "./scene.ts";

const CLAIM = 100;
const WARM_UP = 5;

/** A claim looks at its batch and not at what waits behind it. */
export function claimAtBacklog(scene: Scene): Promise<Figure[]> {
  return onEachDatabase(scene, async (place) => {
    const stores: QueueStore<BenchRow>[] = [];
    for (const size of scene.scale.backlogs) stores.push(await fill(place.database, size));
    await settleDownWith(place.database, place.url);
    const times = stores.map((): number[] => []);
    // Every table has lost as many rows as the others when it is timed.
    const samples = Math.min(scene.scale.samples, scene.scale.backlogs[0]! / CLAIM / 2);
    for (let sample = -WARM_UP; sample < samples; sample++) {
      for (const [index, store] of stores.entries()) {
        const ms = await timed(() => store.claim({ worker: "bench", limit: CLAIM }));
        if (sample >= 0) times[index]!.push(ms);
      }
    }
    return figures(place, scene.scale.backlogs, times.map(median));
  });
}

async function fill(database: Database, size: number): Promise<QueueStore<BenchRow>> {
  const queue = declareQueue(`backlog_${size}`);
  await createQueueTable(database, queue);
  await database.query(
    `insert into ${queue.table} (payload) select '{"n":1}'${database.dialect.name === "postgres" ? "::jsonb" : ""} from ${series(database, size)}`,
  );
  return openQueue(database, queue);
}

function figures(place: Place, sizes: readonly number[], medians: readonly number[]): Figure[] {
  progress(
    `${place.name} claim of ${CLAIM}: ${sizes.map((size, index) => `${shortCount(size)} ${medians[index]!.toFixed(2)} ms`).join(", ")}`,
  );
  return sizes.slice(1).map((size, index) =>
    compareTimes({
      measure: `${place.name} claim of ${CLAIM}, backlog ${shortCount(size)}`,
      unit: "ms",
      quarry: medians[index + 1]!,
      peer: `quarry, backlog ${shortCount(sizes[0]!)}`,
      peerValue: medians[0]!,
      goal: size === sizes.at(-1) ? GROWTH_GOAL : null,
    }),
  );
}
