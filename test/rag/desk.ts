import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { documentLanes } from "../../src/documents/lanes.ts";
import { SearchableDocuments } from "../../src/documents/searchable.ts";
import { Crew, prepareQueue } from "../../src/index.ts";
import { silentLog } from "../../src/log.ts";
import type { RagParts } from "../../src/rag/handle.ts";
import { RagJobs } from "../../src/rag/jobs.ts";
import { ragLane } from "../../src/rag/lane.ts";
import { type JobMessage, newMessage } from "../../src/rag/message.ts";
import { openRagQueue } from "../../src/rag/open.ts";
import { type JobStatus, type RagQueue, ragQueue } from "../../src/rag/queue.ts";
import { type Rag, type RagSettings, readRags } from "../../src/rag/settings.ts";
import { openPipeline, type Pipeline, until } from "../documents/parts.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import { freshRedis, type TestRedis } from "../support/redis.ts";

export const RAG = "policies_rag";
export const STALE_MS = 2_000;

export interface Transport {
  readonly name: string;
  readonly open: () => Promise<TestDatabase>;
  readonly hasRedis: boolean;
}

/** Every way in which jobs are queued, on real servers. With Redis, the database holds the ledger. */
export const TRANSPORTS: readonly Transport[] = [
  ...DATABASES.map((database) => ({ ...database, hasRedis: false })),
  { ...DATABASES[0]!, name: "Redis", hasRedis: true },
];

/** A RAG with its folders, its queue, and a pipeline whose readers and models only count. */
export interface Desk {
  readonly opened: TestDatabase;
  /** Where the jobs are queued, if it is Redis. */
  readonly redis: TestRedis | undefined;
  readonly pipeline: Pipeline;
  readonly queue: RagQueue;
  readonly jobs: RagJobs;
  readonly rag: Rag;
  readonly parts: RagParts;
  /** Puts a file into incoming (or another folder of the RAG). Returns its path. */
  write(name: string, content: string | Uint8Array): Promise<string>;
  /** As a producer would make it; the file may be missing. */
  message(name: string, more?: Partial<JobMessage>): JobMessage;
  /** Runs every lane; with other parts, if something is to go wrong. */
  work(other?: Partial<RagParts>, lane?: { concurrency?: number }): Promise<Crew>;
  /** As a foreign producer does; where there is no Redis, as any other. */
  push(message: JobMessage): Promise<void>;
  /** Submits, and waits until the job is done or has failed. */
  run(message: JobMessage): Promise<JobStatus>;
  finished(jobId: string): Promise<JobStatus>;
  /** What lies in one of the RAG's folders. */
  files(which: "incoming" | "processed" | "failed"): Promise<string[]>;
  errorRecord(name: string): Promise<Record<string, unknown>>;
  /** Sources and texts of the documents that can be searched. */
  texts(): Promise<string[]>;
  close(): Promise<void>;
}

export async function openDesk(
  { open, hasRedis }: Transport,
  settings: RagSettings[string] = {},
): Promise<Desk> {
  const opened = await open();
  const { database } = opened;
  const pipeline = await openPipeline(opened);
  const redis = hasRedis ? await freshRedis() : undefined;
  const declared = ragQueue({ staleMs: STALE_MS });
  await prepareQueue(database, declared);
  const queue = await openRagQueue({
    ...{ redisUrl: redis?.url, database, queue: declared, ragIds: [RAG], log: silentLog },
  });
  const rags = readRags({ [RAG]: settings }, { folder: opened.folder, where: "the test", model: "test" });
  const rag = rags.get(RAG)!;
  await mkdir(rag.folders.incoming, { recursive: true });
  const { documents } = pipeline;
  const jobs = new RagJobs({ queue, rags, clock: systemClock });
  const parts: RagParts = {
    ...{ database, rags, queue, documents, clock: systemClock, log: silentLog },
    searchable: new SearchableDocuments(database),
    fileBytesMax: 1_000_000,
  };
  const crews: Crew[] = [];
  const desk: Desk = {
    ...{ opened, redis, pipeline, queue, jobs, rag, parts },
    write: async (name, content) => {
      const path = join(rag.folders.incoming, name);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, content);
      return path;
    },
    message: (name, more = {}) => ({
      ...newMessage(
        {
          rag_id: RAG,
          source_path: join(rag.folders.incoming, name),
          source_type: name.split(".").at(-1)!,
          filename: name.split("/").at(-1)!,
        },
        systemClock,
      ),
      ...more,
    }),
    work: async (other = {}, lane = {}) => {
      const ours = { ...ragLane({ ...parts, ...other, pollMs: 50 }), ...lane };
      const lanes = [ours, ...documentLanes(pipeline.parts)];
      const crew = await new Crew({
        ...{ database, lanes },
        ...{ heartbeatMs: 500, checkEveryMs: 300, staleMs: STALE_MS, pollMs: 50, graceMs: 2_000 },
      }).start();
      crews.push(crew);
      return crew;
    },
    push: async (message) => {
      if (redis) await redis.command("LPUSH", "rag:ingest:queue", JSON.stringify(message));
      else await queue.submit(message);
    },
    run: async (message) => {
      await queue.submit(message);
      return desk.finished(message.job_id);
    },
    finished: async (jobId) => {
      // What was only pushed is not known before it is taken.
      await until(async () => (await queue.read(jobId)) !== undefined);
      return jobs.finished(jobId, AbortSignal.timeout(60_000));
    },
    files: async (which) => (await readdir(rag.folders[which]).catch(() => [])).toSorted(),
    errorRecord: async (name) => JSON.parse(await readFile(join(rag.folders.failed, name), "utf8")),
    texts: async () => {
      const rows = await database.query(
        "select c.content from task_queue_chunk as c join documents as d on d.id = c.document_id where d.replaced_by is null and c.vector_status = 'completed' order by c.content",
      );
      return rows.map((row) => String(row.content));
    },
    close: async () => {
      for (const crew of crews) await crew.stop();
      await queue.close();
      await redis?.close();
      await pipeline.close();
      await opened.close();
    },
  };
  return desk;
}
