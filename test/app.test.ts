import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type GivenSettings, openQuarry, type Quarry } from "../src/index.ts";
import { MACHINE } from "../src/processes.ts";
import { freshPostgres } from "./support/postgres.ts";
import { findQdrant } from "./support/qdrant.ts";
import { freshBucket } from "./support/s3.ts";

test("a data folder that belongs to another database is refused, the right one is not", async (t) => {
  const { open, folder } = await places(t);
  const quarry = await open("a", "one.db");
  await quarry.documents.add({ path: import.meta.filename });
  await quarry.close();
  await (await open("a", "one.db")).close();
  const isOthers = { code: "invalid_input", message: /does not belong/ };
  await assert.rejects(open("b", "one.db"), isOthers);
  await (await open("c", "two.db")).close();
  await assert.rejects(open("a", "two.db"), isOthers);
  assert.deepEqual(
    ["a", "b", "c"].filter((data) => existsSync(join(folder, data))),
    ["a", "c"],
    "a folder that was refused is not made",
  );
});

test("a database without documents takes a new data folder into use, and leaves the one before behind", async (t) => {
  const { open } = await places(t);
  for (const data of ["a", "b", "a", "b"]) await (await open(data, "one.db")).close();
  const quarry = await open("b", "one.db");
  await quarry.documents.add({ path: import.meta.filename });
  await quarry.close();
  // Its id is the same: it was in use for a while.
  await assert.rejects(open("a", "one.db"), { message: /does not belong/ });
  await (await open("b", "one.db")).close();
});

test("of processes that began in different folders, one goes on and the others are told", async (t) => {
  const { open } = await places(t);
  const [one, other] = [await open("a", "one.db"), await open("b", "one.db")];
  t.after(async () => {
    await one.close();
    await other.close();
  });
  // The other came last, and it is the one that works who decides.
  const crew = await one.work({ lanes: ["documents.remove"] });
  const adding = (quarry: Quarry, file = "app.test.ts") =>
    quarry.documents.add({ path: join(import.meta.dirname, file) });
  const isOthers = { code: "store_unavailable", message: /b does not belong/ };
  await assert.rejects(adding(other), isOthers);
  await crew.stop();
  await adding(one);
  await assert.rejects(adding(other, "config.test.ts"), isOthers);
});

test("while workers run, files are kept where they keep them, though there are no documents yet", async (t) => {
  const { open } = await places(t);
  const quarry = await open("a", "one.db");
  const crew = await quarry.work({ lanes: ["documents.remove"] });
  await assert.rejects(open("b", "one.db"), { message: /does not belong/ });
  await (await open("a", "one.db")).close();
  await crew.stop();
  await (await open("b", "one.db")).close();
  await quarry.close();
});

test("the data folder is made, for nobody else to read, and what killed processes left in it goes", async (t) => {
  const { folder } = await places(t);
  const dataFolder = join(folder, "new", "data");
  const [bucket, { url, apiKey }, postgres] = await Promise.all([
    freshBucket(),
    findQdrant(),
    freshPostgres(),
  ]);
  const settings: GivenSettings = {
    ...{ dataFolder, databaseUrl: postgres.url, logLevel: "silent", vectors: "qdrant", qdrantUrl: url },
    ...{ ...(apiKey && { qdrantApiKey: apiKey }), ...bucket.settings },
  };
  const quarry = await openQuarry(settings);
  t.after(() => quarry.close().then(() => postgres.drop()));
  assert.equal((await stat(dataFolder)).mode & 0o777, 0o700);
  assert.equal((await quarry.readiness()).isReady, true);
  await rm(dataFolder, { recursive: true });
  const [gone] = (await quarry.readiness()).checks.filter(({ isOk }) => !isOk);
  assert.deepEqual([gone?.name, gone?.code], ["disk", "store_unavailable"]);
  assert.match(gone!.problem!, /is gone: put it back/);

  const ended = spawnSync(process.execPath, ["--version"]).pid;
  const left = join(dataFolder, "copies", `${MACHINE}-${ended}-aa`);
  await mkdir(left, { recursive: true });
  await (await openQuarry(settings)).close();
  assert.equal(existsSync(left), false);
});

test("processes that open a new data folder at once agree on whose it is", async () => {
  const folder = await mkdtemp(join(tmpdir(), "quarry-app-"));
  const opened = await Promise.all(
    Array.from({ length: 4 }, () => openQuarry({ dataFolder: folder, logLevel: "silent" })),
  );
  await Promise.all(opened.map((quarry) => quarry.close()));
  await rm(folder, { recursive: true, force: true });
});

test("work is refused when the task queue is switched off", async () => {
  const folder = await mkdtemp(join(tmpdir(), "quarry-app-"));
  const quarry = await openQuarry({ dataFolder: folder, isEnabled: false, logLevel: "silent" });
  await assert.rejects(quarry.work(), { code: "invalid_input", message: /TASK_QUEUE_ENABLED/ });
  await quarry.close();
  await rm(folder, { recursive: true, force: true });
});

/** Data folders and databases by name, below one folder. */
async function places(t: { after(end: () => Promise<void>): void }) {
  const folder = await mkdtemp(join(tmpdir(), "quarry-app-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const open = (data: string, database: string) =>
    openQuarry({
      dataFolder: join(folder, data),
      databaseUrl: join(folder, database),
      logLevel: "silent",
    });
  return { folder, open };
}
