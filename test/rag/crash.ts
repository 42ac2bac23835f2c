import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "../../src/clock.ts";
import { isQuarryError, prepareQueue } from "../../src/index.ts";
import { silentLog } from "../../src/log.ts";
import { newMessage } from "../../src/rag/message.ts";
import { openRagQueue } from "../../src/rag/open.ts";
import { ragQueue } from "../../src/rag/queue.ts";
import { readRags } from "../../src/rag/settings.ts";
import { openPipeline } from "../documents/parts.ts";
import { DATABASES } from "../support/databases.ts";
import { type Server, startRedis } from "../support/services.ts";
import type { CrashWorkerOptions } from "./crash-worker.ts";

export interface CrashSize {
  readonly jobs: number;
  readonly kills: number;
  /** Of Redis, by SIGKILL. */
  readonly restarts: number;
  readonly timeoutMs: number;
}

const RAG = "crash_rag";
const WORKERS = 4;
const STALE_MS = 2_000;
/** Every so many files are none that can be read. */
const BAD_EVERY = 20;
const LOOK_MS = 20;
const LOOKS_MAX = 75;

/** Worker processes are killed all the while, and Redis comes and goes: no file is lost, no job settled twice. */
export function testRagCrash(
  size: CrashSize,
  transports: readonly ("Redis" | "SQLite" | "PostgreSQL")[],
): void {
  describe("jobs of RAGs whose workers are killed", () => {
    for (const transport of transports) {
      test(
        `on ${transport}, every file ends in one place and every job is settled once`,
        {
          timeout: size.timeoutMs,
        },
        (t) => run(t, transport, size),
      );
    }
  });
}

async function run(t: TestContext, transport: string, size: CrashSize): Promise<void> {
  const redis = transport === "Redis" ? await startRedis({ quitSignal: "SIGKILL" }) : undefined;
  if (redis) t.after(() => redis.stop());
  const opened = await DATABASES.find(({ name }) => name === (redis ? "SQLite" : transport))!.open();
  const { database, url, folder } = opened;
  const pipeline = await openPipeline(opened);
  const declared = ragQueue({ staleMs: STALE_MS });
  await prepareQueue(database, declared);
  const queue = await openRagQueue({
    ...{ redisUrl: redis?.url, database, queue: declared, ragIds: [RAG], log: silentLog },
  });
  const fleet = new Fleet({ url, folder, redisUrl: redis?.url, rag: RAG, staleMs: STALE_MS });
  t.after(async () => {
    await fleet.end();
    await queue.close();
    await pipeline.close();
    await opened.close();
  });
  const { folders } = readRags({ [RAG]: {} }, { folder, where: "the test", model: "test" }).get(RAG)!;
  await mkdir(folders.incoming, { recursive: true });

  const isBad = (n: number) => n % BAD_EVERY === 7;
  const nameOf = (n: number) => (isBad(n) ? `file-${n}.pdf` : `file-${n}.txt`);
  const textOf = (n: number) => `This is the text of file number ${n}.`;
  const ids: string[] = [];
  for (let n = 0; n < size.jobs; n++) {
    const source_path = join(folders.incoming, nameOf(n));
    await writeFile(source_path, textOf(n));
    const source_type = isBad(n) ? "pdf" : "txt";
    const message = newMessage(
      { rag_id: RAG, source_path, source_type, filename: nameOf(n), max_retries: 1_000 },
      systemClock,
    );
    ids.push(message.job_id);
    await queue.submit(message);
  }
  const finished = async () => {
    const [row] = await database.query(
      "select count(*) as n from rag_jobs where status in ('done', 'failed')",
    );
    return Number(row!.n);
  };
  const isSettled = async () => {
    const counts = await queue.counts().catch((error) => {
      if (isQuarryError(error, "redis_unavailable")) return undefined;
      throw error;
    });
    return counts?.length === 0 && (await finished()) === size.jobs;
  };
  /** So that kills meet jobs in every state; where nothing gets on, they go on all the same. */
  const untilFinished = async (count: number) => {
    for (let looks = 0; looks < LOOKS_MAX && (await finished()) < count; looks++) await sleep(LOOK_MS);
  };

  let kills = 0;
  let restarts = 0;
  while (kills < size.kills) {
    await untilFinished(((kills + 0.5) * size.jobs) / (size.kills + 1));
    await fleet.killOne();
    kills++;
    if (redis && restarts < size.restarts && kills >= ((restarts + 1) * size.kills) / (size.restarts + 1)) {
      await restart(redis);
      restarts++;
    }
  }
  const finishedUnderFire = await finished();
  while (!(await isSettled())) await sleep(100);
  await fleet.stop();
  t.diagnostic(
    JSON.stringify({ jobs: size.jobs, kills, restarts, processes: fleet.started, finishedUnderFire }),
  );

  const numbers = Array.from({ length: size.jobs }, (_, n) => n);
  const good = numbers.filter((n) => !isBad(n)).map(nameOf);
  const bad = numbers.filter(isBad).map(nameOf);
  assert.deepEqual(await readdir(folders.incoming), []);
  assert.deepEqual((await readdir(folders.processed)).toSorted(), good.toSorted());
  assert.deepEqual(
    (await readdir(folders.failed)).toSorted(),
    bad.flatMap((name) => [name, `${name}.error.json`]).toSorted(),
  );
  for (const n of numbers) {
    const where = isBad(n) ? folders.failed : folders.processed;
    assert.equal(await readFile(join(where, nameOf(n)), "utf8"), textOf(n));
    const job = (await queue.read(ids[n]!))!;
    assert.deepEqual([job.status, job.error_code], isBad(n) ? ["failed", "ERR_PDF_INVALID"] : ["done", null]);
  }
  const settled = await lines(join(folder, "settled.log"));
  assert.equal(new Set(settled).size, settled.length, "a job was settled twice");
  const documents = await database.query("select source, count(*) as n from documents group by source");
  assert.equal(documents.length, good.length, "one document for each file");
  assert.ok(documents.every(({ n }) => Number(n) === 1));
  const chunks = await database.query(
    "select content from task_queue_chunk where vector_status = 'completed'",
  );
  assert.deepEqual(
    chunks.map(({ content }) => String(content)).toSorted(),
    numbers
      .filter((n) => !isBad(n))
      .map(textOf)
      .toSorted(),
  );
}

