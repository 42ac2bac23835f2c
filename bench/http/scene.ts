import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { createBenchDatabase } from "../postgres.ts";
import type { Pace } from "./model.ts";

/** How much is measured. */
export interface Scale {
  readonly rounds: number;
  /** Rounds of drains: each contender begins as often as the others. */
  readonly drains: number;
  /** How long each kind of request is made in a round. */
  readonly requestMs: number;
  /** Jobs of one drain through the lane. */
  readonly jobs: number;
  /** How the model answers a call of 50 texts. */
  readonly paces: readonly Pace[];
  /** Jobs that a worker elsewhere takes in a round. */
  readonly remoteJobs: number;
}

/** Where measures take place. */
export interface Scene {
  /** A PostgreSQL server, on which every contender gets databases of its own. */
  readonly postgresUrl: string;
  /** A folder on a real disk. */
  readonly folder: string;
  readonly scale: Scale;
}

export const FULL_SCALE: Scale = {
  rounds: 3,
  drains: 6,
  requestMs: 3_000,
  jobs: 20_000,
  paces: [
    { callMs: 5, isOneByOne: true },
    { callMs: 5, isOneByOne: false },
    { callMs: 50, isOneByOne: false },
  ],
  remoteJobs: 5_000,
};

export const QUICK_SCALE: Scale = {
  rounds: 1,
  drains: 1,
  requestMs: 200,
  jobs: 500,
  paces: [
    { callMs: 5, isOneByOne: true },
    { callMs: 5, isOneByOne: false },
  ],
  remoteJobs: 300,
};

export const DATABASE_NAMES = ["SQLite", "PostgreSQL"] as const;
export type DatabaseName = (typeof DATABASE_NAMES)[number];

/** An empty database that nobody else uses, with a folder beside it. */
export interface Place {
  readonly url: string;
  readonly folder: string;
  remove(): Promise<void>;
}

let placesMade = 0;

export async function makePlace(scene: Scene, name: DatabaseName): Promise<Place> {
  const folder = join(scene.folder, `place-${++placesMade}`);
  await mkdir(folder, { recursive: true });
  const removeFolder = () => rm(folder, { recursive: true, force: true });
  if (name === "SQLite") return { url: join(folder, "bench.db"), folder, remove: removeFolder };
  const { url, drop } = await createBenchDatabase(scene.postgresUrl);
  return {
    url,
    folder,
    remove: async () => {
      await drop();
      await removeFolder();
    },
  };
}

export function isPostgres(url: string): boolean {
  return url.startsWith("postgres");
}
