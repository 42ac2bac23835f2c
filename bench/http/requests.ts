import { compareRates, compareTimes, type Figure, median } from "../figures.ts";
import { progress } from "../progress.ts";
import { DATABASE_NAMES, type DatabaseName, makePlace, type Scene } from "./scene.ts";
import { runApart, type ServerOrder, startServer } from "./serving.ts";

/** What a process that makes requests is told. */
export interface LoadOrder {
  readonly url: string;
  readonly connections: number;
  readonly forMs: number;
}

export interface Load {
  readonly perSecond: number;
  readonly p99Ms: number;
}

/** One job created, and one that waits read by its id. */
export type LoadReport = Readonly<Record<"post" | "get", Load>>;

const CONNECTIONS = 32;
const BARE = "bare Hono route";
const TITLES = { post: "POST /jobs/embedding", get: "GET /jobs/embedding/{id}" };
const NOTES = {
  post: "one insert of a key and a text; no key to check, no limits, schema, headers, metrics, twin, turn or full job in the answer",
  get: "one select of a key and a text; Quarry looks among the jobs and the dead letters, and answers with 22 columns",
};

/** Requests per second of a server in its own process, asked by another over connections that are kept. */
export async function requestRates(scene: Scene): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const database of DATABASE_NAMES) figures.push(...(await ratesOn(scene, database)));
  return figures;
}

async function ratesOn(scene: Scene, database: DatabaseName): Promise<Figure[]> {
  const seen: Record<ServerOrder["kind"], LoadReport[]> = { quarry: [], bare: [] };
  const { rounds } = scene.scale;
  for (let round = 1; round <= rounds; round++) {
    for (const kind of ["quarry", "bare"] as const) {
      const report = await askedBy(scene, database, kind);
      seen[kind].push(report);
      const rates = Object.entries(report).map(
        ([what, { perSecond, p99Ms }]) => `${what} ${Math.round(perSecond)}/s, p99 ${p99Ms.toFixed(1)} ms`,
      );
      progress(`${database}, ${kind}, round ${round} of ${rounds}: ${rates.join("; ")}`);
    }
  }
  return (["post", "get"] as const).flatMap((what) => {
    const medianOf = (kind: ServerOrder["kind"], which: keyof Load) =>
      median(seen[kind].map((report) => report[what][which]));
    const measure = `${database} ${TITLES[what]}, ${CONNECTIONS} connections`;
    return [
      compareRates({
        measure,
        unit: "requests/s",
        quarry: medianOf("quarry", "perSecond"),
        peer: BARE,
        peerValue: medianOf("bare", "perSecond"),
        goal: null,
        note: NOTES[what],
      }),
      compareTimes({
        measure: `${measure}, p99`,
        unit: "ms",
        quarry: medianOf("quarry", "p99Ms"),
        peer: BARE,
        peerValue: medianOf("bare", "p99Ms"),
        goal: null,
      }),
    ];
  });
}

/** A fresh server on an empty database every time, so that no round meets a larger table than another. */
async function askedBy(scene: Scene, database: DatabaseName, kind: ServerOrder["kind"]): Promise<LoadReport> {
  const place = await makePlace(scene, database);
  try {
    const server = await startServer(kind, place);
    try {
      const order: LoadOrder = {
        url: server.url,
        connections: CONNECTIONS,
        forMs: scene.scale.requestMs,
      };
      return await runApart<LoadReport>("./load-process.ts", order);
    } finally {
      await server.stop();
    }
  } finally {
    await place.remove();
  }
}
