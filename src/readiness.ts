import { statfs } from "node:fs/promises";
import type { Database } from "./database/database.ts";
import { messageOf, QuarryError } from "./errors.ts";

export interface Readiness {
  readonly isReady: boolean;
  readonly checks: readonly { readonly name: string; readonly isOk: boolean; readonly problem?: string }[];
}

const ANSWER_WITHIN_MS = 3_000;

/** Whether work handed in now would be kept: the database answers, and there is room on the disk. */
export async function checkReadiness(parts: {
  database: Database;
  dataFolder: string;
  diskFreeMbMin: number;
}): Promise<Readiness> {
  const checks = await Promise.all([
    check("database", () => answers(parts.database)),
    check("disk", () => hasRoom(parts.dataFolder, parts.diskFreeMbMin)),
  ]);
  return { isReady: checks.every(({ isOk }) => isOk), checks };
}

async function check(name: string, test: () => Promise<void>) {
  try {
    await test();
    return { name, isOk: true };
  } catch (error) {
    return { name, isOk: false, problem: messageOf(error) };
  }
}

async function answers(database: Database): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(
    () =>
      reject(
        new QuarryError("database_unavailable", `it did not answer within ${ANSWER_WITHIN_MS / 1000} s`),
      ),
    ANSWER_WITHIN_MS,
  );
  try {
    await Promise.race([database.query({ name: "ready", sql: "select 1 as one", isUrgent: true }), promise]);
  } finally {
    clearTimeout(timer);
  }
}

async function hasRoom(folder: string, freeMbMin: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const freeMb = Math.floor((bavail * bsize) / 1_048_576);
  if (freeMb >= freeMbMin) return;
  throw new QuarryError(
    "disk_full",
    `${freeMb} MB are free where ${folder} is: make room, or lower QUARRY_DISK_FREE_MB_MIN (${freeMbMin})`,
  );
}
