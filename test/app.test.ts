import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openQuarry } from "../src/index.ts";

test("a data folder that belongs to another database is refused, the right one is not", async () => {
  const folder = await mkdtemp(join(tmpdir(), "quarry-app-"));
  const open = async (data: string, database: string) => {
    const quarry = await openQuarry({
      dataFolder: join(folder, data),
      databaseUrl: join(folder, database),
      logLevel: "silent",
    });
    await quarry.close();
  };
  await open("a", "one.db");
  await open("a", "one.db");
  await assert.rejects(open("b", "one.db"), { code: "invalid_input", message: /does not belong/ });
  await assert.rejects(
    open("a", "two.db").then(() => open("b", "two.db")),
    { message: /does not belong/ },
  );
  await rm(folder, { recursive: true, force: true });
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
