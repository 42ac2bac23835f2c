import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { FunctionTask } from "../../src/agents/registry.ts";
import { exponential, openDatabase, QuarryError } from "../../src/index.ts";
import { openOffice } from "./office.ts";

export interface LockWorkerOptions {
  readonly url: string;
  /** Where a file stands for each entity that somebody works for. */
  readonly folder: string;
}

/** Every so many tasks can never succeed. */
export const FATAL_EVERY = 41;
const FAILS = 0.1;
const TAKES_MS = 25;

/** A process that works on tasks, and sees for itself that nobody else works for the same entity. */
async function main({ url, folder }: LockWorkerOptions): Promise<void> {
  const database = openDatabase(url);
  const office = await openOffice(
    { database },
    // A long lease: only a process that is gone loses its tasks. Short waits, for the sake of those who wait for the test.
    { staleMs: 120_000, heartbeatMs: 200, retry: exponential({ baseMs: 20, capMs: 200 }) },
  );
  office.step = async (task) => {
    const lock = join(folder, task.entityId);
    await take(lock);
    try {
      await sleep(Math.random() * TAKES_MS);
      if (task.payload.n! % FATAL_EVERY === 0) throw new QuarryError("invalid_input", "never");
      if (Math.random() < FAILS) throw new Error("not now");
      return { also: (transaction) => note(task, transaction) };
    } finally {
      await rm(lock);
    }
  };
  const crew = await office.work();
  process.once("SIGTERM", async () => {
    await crew.stop();
    await database.close();
    process.disconnect();
  });
  process.send!("started");
}

/** A file says who works for the entity. One that a killed process left behind counts for nothing. */
async function take(lock: string): Promise<void> {
  try {
    await writeFile(lock, String(process.pid), { flag: "wx" });
  } catch {
    const holder = Number(await readFile(lock, "utf8").catch(() => Number.NaN));
    // A process may have been killed before it had written its id.
    if (holder > 0 && isRunning(holder)) {
      process.send!(`process ${process.pid} found process ${holder} at work for ${lock}`);
      throw new QuarryError("invalid_input", "two at once");
    }
    await writeFile(lock, String(process.pid));
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function note(
  { taskId, entityId, payload }: FunctionTask<{ n?: number | undefined }>,
  transaction: { query(sql: string): Promise<unknown> },
): Promise<void> {
  await transaction.query(
    `insert into effects (task_id, entity_id, n) values ('${taskId}', '${entityId}', ${payload.n})`,
  );
}

if (process.argv[1] === import.meta.filename) await main(JSON.parse(process.argv[2]!));
