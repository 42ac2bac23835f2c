import { join } from "node:path";
// Not "zod": the peers beside us have an older one.
import { z } from "@hono/zod-openapi";
import { type FunctionTaskPayload, functionQueue } from "../../src/agents/queue.ts";
import { defineFunction, FunctionRegistry } from "../../src/agents/registry.ts";
import { Tasks } from "../../src/agents/tasks.ts";
import {
  type Database,
  done,
  migrate,
  openDatabase,
  openQueue,
  prepareQueue,
  type QueueStore,
  readMigrations,
} from "../../src/index.ts";
import { startServices } from "../../test/support/services.ts";
import { compareTimes, type Figure, GROWTH_GOAL, median } from "../figures.ts";
import { createBenchDatabase } from "../postgres.ts";
import { progress } from "../progress.ts";
import { settleDownWith } from "../queue/quarry.ts";
import { defineSuite } from "../suite.ts";

interface Scene {
  readonly postgresUrl: string;
  readonly folder: string;
  /** Tasks of one entity, or entities of one task. */
  readonly many: number;
  readonly rounds: number;
}

/** How the tasks that wait are spread. */
interface Crowd {
  readonly name: string;
  /** Tasks of the entity that stands first. */
  readonly deep: number;
  /** Entities with one task each. */
  readonly wide: number;
}

interface Measured {
  readonly crowd: Crowd;
  readonly store: QueueStore<FunctionTaskPayload>;
  readonly claimMs: number[];
  readonly settleMs: number[];
  close(): Promise<void>;
}

const CLAIM = 50;
const FEW_DEEP = 100;
const FEW_WIDE = 1_000;
const WRITE = 5_000;

export const tasksSuite = defineSuite<Scene>({
  measures: { claims },
  remark: "Tasks are enqueued, claimed and completed as the product does it; their functions are not run.",
  withScene: async ({ folder, isQuick }, work) => {
    const services = await startServices({ postgres: true, redis: false, isSynced: !isQuick });
    progress(services.description);
    try {
      const many = isQuick ? 2_000 : 100_000;
      return await work({ postgresUrl: services.postgresUrl, folder, many, rounds: isQuick ? 1 : 2 });
    } finally {
      await services.stop();
    }
  },
});

/** What it costs to take the next tasks, and to complete them and pass their entities' turns on, whatever else waits. */
async function claims(scene: Scene): Promise<Figure[]> {
  const crowds: Crowd[] = [
    { name: "small", deep: FEW_DEEP, wide: FEW_WIDE },
    { name: `one entity of ${scene.many} tasks`, deep: scene.many, wide: FEW_WIDE },
    { name: `${scene.many} entities of one task`, deep: FEW_DEEP, wide: scene.many },
  ];
  const figures: Figure[] = [];
  for (const dialect of ["sqlite", "postgres"] as const) {
    const times = new Map(
      crowds.map(({ name }) => [name, { claim: [] as number[], settle: [] as number[] }]),
    );
    for (let round = 0; round < scene.rounds; round++) {
      const measured: Measured[] = [];
      try {
        for (const crowd of crowds) measured.push(await openCrowd(scene, dialect, crowd, round));
        // They take turns, so that what else the machine does befalls all alike.
        for (let taken = 0; taken < FEW_WIDE; taken += CLAIM)
          for (const one of measured) await claimAndSettle(one);
      } finally {
        for (const one of measured) await one.close();
      }
      for (const { crowd, claimMs, settleMs } of measured) {
        times.get(crowd.name)!.claim.push(...claimMs);
        times.get(crowd.name)!.settle.push(...settleMs);
      }
    }
    const [small, ...others] = crowds.map(({ name }) => ({ name, ...times.get(name)! }));
    for (const verb of ["claim", "settle"] as const)
      for (const other of others)
        figures.push(
          compareTimes({
            measure: `${dialect} tasks, ${verb} ${CLAIM}, ${other.name}`,
            unit: "ms",
            quarry: median(other[verb]),
            peer: `quarry, ${FEW_WIDE} entities, one of them with ${FEW_DEEP} tasks`,
            peerValue: median(small![verb]),
            goal: GROWTH_GOAL,
          }),
        );
  }
  return figures;
}

async function openCrowd(scene: Scene, dialect: string, crowd: Crowd, round: number): Promise<Measured> {
  const place =
    dialect === "sqlite"
      ? {
          url: join(scene.folder, `tasks-${round}-${crowd.deep}-${crowd.wide}.db`),
          drop: async () => undefined,
        }
      : await createBenchDatabase(scene.postgresUrl);
  // A sync to disk would hide what grows.
  const database = openDatabase(place.url, { synchronous: "normal" });
  const queue = functionQueue({ staleMs: 120_000, taskStaleMs: 1_800_000, taskRetentionDays: 7 });
  await migrate(database, readMigrations(join(import.meta.dirname, "../../migrations", dialect)));
  await prepareQueue(database, queue);
  await fill(database, queue, crowd);
  await database.query("analyze");
  await settleDownWith(database, place.url);
  return {
    crowd,
    store: openQueue(database, queue),
    claimMs: [],
    settleMs: [],
    close: async () => {
      await database.close();
      await place.drop();
    },
  };
}

/** The entity with many tasks stands first, so every claim meets its head and every settlement passes its turn on. */
async function fill(
  database: Database,
  queue: ReturnType<typeof functionQueue>,
  { deep, wide, name }: Crowd,
): Promise<void> {
  const payload = z.object({ n: z.int() });
  const registry = new FunctionRegistry([
    defineFunction({ name: "step", entityType: "planner", payload, run: async () => undefined }),
  ]);
  const tasks = new Tasks({ database, queue, registry, attemptsMax: 3 });
  const numbers =
    database.dialect.name === "postgres"
      ? `generate_series(0, ${wide}) as s(n)`
      : `(with recursive s(n) as (select 0 union all select n + 1 from s where n < ${wide}) select n from s) as s`;
  await database.query(`insert into planners (planner_id) select 'p' || n from ${numbers}`);
  const startedAt = performance.now();
  for (let written = 0; written < deep + wide; written += WRITE) {
    const count = Math.min(WRITE, deep + wide - written);
    await tasks.enqueue(
      Array.from({ length: count }, (_, index) => {
        const n = written + index;
        const entity = n < deep ? 0 : n - deep + 1;
        return { entity_type: "planner", entity_id: `p${entity}`, function_name: "step", payload: { n } };
      }),
    );
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  progress(
    `${database.dialect.name}, ${name}: ${Math.round((deep + wide) / seconds)} tasks enqueued a second`,
  );
}

async function claimAndSettle({ store, claimMs, settleMs }: Measured): Promise<void> {
  const startedAt = performance.now();
  const taken = await store.claim({ worker: "bench", limit: CLAIM });
  const claimedAt = performance.now();
  await store.settle(taken.map((claim) => ({ claim, outcome: done() })));
  claimMs.push(claimedAt - startedAt);
  settleMs.push(performance.now() - claimedAt);
}
