import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { describe, it } from "node:test";
import { WorkerProcesses } from "../../src/queue/worker-processes.ts";
import { openDesk, until } from "../embeddings/desk.ts";
import { DATABASES } from "../support/databases.ts";

const HOUR_MS = 3_600_000;

describe("a worker process that was killed", () => {
  for (const { name, open } of DATABASES) {
    it(`is noticed by the next one on the same machine, long before its leases run out, on ${name}`, async () => {
      const test = await open();
      const desk = await openDesk(test, { staleMs: HOUR_MS });
      const { id } = await desk.jobs.create({ input_text: "held by the dead" });
      const program = join(import.meta.dirname, "../embeddings/hanging-worker.ts");
      const child = spawn(process.execPath, [program, test.url], { stdio: ["ignore", "pipe", "inherit"] });
      await once(child.stdout, "data");
      assert.equal((await desk.jobs.read(id)).status, "processing");
      const workers = new WorkerProcesses(test.database, { silentMs: HOUR_MS });
      assert.equal((await workers.list()).length, 1);

      child.kill("SIGKILL");
      await once(child, "exit");
      assert.deepEqual(await workers.list(), []);
      assert.equal((await workers.list(["gone"])).length, 1);
      const crew = await desk.work();
      await until(async () => (await desk.jobs.read(id)).status === "completed");
      assert.equal((await desk.jobs.read(id)).attempts, 2);
      await crew.stop();
      await test.close();
    });
  }
});
