import { setTimeout as pause } from "node:timers/promises";
import { type Database, openDatabase, openQuarry, type Phase, type Quarry } from "../../src/index.ts";
import type { Amounts, Contender } from "./contender.ts";

export interface QuarryContender extends Contender {
  readonly quarry: Quarry;
  /** Another connection, to look without standing in the way. */
  readonly database: Database;
  amounts(): Promise<Amounts>;
}

/** The lanes up to the point where chunks can be found by their vector and their words. */
const LANES_TO_SEARCH = [
  "items",
  "documents.split",
  "pages.ocr",
  "pages.scan",
  "pages.chunk",
  "chunks.vector",
];
const LOOK_EVERY_MS = 50;

/** Quarry as a program opens it, on an embedded database. `upTo` "vector" leaves out the graph. */
export async function openQuarryContender(options: {
  readonly name: string;
  readonly folder: string;
  readonly upTo: Exclude<Phase, "ocr">;
}): Promise<QuarryContender> {
  const quarry = await openQuarry({ dataFolder: options.folder, logLevel: "error" });
  const crew = await quarry.work(options.upTo === "vector" ? { lanes: LANES_TO_SEARCH } : {});
  const database = openDatabase(quarry.settings.databaseUrl);
  return {
    name: options.name,
    quarry,
    database,
    take: async (paths) => {
      const { items, refused } = await quarry.ingest(paths);
      if (refused.length > 0) throw new Error(`not taken: ${JSON.stringify(refused)}`);
      const { failed } = await quarry.queue.finished(items.map((item) => item.queue_id));
      if (failed > 0) throw new Error(`${failed} files have failed`);
      while (!(await isDone(database, options.upTo))) await pause(LOOK_EVERY_MS);
    },
    amounts: async () => {
      const { documents, ocr, vector } = await quarry.documents.progress();
      return { documents, pages: ocr.total, chunks: vector.total };
    },
    close: async () => {
      await crew.stop();
      await database.close();
      await quarry.close();
    },
  };
}

async function isDone(database: Database, phase: Exclude<Phase, "ocr">): Promise<boolean> {
  const status = `${phase}_index_status`;
  const [row] = await database.query(
    `select sum(${status} <> 'completed') as open, sum('failed' in (ocr_status, ${status})) as failed from documents`,
  );
  if (Number(row!.failed) > 0) throw new Error(`${row!.failed} documents have failed`);
  return Number(row!.open) === 0;
}
