import { join } from "node:path";
import { compareRates, type Figure, median } from "../figures.ts";
import { progress } from "../progress.ts";
import type { Connection, Contender, Payload } from "./contender.ts";
import { fastestSettings, graphile } from "./graphile.ts";
import { pgBoss } from "./pg-boss.ts";
import { plainjob } from "./plainjob.ts";
import { quarry } from "./quarry.ts";
import { rawPostgres } from "./raw-postgres.ts";
import { rawSqlite } from "./raw-sqlite.ts";
import type { Scale, Scene } from "./scene.ts";

/** Tasks per second. */
export interface Throughput {
  readonly single: number;
  readonly bulk: number;
  readonly drain: number;
}

const BULK = 10_000;
const DRAIN_MAX_MS = 300_000;

/** Enqueue one at a time and in bulk, and drain, on PostgreSQL. */
export async function postgresThroughput({ postgresUrl: url, scale }: Scene): Promise<Figure[]> {
  const kept = quarry({ name: "quarry, rows kept", url });
  const removed = quarry({ name: "quarry, rows removed", url, whenDone: "remove" });
  const graphiles = [500, 2_000].map((size) =>
    graphile(`graphile-worker (localQueue ${size})`, url, fastestSettings(size)),
  );
  const bosses = [
    pgBoss("pg-boss (500 × 4)", url, { batchSize: 500, localConcurrency: 4 }),
    pgBoss("pg-boss (2000 × 2)", url, { batchSize: 2_000, localConcurrency: 2 }),
  ];
  const raw = rawPostgres("raw loop (pg, batch 500)", url);

  const seen = await interleave([kept, ...graphiles, removed, raw, ...bosses], scale);
  const add = (measure: string, key: keyof Throughput, who: Contender, goals: [Contender[], number][]) =>
    goals.map(([peers, goal]) => compared(seen, { measure, key, who, peers, goal }));
  return [
    ...add("PostgreSQL enqueue, one at a time", "single", kept, [
      [graphiles, 1],
      [bosses, 1],
    ]),
    ...add("PostgreSQL enqueue, batches of 10,000", "bulk", kept, [
      [graphiles, 1],
      [bosses, 1],
    ]),
    ...add("PostgreSQL drain, rows kept", "drain", kept, [
      [graphiles, 1],
      [bosses, 1],
      [[raw], 0.6],
    ]),
    ...add("PostgreSQL drain, rows removed", "drain", removed, [[graphiles, 1.2]]),
  ];
}

/** The same on SQLite, where the setting of `synchronous` decides what a commit costs. */
export async function sqliteThroughput({ folder, scale }: Scene): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const synchronous of ["normal", "full"] as const) {
    const path = (name: string) => join(folder, `${name}-${synchronous}.db`);
    const ours = quarry({ name: `quarry (${synchronous})`, url: path("quarry"), synchronous });
    const plain = plainjob(`plainjob (${synchronous})`, { path: path("plainjob"), synchronous });
    const raw = rawSqlite(`raw loop (node:sqlite, ${synchronous})`, { path: path("raw"), synchronous });
    const seen = await interleave([ours, plain, raw], scale);
    const compare = (measure: string, key: keyof Throughput, peer: Contender, goal: number) =>
      compared(seen, { measure: `SQLite ${measure}`, key, who: ours, peers: [peer], goal });
    figures.push(
      compare(`enqueue, one at a time, ${synchronous}`, "single", plain, 1),
      compare(`enqueue, batches of 10,000, ${synchronous}`, "bulk", plain, 1),
      compare(`drain, ${synchronous}`, "drain", plain, 10),
      compare(`drain, ${synchronous}`, "drain", raw, 0.5),
    );
  }
  return figures;
}

/** Against the best of a peer's settings. */
function compared(
  seen: ReadonlyMap<Contender, Throughput>,
  options: { measure: string; key: keyof Throughput; who: Contender; peers: Contender[]; goal: number },
): Figure {
  const { measure, key, who, peers, goal } = options;
  const rate = (contender: Contender) => seen.get(contender)![key];
  const best = peers.toSorted((a, b) => rate(b) - rate(a))[0]!;
  return compareRates({
    measure,
    unit: "tasks/s",
    quarry: rate(who),
    peer: best.name,
    peerValue: rate(best),
    goal,
  });
}

/** One round of each, then the next round, so that what else the machine does meets all of them alike. */
async function interleave(
  contenders: readonly Contender[],
  scale: Scale,
): Promise<Map<Contender, Throughput>> {
  const { rounds } = scale;
  for (const contender of contenders) await measure(contender, scale.warmUp);
  const seen = new Map<Contender, Throughput[]>(contenders.map((contender) => [contender, []]));
  for (let round = 1; round <= rounds; round++) {
    for (const contender of contenders) {
      const result = await measure(contender, scale);
      seen.get(contender)!.push(result);
      const rates = Object.entries(result).map(([key, rate]) => `${key} ${Math.round(rate)}/s`);
      progress(`${contender.name}, round ${round} of ${rounds}: ${rates.join(", ")}`);
    }
  }
  const medianOf = (results: readonly Throughput[], key: keyof Throughput) =>
    median(results.map((result) => result[key]));
  return new Map(
    [...seen].map(([contender, results]) => [
      contender,
      {
        single: medianOf(results, "single"),
        bulk: medianOf(results, "bulk"),
        drain: medianOf(results, "drain"),
      },
    ]),
  );
}

async function measure(
  contender: Contender,
  { tasks, singles }: Pick<Scale, "tasks" | "singles">,
): Promise<Throughput> {
  await contender.reset();
  const connection = await contender.connect();
  try {
    const single = await rate(singles, async () => {
      for (let n = 0; n < singles; n++) await connection.addOne({ n });
    });
    const bulk = await rate(tasks - singles, async () => {
      for (let n = singles; n < tasks; n += BULK)
        await connection.addMany(payloads(n, Math.min(BULK, tasks - n)));
    });
    await connection.settleDown();
    const drain = await drainRate(connection, tasks);
    const left = await connection.countLeft();
    if (left > 0) throw new Error(`${contender.name} left ${left} of ${tasks} tasks undone`);
    return { single, bulk, drain };
  } finally {
    await connection.close();
  }
}

function payloads(from: number, count: number): Payload[] {
  return Array.from({ length: count }, (_, index) => ({ n: from + index }));
}

async function rate(count: number, work: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return (count / (performance.now() - startedAt)) * 1_000;
}

/** The clock runs from the first handler to the last row that is written down as done: starting up is free. */
async function drainRate(connection: Connection, count: number): Promise<number> {
  const allHandled = Promise.withResolvers<void>();
  let handled = 0;
  let startedAt = 0;
  const timer = setTimeout(
    () => allHandled.reject(new Error(`${handled} of ${count} tasks after ${DRAIN_MAX_MS} ms`)),
    DRAIN_MAX_MS,
  );
  const work = await connection.work(() => {
    if (handled++ === 0) startedAt = performance.now();
    if (handled === count) allHandled.resolve();
  });
  try {
    await allHandled.promise;
  } finally {
    clearTimeout(timer);
    await work.stop();
  }
  return (count / (performance.now() - startedAt)) * 1_000;
}
