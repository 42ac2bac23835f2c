import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { freshPostgres } from "../postgres.ts";
import { startServices } from "../services.ts";
import { runCrash, WORKERS } from "./run.ts";

export interface CrashSize {
  readonly tasks: number;
  readonly kills: number;
  readonly stops: number;
  readonly terminations: number;
  readonly restarts: number;
  readonly timeoutMs: number;
}

/** A database of its own for a test, under the name of its kind. */
export const CRASH_DATABASES: Record<string, () => Promise<{ url: string; drop: () => Promise<void> }>> = {
  SQLite: async () => {
    const folder = await mkdtemp(join(tmpdir(), "quarry-crash-"));
    return { url: join(folder, "quarry.db"), drop: () => rm(folder, { recursive: true }) };
  },
  PostgreSQL: freshPostgres,
};

export function testCrash({ tasks, kills, stops, terminations, restarts, timeoutMs }: CrashSize): void {
  describe("worker processes that are killed and stopped", () => {
    for (const [name, open] of Object.entries(CRASH_DATABASES)) {
      test(`on ${name}, no task is lost, settled twice or counted wrong`, {
        timeout: timeoutMs,
      }, async (t) => {
        const { url, drop } = await open();
        t.after(drop);
        const figures = await runCrash({ url, tasks, kills, stops });
        t.diagnostic(JSON.stringify(figures));
        assert.equal(figures.kills, kills);
        assert.ok(figures.stops >= stops, `${figures.stops} stops lasted until the rows were taken away`);
        assert.ok(figures.rescued >= kills + stops, `${figures.rescued} rows were rescued`);
        assert.ok(figures.refused >= stops, `${figures.refused} writes of stopped workers were refused`);
      });
    }
  });

  describe("PostgreSQL that comes and goes", () => {
    test("worker processes carry on by themselves", { timeout: timeoutMs }, async (t) => {
      const { url, restart } = await startOwnPostgres(t);
      const figures = await runCrash({ url, tasks, terminations, restarts, restart });
      t.diagnostic(JSON.stringify(figures));
      assert.equal(figures.terminations, terminations);
      assert.equal(figures.restarts, restarts);
      assert.equal(figures.processes, WORKERS, "a process did not survive");
    });
  });
}

/** Not the server of the other test files: this one is restarted under its clients. */
async function startOwnPostgres(t: TestContext): Promise<{ url: string; restart: () => Promise<void> }> {
  const shared = process.env.TEST_DATABASE_URL;
  delete process.env.TEST_DATABASE_URL;
  try {
    const services = await startServices({ redis: false });
    t.after(() => services.stop());
    return { url: services.postgresUrl, restart: () => services.restartPostgres() };
  } finally {
    if (shared !== undefined) process.env.TEST_DATABASE_URL = shared;
  }
}
