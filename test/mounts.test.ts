import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openFolderFiles } from "../src/adapters/files/folder.ts";
import { QuarryError } from "../src/errors.ts";
import { openQuarry } from "../src/index.ts";
import { isMountAway, orAway } from "../src/mounts.ts";
import { outcomeOf } from "../src/outcomes.ts";

/** A file that is there and answers every read with EIO, as one on a mount that is away does. */
const UNREACHABLE = { folder: "/proc/self", name: "mem" };

test("a folder whose mount is away is waited for; what is not there, or may not be read, is not", () => {
  const system = (code: string) => Object.assign(new Error(code), { code });
  for (const code of ["ESTALE", "EIO", "ENOTCONN", "EHOSTDOWN", "ETIMEDOUT", "ENODEV"]) {
    const away = orAway(system(code), "/mnt/docs");
    assert.match((away as Error).message, new RegExp(`/mnt/docs cannot be reached \\(${code}\\)`));
    assert.equal(outcomeOf(away).kind, "released");
  }
  for (const code of ["ENOENT", "EACCES", "ENOSPC"]) assert.equal(isMountAway(system(code)), false);
  const wrapped = new QuarryError("not_found", "x", { cause: system("ESTALE") });
  assert.equal(isMountAway(wrapped), true);
});

test("files in a folder that does not answer are away, for readers of their own too", async () => {
  const files = openFolderFiles(UNREACHABLE.folder);
  const isAway = { code: "store_unavailable", message: /cannot be reached \(EIO\)/ };
  await assert.rejects(files.read(UNREACHABLE.name), isAway);
  const file = { path: UNREACHABLE.name, contentHash: "" };
  await assert.rejects(files.withLocal(file, readFile), isAway);
  const failing = () => Promise.reject(new QuarryError("file_unreadable", "it is probably damaged"));
  await assert.rejects(files.withLocal(file, failing), isAway);
  await assert.rejects(files.withLocal({ path: "status", contentHash: "" }, failing), {
    code: "file_unreadable",
  });
});

test("an item whose file cannot be reached waits, and no attempt is spent", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "quarry-mounts-"));
  const quarry = await openQuarry({ dataFolder: folder, logLevel: "silent", pollMs: 100 });
  t.after(async () => {
    await quarry.close();
    await rm(folder, { recursive: true, force: true });
  });
  const file_path = join(UNREACHABLE.folder, UNREACHABLE.name);
  await assert.rejects(quarry.documents.add({ path: file_path }), {
    code: "store_unavailable",
    message: /^\/proc\/self\/mem cannot be reached \(EIO\)/,
  });
  const { queue_id: id } = await quarry.queue.enqueue({
    item_type: "file",
    op: "ingest",
    payload: { file_path },
  });
  await quarry.work({ lanes: ["items"] });
  for (;;) {
    const { status, retry_count: spent, run_after: later } = await quarry.queue.read(id);
    assert.deepEqual([status === "failed", spent], [false, 0]);
    if (status === "pending" && later !== null) break;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
});
