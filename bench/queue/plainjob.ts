import { DatabaseSync, type StatementSync } from "node:sqlite";
import { type Contender, loadPeer, type Payload } from "./contender.ts";
import { removeSqliteFile } from "./quarry.ts";

/** What is used of plainjob. */
interface Plainjob {
  defineQueue(options: { connection: PlainjobConnection; logger: PlainjobLogger }): PlainjobQueue;
  defineWorker(
    type: string,
    processor: (job: { data: string }) => void,
    options: { queue: PlainjobQueue; logger: PlainjobLogger },
  ): { start(): Promise<void>; stop(): Promise<void> };
}

interface PlainjobQueue {
  add(type: string, data: Payload): unknown;
  addMany(type: string, data: readonly Payload[]): unknown;
  close(): void;
}

interface PlainjobConnection {
  readonly driver: "better-sqlite3";
  readonly filename: string;
  pragma(text: string): void;
  exec(sql: string): void;
  prepare(sql: string): StatementSync;
  transaction(work: Work): Work & { immediate: Work };
  close(): void;
}

type Work = (...args: unknown[]) => unknown;
type PlainjobLogger = Record<"error" | "warn" | "info" | "debug", () => void>;

const TYPE = "noop";
const silent = () => undefined;
const logger: PlainjobLogger = { error: silent, warn: silent, info: silent, debug: silent };

export function plainjob(
  name: string,
  settings: { path: string; synchronous: "full" | "normal" },
): Contender {
  return {
    name,
    reset: () => removeSqliteFile(settings.path),
    connect: async () => {
      const { defineQueue, defineWorker } = await loadPeer<Plainjob>("plainjob");
      const database = new DatabaseSync(settings.path);
      const queue = defineQueue({ connection: connectionOver(database, settings.path), logger });
      // It chooses NORMAL for itself while it opens.
      database.exec(`pragma synchronous = ${settings.synchronous}`);
      return {
        addOne: async (payload) => queue.add(TYPE, payload),
        addMany: async (payloads) => queue.addMany(TYPE, payloads),
        settleDown: async () => database.exec("pragma wal_checkpoint(truncate)"),
        work: async (handle) => {
          const worker = defineWorker(TYPE, (job) => handle(JSON.parse(job.data)), { queue, logger });
          const ended = worker.start();
          return {
            stop: async () => {
              await worker.stop();
              await ended;
            },
          };
        },
        countLeft: async () => {
          const row = database.prepare("select count(*) as count from plainjob_jobs where status <> 2").get();
          return Number(row?.count);
        },
        close: async () => queue.close(),
      };
    },
  };
}

/** plainjob asks for better-sqlite3; it runs on the driver that Quarry uses, so that only the queues differ. */
function connectionOver(database: DatabaseSync, filename: string): PlainjobConnection {
  const statement = (sql: string) => {
    const prepared = database.prepare(sql);
    return () => prepared.run();
  };
  const [begin, beginImmediate] = [statement("begin"), statement("begin immediate")];
  const [commit, rollback] = [statement("commit"), statement("rollback")];
  const wrapped =
    (work: Work, start: () => void): Work =>
    (...args) => {
      start();
      try {
        const result = work(...args);
        commit();
        return result;
      } catch (error) {
        rollback();
        throw error;
      }
    };
  return {
    driver: "better-sqlite3",
    filename,
    pragma: (text) => database.exec(`pragma ${text}`),
    exec: (sql) => database.exec(sql),
    prepare: (sql) => database.prepare(sql),
    transaction: (work) => Object.assign(wrapped(work, begin), { immediate: wrapped(work, beginImmediate) }),
    close: () => database.close(),
  };
}
