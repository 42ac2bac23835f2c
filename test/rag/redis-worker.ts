import { openDatabase } from "../../src/index.ts";
import { ragQueue } from "../../src/rag/queue.ts";
import { openRedisQueue } from "../../src/rag/redis-queue.ts";

/** A process that claims what there is, says so, and is then killed. */
const [url, databasePath, staleMs] = process.argv.slice(2) as [string, string, string];
const database = openDatabase(databasePath);
const { store } = openRedisQueue({ url, database, queue: ragQueue({ staleMs: Number(staleMs) }) });
const claims = await store.claim({ worker: `worker-${process.pid}`, limit: 100 });
process.stdout.write(`${claims.map(({ key }) => key).join(" ")}\n`);
setInterval(() => undefined, 1_000);
