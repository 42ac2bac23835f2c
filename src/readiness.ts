import { statfs } from "node:fs/promises";
import type { Database } from "./database/database.ts";
import { type ErrorCode, isQuarryError, messageOf, QuarryError } from "./errors.ts";
import { orAway } from "./mounts.ts";

export interface Readiness {
  readonly isReady: boolean;
  readonly checks: readonly ReadinessCheck[];
}

interface ReadinessCheck {
  readonly name: string;
  readonly isOk: boolean;
  readonly problem?: string;
  readonly code?: ErrorCode;
}

const ANSWER_WITHIN_MS = 3_000;

/** Whether work handed in now would be kept: the database answers, and there is room on the disk. */
export async function checkReadiness(parts: {
  database: Database;
  dataFolder: string;
  diskFreeMbMin: number;
}): Promise<Readiness> {
  const checks = await Promise.all([
    check("database", () => answers(parts.database), "database_unavailable"),
    check("disk", () => hasRoom(parts.dataFolder, parts.diskFreeMbMin)),
  ]);
  return { isReady: checks.every(({ isOk }) => isOk), checks };
}

/** `as`: however it fails, that is what it is for who asks. */
async function check(name: string, test: () => Promise<void>, as?: ErrorCode): Promise<ReadinessCheck> {
  try {
    await test();
    return { name, isOk: true };
  } catch (error) {
    const code = as ?? (isQuarryError(error) ? error.code : "internal");
    return { name, isOk: false, problem: messageOf(error), code };
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
  const { bavail, bsize } = await statfs(folder).catch((cause) => {
    if (cause.code !== "ENOENT") throw orAway(cause, folder);
    const said = `the data folder ${folder} is gone: put it back where it was, or start the process again to have a new one made`;
    throw new QuarryError("store_unavailable", said, { cause });
  });
  const freeMb = Math.floor((bavail * bsize) / 1_048_576);
  if (freeMb >= freeMbMin) return;
  throw new QuarryError(
    "disk_full",
    `${freeMb} MB are free where ${folder} is: make room, or lower QUARRY_DISK_FREE_MB_MIN (${freeMbMin})`,
  );
}
