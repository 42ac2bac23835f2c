import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { runCrash } from "../support/crash.ts";
import { freshPostgres } from "../support/postgres.ts";
import { startServices } from "../support/services.ts";

const TIMEOUT = { timeout: 120_000 };

const OPENERS: Record<string, () => Promise<{ url: string; drop: () => Promise<void> }>> = {
  SQLite: async () => {
    const folder = await mkdtemp(join(tmpdir(), "quarry-crash-"));
    return { url: join(folder, "quarry.db"), drop: () => rm(folder, { recursive: true }) };
  },
  PostgreSQL: freshPostgres,
};

describe("worker processes that are killed and stopped", () => {
  for (const [name, open] of Object.entries(OPENERS)) {
    test(`on ${name}, no task is lost, settled twice or counted wrong`, TIMEOUT, async (t) => {
      const { url, drop } = await open();
      t.after(drop);
      const figures = await runCrash({ url, tasks: 400, kills: 20, stops: 2 });
      t.diagnostic(JSON.stringify(figures));
      assert.equal(figures.kills, 20);
      assert.ok(figures.stops >= 2);
      assert.ok(figures.rescued >= 20, `${figures.rescued} rows were rescued`);
      assert.ok(figures.refused >= 1, "no stopped worker tried to write when it woke up");
    });
  }
});

describe("PostgreSQL that comes and goes", () => {
  test("worker processes carry on by themselves", TIMEOUT, async (t) => {
    const { url, restart } = await startOwnPostgres(t);
    const figures = await runCrash({ url, tasks: 400, terminations: 8, restarts: 1, restart });
    t.diagnostic(JSON.stringify(figures));
    assert.equal(figures.terminations, 8);
    assert.equal(figures.restarts, 1);
    assert.equal(figures.processes, 4, "a process did not survive");
  });
});

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
