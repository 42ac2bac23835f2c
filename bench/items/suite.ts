import { join } from "node:path";
import {
  type Database,
  done,
  migrate,
  openDatabase,
  openQueue,
  prepareQueue,
  readMigrations,
} from "../../src/index.ts";
import { Items, type NewItem } from "../../src/ingest/items.ts";
import { type ItemQueues, itemQueues } from "../../src/ingest/queue.ts";
import { scan } from "../../src/ingest/scan.ts";
import { startServices } from "../../test/support/services.ts";
import { compareRates, compareTimes, type Figure, GROWTH_GOAL, median } from "../figures.ts";
import { createBenchDatabase } from "../postgres.ts";
import { progress } from "../progress.ts";
import { defineSuite } from "../suite.ts";
import { makeFolder } from "./folder.ts";

interface Scene {
  readonly postgresUrl: string;
  readonly folder: string;
  /** How many files one tenant has in line. */
  readonly waiting: number;
  readonly rounds: number;
}

const CLAIM = 50;
const WRITE = 500;

export const itemsSuite = defineSuite<Scene>({
  measures: { turns, scanning },
  remark: "Items are written and claimed as the product does it; nothing is ingested.",
  withScene: async ({ folder, isQuick }, work) => {
    const services = await startServices({ postgres: true, redis: false, isSynced: !isQuick });
    progress(services.description);
    const database = await createBenchDatabase(services.postgresUrl);
    try {
      return await work({
        postgresUrl: database.url,
        folder,
        waiting: isQuick ? 5_000 : 100_000,
        rounds: isQuick ? 10 : 100,
      });
    } finally {
      await database.drop();
      await services.stop();
    }
  },
});

/** One tenant has very many files in line; others come with one. How many are taken before theirs, and at what cost. */
async function turns(scene: Scene): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const [name, url] of Object.entries({
    sqlite: join(scene.folder, "items.db"),
    postgres: scene.postgresUrl,
  })) {
    const { database, items, queues } = await openItems(name, url);
    try {
      const store = openQueue(database, queues.items);
      const claimMs = { few: [] as number[], many: [] as number[] };
      const claimTimed = async (into: number[]) => {
        const startedAt = performance.now();
        const claims = await store.claim({ worker: "bench", limit: CLAIM });
        into.push(performance.now() - startedAt);
        await store.settle(claims.map((claim) => ({ claim, outcome: done() })));
        return claims;
      };
      for (let round = 0; round < scene.rounds; round++) {
        await items.enqueueMany(files("many", round * CLAIM, CLAIM));
        await claimTimed(claimMs.few);
      }
      const startedAt = performance.now();
      for (let written = 0; written < scene.waiting; written += WRITE)
        await items.enqueueMany(files("many", 1_000_000 + written, WRITE));
      const perSecond = scene.waiting / ((performance.now() - startedAt) / 1_000);
      const before: number[] = [];
      for (let round = 0; round < scene.rounds; round++) {
        const tenant = `single-${round}`;
        await items.enqueueMany(files(tenant, 0, 1));
        let taken = 0;
        for (let position = -1; position < 0; ) {
          const claims = await claimTimed(claimMs.many);
          position = claims.findIndex(({ row }) => row.tenant_id === tenant);
          taken += position < 0 ? claims.length : position;
        }
        before.push(taken);
      }
      figures.push(
        compareTimes({
          measure: `${name} items taken before a newcomer's, one tenant with ${scene.waiting} in line`,
          unit: "items",
          quarry: Math.max(1, median(before)),
          peer: "first come, first served",
          peerValue: scene.waiting,
          goal: null,
          note: "the median; in the order of coming it would be all of them",
        }),
        compareTimes({
          measure: `${name} claim of ${CLAIM}, ${scene.waiting} in line`,
          unit: "ms",
          quarry: median(claimMs.many),
          peer: `quarry, ${CLAIM} in line`,
          peerValue: median(claimMs.few),
          goal: GROWTH_GOAL,
        }),
        compareRates({
          measure: `${name} items enqueued, ${WRITE} at a time`,
          unit: "items/s",
          quarry: perSecond,
          peer: "a second",
          peerValue: 1,
          goal: null,
        }),
      );
    } finally {
      await database.close();
    }
  }
  return figures;
}

/** A folder of very many files becomes items: memory must not grow with it. */
async function scanning(scene: Scene): Promise<Figure[]> {
  const sizes = [scene.waiting / 10, scene.waiting];
  const peaks: number[] = [];
  let perSecond = 0;
  for (const size of sizes) {
    const root = await makeFolder(join(scene.folder, `files-${size}`), size);
    const { database, items } = await openItems("sqlite", join(scene.folder, `scan-${size}.db`));
    globalThis.gc?.();
    const base = process.memoryUsage().rss;
    let peak = base;
    const startedAt = performance.now();
    let batch: NewItem[] = [];
    for await (const found of scan([root], { except: [] })) {
      if (found.kind !== "file") continue;
      batch.push(fileItem("scan", found.path));
      if (batch.length < WRITE) continue;
      await items.enqueueMany(batch);
      batch = [];
      peak = Math.max(peak, process.memoryUsage().rss);
    }
    await items.enqueueMany(batch);
    perSecond = size / ((performance.now() - startedAt) / 1_000);
    peaks.push((peak - base) / 1_048_576);
    await database.close();
  }
  return [
    compareRates({
      measure: `a folder of ${scene.waiting} files becomes items`,
      unit: "files/s",
      quarry: perSecond,
      peer: "a second",
      peerValue: 1,
      goal: null,
    }),
    compareTimes({
      measure: `memory added by a scan of ${scene.waiting} files`,
      unit: "MB",
      quarry: Math.max(1, peaks[1]!),
      peer: `quarry, ${sizes[0]} files`,
      peerValue: Math.max(1, peaks[0]!),
      goal: null,
      note: "peak of the process over what it had before",
    }),
  ];
}

async function openItems(
  dialect: string,
  url: string,
): Promise<{ database: Database; items: Items; queues: ItemQueues }> {
  const database = openDatabase(url);
  await migrate(database, readMigrations(join(import.meta.dirname, "../../migrations", dialect)));
  const queues = itemQueues();
  for (const queue of Object.values(queues)) await prepareQueue(database, queue);
  return { database, items: new Items(database, queues), queues };
}

function files(tenant: string, from: number, count: number): NewItem[] {
  return Array.from({ length: count }, (_, n) => fileItem(tenant, `/files/${from + n}`));
}

function fileItem(tenant: string, path: string): NewItem {
  return { item_type: "file", op: "ingest", payload: { file_path: path }, tenant_id: tenant };
}
