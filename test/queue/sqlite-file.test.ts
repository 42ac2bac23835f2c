import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase } from "../../src/index.ts";
import { testQueueStore } from "./conformance.ts";

testQueueStore("a SQLite file", async (clock) => {
  const folder = await mkdtemp(join(tmpdir(), "quarry-test-"));
  return {
    database: openDatabase(join(folder, "quarry.db"), { clock }),
    drop: () => rm(folder, { recursive: true }),
  };
});
