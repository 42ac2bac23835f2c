import type { Database } from "../database/database.ts";
import type { Log } from "../log.ts";
import type { Queue } from "../queue/declaration.ts";
import { openDatabaseQueue } from "./database-queue.ts";
import type { RagPayload, RagQueue } from "./queue.ts";

/** Over Redis where one is configured, else over the database. */
export async function openRagQueue(parts: {
  readonly redisUrl: string | undefined;
  readonly database: Database;
  readonly queue: Queue<RagPayload>;
  readonly ragIds: readonly string[];
  readonly log: Log;
}): Promise<RagQueue> {
  const { redisUrl: url, database, queue, ragIds, log } = parts;
  if (url === undefined) return openDatabaseQueue({ database, queue });
  // Its client takes a tenth of a second to load.
  const { openRedisQueue } = await import("./redis-queue.ts");
  return openRedisQueue({ url, database, queue, ragIds, log });
}