async function restart(redis: Server): Promise<void> {
  await redis.quit();
  await sleep(200);
  await redis.launch();
}

async function lines(path: string): Promise<string[]> {
  if (!existsSync(path)) return [];
  return (await readFile(path, "utf8")).split("\n").filter(Boolean);
}

/** Keeps so many workers alive, whatever happens to them. */
class Fleet {
  readonly #options: CrashWorkerOptions;
  #workers: { readonly child: ChildProcess; readonly started: Promise<unknown> }[] = [];
  started = 0;
  #isClosing = false;
  readonly #casualties: string[] = [];

  constructor(options: CrashWorkerOptions) {
    this.#options = options;
    for (let n = 0; n < WORKERS; n++) this.#spawn();
  }

  #spawn(): void {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const child = fork(join(import.meta.dirname, "crash-worker.ts"), [JSON.stringify(this.#options)], {
      ...{ stdio: ["ignore", "ignore", "pipe", "ipc"], execArgv: [], env },
    });
    let words = "";
    child.stderr!.on("data", (text) => {
      words = (words + text).slice(-2_000);
    });
    this.started++;
    const worker = { child, started: Promise.race([once(child, "message"), once(child, "exit")]) };
    this.#workers.push(worker);
    child.once("exit", (code, signal) => {
      this.#workers = this.#workers.filter((other) => other !== worker);
      if (signal !== "SIGKILL" && code !== 0) this.#casualties.push(`${code} ${signal}: ${words}`);
      if (!this.#isClosing) this.#spawn();
    });
  }

  /** One that is at work: killed while it starts, it would have nothing to lose. */
  async killOne(): Promise<void> {
    const { child } = await Promise.race(
      this.#workers.map(async (worker) => {
        await worker.started;
        await sleep(Math.random() * 150);
        return worker;
      }),
    );
    if (child.exitCode !== null || child.signalCode !== null) return this.killOne();
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  /** Asks them to stop, and sees that they do so by themselves. */
  async stop(): Promise<void> {
    this.#isClosing = true;
    const left = [...this.#workers];
    await Promise.all(left.map(({ started }) => started));
    await Promise.all(
      left.map(async ({ child }) => {
        const ended = once(child, "exit");
        child.kill("SIGTERM");
        await ended;
      }),
    );
    assert.deepEqual(this.#casualties, [], "a worker ended by itself");
  }

  async end(): Promise<void> {
    this.#isClosing = true;
    await Promise.all(
      [...this.#workers].map(async ({ child }) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const ended = once(child, "exit");
        child.kill("SIGKILL");
        await ended;
      }),
    );
  }
}
