import { join } from "node:path";
import {
  createWorker,
  type Database,
  defineLane,
  migrate,
  openDatabase,
  prepareQueue,
  readMigrations,
} from "../../src/index.ts";
import { silentLog } from "../../src/log.ts";
import { type JobMessage, newMessage } from "../../src/rag/message.ts";
import { ragQueue } from "../../src/rag/queue.ts";
import { RedisLink } from "../../src/rag/redis-link.ts";
import { openRedisQueue } from "../../src/rag/redis-queue.ts";
import type { Connection, Contender, Payload } from "../queue/contender.ts";
import { removeSqliteFile } from "../queue/quarry.ts";

const STALE_MS = 120_000;

/** The real lane, with its ledger in an embedded database; jobs are pushed as a foreign producer pushes them. */
export function quarryRag({ url, folder }: { url: string; folder: string }): Contender {
  const path = join(folder, "ledger.db");
  return {
    name: "quarry",
    reset: async () => {
      await emptied(url);
      await removeSqliteFile(path);
      const database = openDatabase(path);
      await migrate(database, readMigrations(join(import.meta.dirname, "../../migrations/sqlite")));
      await prepareQueue(database, ragQueue({ staleMs: STALE_MS }));
      await database.close();
    },
    connect: async () => connection(url, openDatabase(path)),
  };
}

function connection(url: string, database: Database): Connection {
  const queue = ragQueue({ staleMs: STALE_MS });
  const rag = openRedisQueue({ url, database, queue });
  const producer = new RedisLink({ url, log: silentLog });
  const push = (payloads: readonly Payload[]) =>
    producer.command("LPUSH", "rag:ingest:queue", ...payloads.map((payload) => messageOf(payload, database)));
  return {
    addOne: (payload) => push([payload]),
    addMany: async (payloads) => {
      for (let start = 0; start < payloads.length; start += 1_000)
        await push(payloads.slice(start, start + 1_000));
    },
    settleDown: async () => undefined,
    work: async (handle) => {
      const lane = defineLane({
        ...{ queue, store: rag.store },
        handle: ({ row }) => handle((row.job as JobMessage & { bench: Payload }).bench),
      });
      return createWorker({ database, lanes: [lane] }).start();
    },
    countLeft: async () => (await rag.counts()).length,
    close: async () => {
      await producer.close();
      await rag.close();
      await database.close();
    },
  };
}

function messageOf(payload: Payload, { clock }: Database): string {
  const filename = `document-${payload.n}.pdf`;
  const source_path = `/app/data/sources/policies_rag/incoming/${filename}`;
  const message = newMessage({ rag_id: "policies_rag", source_path, source_type: "pdf", filename }, clock);
  return JSON.stringify({ ...message, bench: payload });
}

export async function emptied(url: string): Promise<void> {
  const link = new RedisLink({ url, log: silentLog });
  await link.command("FLUSHALL");
  await link.close();
}
