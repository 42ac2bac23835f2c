import { randomBytes } from "node:crypto";
import { link, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { ErrorFields } from "./errors.ts";
import { ERROR_RECORD_ENDING, isThere } from "./filenames.ts";
import { shortHash, syncFolder } from "./moves.ts";

/** What is written beside a file that failed. */
export interface ErrorRecord extends ErrorFields {
  readonly job_id: string;
  readonly rag_id: string;
  readonly filename: string;
  readonly status: "failed";
  readonly submitted_at: string;
  readonly started_at: string | null;
  readonly failed_at: string;
  readonly retry_count: number;
  readonly max_retries: number;
}

/**
 * Writes `<filename>.error.json`. It is whole when it can be seen; a record of the same job is replaced, one of another
 * job that has the name by now stays, and this one gets the job's id into its name.
 */
export async function writeErrorRecord(
  folder: string,
  filename: string,
  record: ErrorRecord,
): Promise<string> {
  const own = `.${shortHash(record.job_id)}.`;
  // What a worker left behind that died in here.
  for (const name of await readdir(folder))
    if (name.startsWith(own)) await rm(join(folder, name), { force: true });
  const temporary = join(folder, `${own}${randomBytes(8).toString("hex")}.part`);
  const file = await open(temporary, "wx");
  try {
    await file.writeFile(`${JSON.stringify(record, null, 2)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  try {
    const path = await nameFor(folder, filename, record.job_id);
    if (path.isOwn) await rename(temporary, path.name);
    else await link(temporary, path.name);
    await syncFolder(folder);
    return path.name;
  } finally {
    await rm(temporary, { force: true });
  }
}

/** Takes the record of an earlier run of the job away, if there is one. */
export async function removeErrorRecord(folder: string, filename: string, jobId: string): Promise<void> {
  const { name, isOwn } = await nameFor(folder, filename, jobId);
  if (!isOwn || !(await isThere(name))) return;
  await rm(name, { force: true });
  await syncFolder(folder);
}

async function nameFor(
  folder: string,
  filename: string,
  jobId: string,
): Promise<{ name: string; isOwn: boolean }> {
  const usual = join(folder, filename + ERROR_RECORD_ENDING);
  const written = await readFile(usual, "utf8").catch(() => undefined);
  if (written === undefined) return { name: usual, isOwn: false };
  if (ownerOf(written) === jobId) return { name: usual, isOwn: true };
  const tail = jobId.replaceAll(/[^\w.-]/g, "_").slice(-20);
  return { name: join(folder, `${filename}.${tail}${ERROR_RECORD_ENDING}`), isOwn: true };
}

function ownerOf(json: string): unknown {
  try {
    return (JSON.parse(json) as { job_id?: unknown }).job_id;
  } catch {
    return undefined;
  }
}
