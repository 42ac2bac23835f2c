import { createClient } from "@redis/client";
import { type Connection, type Contender, loadPeer, type Payload } from "../queue/contender.ts";
import { emptied } from "./quarry.ts";

interface BullJob {
  readonly name: string;
  readonly data: object;
}

/** What is used of BullMQ's API. */
interface BullMq {
  readonly Queue: new (
    name: string,
    options: { connection: unknown },
  ) => {
    add(name: string, data: object): Promise<unknown>;
    addBulk(jobs: readonly BullJob[]): Promise<unknown>;
    getJobCounts(...states: string[]): Promise<Record<string, number>>;
    close(): Promise<void>;
  };
  readonly Worker: new (
    name: string,
    handle: (job: { data: { bench: Payload } }) => Promise<void>,
    options: { connection: unknown; concurrency: number },
  ) => { waitUntilReady(): Promise<unknown>; close(): Promise<void> };
}

const NAME = "bench";
const UNFINISHED = ["waiting", "active", "delayed", "prioritized", "paused", "failed"];

/** With the client that Quarry has too, which it takes as it is; with ioredis it is slower. */
export function bullmq(url: string, concurrency: number): Contender {
  return {
    name: `BullMQ (concurrency ${concurrency})`,
    reset: () => emptied(url),
    connect: () => connection(url, concurrency),
  };
}

async function connection(url: string, concurrency: number): Promise<Connection> {
  const { Queue, Worker } = await loadPeer<BullMq>("../node_modules/bullmq/dist/cjs/index.js");
  const clients: { destroy(): void; isOpen: boolean }[] = [];
  const connect = async () => {
    const client = createClient({ url });
    client.on("error", () => undefined);
    await client.connect();
    clients.push(client);
    return client;
  };
  const queue = new Queue(NAME, { connection: await connect() });
  return {
    addOne: (payload) => queue.add("job", dataOf(payload)),
    addMany: async (payloads) => {
      for (let start = 0; start < payloads.length; start += 1_000)
        await queue.addBulk(
          payloads.slice(start, start + 1_000).map((payload) => ({ name: "job", data: dataOf(payload) })),
        );
    },
    settleDown: async () => undefined,
    work: async (handle) => {
      const options = { connection: await connect(), concurrency };
      const worker = new Worker(NAME, async ({ data }) => handle(data.bench), options);
      await worker.waitUntilReady();
      return { stop: () => worker.close() };
    },
    countLeft: async () => {
      const counts = await queue.getJobCounts(...UNFINISHED);
      return Object.values(counts).reduce((sum, count) => sum + count, 0);
    },
    close: async () => {
      await queue.close();
      for (const client of clients) if (client.isOpen) client.destroy();
    },
  };
}

/** As much as a message of the contract says. */
function dataOf(bench: Payload): object {
  const filename = `document-${bench.n}.pdf`;
  return {
    rag_id: "policies_rag",
    source_path: `/app/data/sources/policies_rag/incoming/${filename}`,
    ...{ source_type: "pdf", filename, submitted_by: "cli", retry_count: 0, max_retries: 3 },
    options: { reindex: false, skip_validation: false, preserve_metadata: true },
    bench,
  };
}
