import { join } from "node:path";
import { type Database, openDatabase } from "../../src/index.ts";
import type { Figure } from "../figures.ts";
import { removeSqliteFile } from "./quarry.ts";
import type { Scene } from "./scene.ts";

/** A database that a measure of Quarry alone is taken on. */
export interface Place {
  readonly name: "PostgreSQL" | "SQLite";
  readonly url: string;
  readonly database: Database;
}

/** SQLite with `synchronous` NORMAL: a sync to disk costs more than all else and would hide any growth. */
export async function onEachDatabase(
  scene: Pick<Scene, "postgresUrl" | "folder">,
  measure: (place: Place) => Promise<Figure[]>,
): Promise<Figure[]> {
  const path = join(scene.folder, "growth.db");
  await removeSqliteFile(path);
  const figures: Figure[] = [];
  for (const [name, url] of [["PostgreSQL", scene.postgresUrl] as const, ["SQLite", path] as const]) {
    const database = openDatabase(url, { synchronous: "normal" });
    try {
      figures.push(...(await measure({ name, url, database })));
    } finally {
      await database.close();
    }
  }
  return figures;
}

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

export function shortCount(count: number): string {
  return count >= 1_000_000 ? `${count / 1_000_000}M` : count >= 10_000 ? `${count / 1_000}k` : `${count}`;
}
