import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { type GivenSettings, openQuarry } from "../../src/index.ts";
import { freshBucket } from "../support/s3.ts";
import { Running } from "./running.ts";

it("quarry migrate files: moved files are taken where they are now, by whoever is set to it and nobody else", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "quarry-moved-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const bucket = await freshBucket();
  const data = join(folder, "data");
  const add = async (names: readonly string[], settings: GivenSettings = {}) => {
    const quarry = await openQuarry({ dataFolder: data, logLevel: "silent", ...settings });
    for (const name of names) {
      await writeFile(join(folder, name), `Granite is cut in the quarry of ${name}.`);
      await quarry.documents.add({ path: join(folder, name) });
    }
    await quarry.close();
  };
  const old = Array.from({ length: 25 }, (_, at) => `${at}.md`);
  await add(old);
  const run = (args: string[], env: Record<string, string> = {}) =>
    new Running(folder, args, { QUARRY_DATA: data, ...env }).ended();

  const early = await run(["migrate", "files"], bucket.env);
  assert.deepEqual([early.code, /copy "documents" and "folder-id"/.test(early.err)], [2, true]);
  await bucket.put("quarry/folder-id", await readFile(join(data, "folder-id"), "utf8"));
  const hollow = await run(["migrate", "files"], bucket.env);
  assert.equal(hollow.code, 1);
  // The newest 20, and 20 that are spread over all.
  const [, missing, looked] = /(\d+) of the (\d+) files that were looked for are not in s3:/.exec(
    hollow.err,
  )!;
  assert.ok(missing === looked && Number(looked) > 20 && Number(looked) <= 25, hollow.err);
  assert.equal((await run(["documents", "list"])).code, 0, "nothing was changed");
  const originals = () => globSync("documents/*/original.md", { cwd: data });
  for (const path of originals())
    await bucket.put(`quarry/${path}`, await readFile(join(data, path), "utf8"));

  const moved = await run(["migrate", "files", "--json"], bucket.env);
  assert.deepEqual([moved.code, JSON.parse(moved.out)], [0, { files: bucket.env.QUARRY_FILES }]);
  const behind = await run(["documents", "list"]);
  assert.equal(behind.code, 2);
  assert.match(behind.err, /QUARRY_FILES is not set: set it to s3:.*quarry migrate files/);
  assert.equal((await run(["documents", "list"], bucket.env)).code, 0);

  // The folder has what it had, and lacks what came since.
  await add(["new.md", "newer.md"], bucket.settings);
  const back = await run(["migrate", "files"]);
  assert.deepEqual([back.code, /2 of the \d+ files/.test(back.err)], [1, true]);
  const known = new Set(originals());
  for (const key of await bucket.list("quarry/documents/")) {
    const path = key.replace("quarry/", "");
    if (known.has(path) || !path.endsWith("original.md")) continue;
    await mkdir(join(data, path, ".."), { recursive: true });
    await writeFile(join(data, path), "Granite");
  }
  const done = await run(["migrate", "files"]);
  assert.deepEqual([done.code, done.err], [0, ""]);
  assert.match(done.out, /files are in \/.*data\. Unset QUARRY_FILES for every process/);
  assert.equal((await run(["documents", "list"])).code, 0);
});

it("quarry migrate says how many migrations it applied", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "quarry-migrated-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const run = () => new Running(folder, ["migrate"], { QUARRY_DATA: folder }).ended();
  const count = globSync("*.sql", { cwd: join(import.meta.dirname, "../../migrations/sqlite") }).length;
  assert.match((await run()).out, new RegExp(`quarry\\.db is up to date: ${count} migrations applied\\.`));
  assert.match((await run()).out, /quarry\.db is up to date\.$/m);
});
