import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "../../src/clock.ts";
import { Documents } from "../../src/documents/documents.ts";
import { documentLanes } from "../../src/documents/lanes.ts";
import { SearchableDocuments } from "../../src/documents/searchable.ts";
import { Crew, openDatabase } from "../../src/index.ts";
import { silentLog } from "../../src/log.ts";
import type { LaneStore } from "../../src/queue/lane-store.ts";
import { ragLane } from "../../src/rag/lane.ts";
import { openRagQueue } from "../../src/rag/open.ts";
import { type RagPayload, type RagQueue, ragQueue } from "../../src/rag/queue.ts";
import { readRags } from "../../src/rag/settings.ts";
import { openPipeline } from "../documents/parts.ts";

export interface CrashWorkerOptions {
  readonly url: string;
  readonly folder: string;
  readonly redisUrl: string | undefined;
  readonly rag: string;
  readonly staleMs: number;
}

const EMBEDDING_MS = 5;

/** A process that works on the jobs of a RAG until somebody ends it, and writes down what it settled. */
const options = JSON.parse(process.argv[2]!) as CrashWorkerOptions;
const { url, folder, redisUrl, staleMs } = options;
const database = openDatabase(url);
const pipeline = await openPipeline({ database, url, folder, close: async () => undefined });
// So that there is always something under way when it dies.
pipeline.calls.before = async (step) => {
  if (step === "embed") await sleep(EMBEDDING_MS);
};
// Each death costs an attempt of whatever was held then.
const documents = new Documents({ ...pipeline.parts, attemptsMax: 100, fileBytesMax: 1_000_000 });
const opened = await openRagQueue({
  ...{ redisUrl, database, queue: ragQueue({ staleMs }), ragIds: [options.rag], log: silentLog },
});
const rags = readRags({ [options.rag]: {} }, { folder, where: "the test", model: "test" });
const queue: RagQueue = new Proxy(opened, {
  get: (target, name) => (name === "store" ? recording(target.store) : bound(target, name)),
});
const searchable = new SearchableDocuments(database);
const parts = { database, documents, searchable, queue, rags, clock: systemClock, log: silentLog };
const crew = await new Crew({
  database,
  lanes: [ragLane({ ...parts, fileBytesMax: 1_000_000, pollMs: 100 }), ...documentLanes(pipeline.parts)],
  ...{ heartbeatMs: 400, checkEveryMs: 400, staleMs, pollMs: 100, graceMs: 2_000 },
}).start();
process.once("SIGTERM", async () => {
  await crew.stop();
  await opened.close();
  await pipeline.close();
  await database.close();
  process.exit(0);
});
// Not before it can be asked to stop.
process.send?.("started");

/** Every settlement that was accepted as the job's end. */
function recording(store: LaneStore<RagPayload>): LaneStore<RagPayload> {
  return new Proxy(store, {
    get: (target, name) => {
      if (name !== "settle") return bound(target, name);
      const settle: typeof store.settle = async (settlements, how) => {
        const verdicts = await target.settle(settlements, how);
        for (const [index, verdict] of verdicts.entries())
          if ((verdict === "done" || verdict === "failed") && !how?.isRepeat)
            appendFileSync(join(folder, "settled.log"), `${settlements[index]!.claim.key}\n`);
        return verdicts;
      };
      return settle;
    },
  });
}

function bound<T extends object>(target: T, name: string | symbol): unknown {
  const value = target[name as keyof T];
  return typeof value === "function" ? value.bind(target) : value;
}
