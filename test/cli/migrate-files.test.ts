import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { openQuarry } from "../../src/index.ts";
import { freshBucket } from "../support/s3.ts";
import { Running } from "./running.ts";

it("quarry migrate files: moved files are taken where they are now, by whoever is set to it and nobody else", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "quarry-moved-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const bucket = await freshBucket();
  const data = join(folder, "data");
  const quarry = await openQuarry({ dataFolder: data, logLevel: "silent" });
  await writeFile(join(folder, "a.md"), "Granite is cut in the quarry.");
  await quarry.documents.add({ path: join(folder, "a.md") });
  await quarry.close();
  const run = (args: string[], env: Record<string, string> = {}) =>
    new Running(folder, args, { QUARRY_DATA: data, ...env }).ended();

  const early = await run(["migrate", "files"], bucket.env);
  assert.deepEqual([early.code, /copy "documents" and "folder-id"/.test(early.err)], [2, true]);
  // A copy of the documents is the user's own affair; by its id the place is known.
  await bucket.put("quarry/folder-id", await readFile(join(data, "folder-id"), "utf8"));
  const moved = await run(["migrate", "files", "--json"], bucket.env);
  assert.deepEqual([moved.code, JSON.parse(moved.out)], [0, { files: bucket.env.QUARRY_FILES }]);
  const behind = await run(["documents", "list"]);
  assert.equal(behind.code, 2);
  assert.match(behind.err, /QUARRY_FILES is not set: set it to s3:.*quarry migrate files/);
  assert.equal((await run(["documents", "list"], bucket.env)).code, 0);
});
