import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { Quarry } from "../../src/index.ts";
import { serveForTest } from "./serving.ts";

interface Problem {
  readonly code: string;
  readonly detail: string;
  readonly errors?: readonly { readonly path: string; readonly message: string }[];
}

describe("health and readiness", () => {
  it("a healthy server is ready", async () => {
    const serving = await serveForTest();
    assert.deepEqual(await (await serving.ask("/health")).json(), { status: "ok" });
    assert.deepEqual(await (await serving.ask("/ready")).json(), {
      isReady: true,
      checks: ["database", "disk"],
    });
    await serving.close();
  });

  it("a full disk makes it unready, not unhealthy", async () => {
    const serving = await serveForTest({ settings: { diskFreeMbMin: 100_000_000 } });
    const answer = await serving.ask("/ready");
    assert.equal(answer.status, 503);
    assert.equal(answer.headers.get("content-type"), "application/problem+json");
    const problem = (await answer.json()) as Problem;
    assert.equal(problem.code, "disk_full");
    assert.deepEqual(
      problem.errors?.map(({ path }) => path),
      ["disk"],
    );
    assert.match(problem.errors![0]!.message, /QUARRY_DISK_FREE_MB_MIN/);
    assert.equal((await serving.ask("/health")).status, 200);
    await serving.close();
  });

  it("a data folder that is gone is not called a full disk", async () => {
    const away = await mkdtemp(join(tmpdir(), "quarry-health-"));
    const dataFolder = join(away, "data");
    const serving = await serveForTest({ settings: { dataFolder, databaseUrl: join(away, "quarry.db") } });
    assert.equal((await serving.ask("/ready")).status, 200);
    await rm(dataFolder, { recursive: true });
    const answer = await serving.ask("/ready");
    const problem = (await answer.json()) as Problem;
    assert.deepEqual([answer.status, problem.code], [503, "store_unavailable"]);
    assert.match(problem.errors![0]!.message, /the data folder .* is gone/);
    await serving.close();
    await rm(away, { recursive: true, force: true });
  });

  it("strangers are not told what is wrong", async () => {
    const serving = await serveForTest({
      settings: { diskFreeMbMin: 100_000_000, apiKey: "read=read-key-0123456789" },
    });
    const problem = (await (await serving.ask("/ready")).json()) as Problem;
    assert.equal(problem.errors, undefined);
    assert.doesNotMatch(JSON.stringify(problem), new RegExp(serving.folder));
    const told = await serving.ask("/ready", { headers: { "x-api-key": "read-key-0123456789" } });
    assert.equal(((await told.json()) as Problem).errors?.length, 1);
    await serving.close();
  });

  it("a database that went away makes it unready, and requests are refused without its words", async () => {
    const serving = await serveForTest();
    await serving.quarry.close();
    const answer = await serving.ask("/ready");
    assert.equal(answer.status, 503);
    const problem = (await answer.json()) as Problem;
    assert.equal(problem.code, "database_unavailable");
    assert.deepEqual(
      problem.errors?.map(({ path }) => path),
      ["database"],
    );
    assert.equal((await serving.ask("/health")).status, 200);
    const metrics = await (await serving.ask("/metrics")).text();
    assert.match(metrics, /^quarry_database_up 0$/m);
    const refused = await serving.ask("/documents");
    assert.ok(refused.status >= 500);
    assert.doesNotMatch(await refused.text(), /sqlite|closed|select|node_modules/i);
    await serving.close();
  });

  it("an error that nobody expected is told as internal, and stands in the log under the request's id", async () => {
    const serving = await serveForTest({
      quarry: (quarry) =>
        Object.create(quarry, {
          documents: {
            value: { list: () => Promise.reject(new TypeError("password is hunter2 in /etc/x")) },
          },
          settings: { value: quarry.settings },
          lanes: { value: quarry.lanes },
          search: { value: quarry.search },
        }) as Quarry,
    });
    const answer = await serving.ask("/documents", { headers: { "x-request-id": "my-request.1" } });
    assert.equal(answer.status, 500);
    const problem = (await answer.json()) as Problem & { instance: string };
    assert.equal(problem.code, "internal");
    assert.equal(problem.instance, "my-request.1");
    assert.doesNotMatch(JSON.stringify(problem), /hunter2|TypeError|etc/);
    const lines = serving.log.filter((line) => line.includes("my-request.1"));
    assert.ok(lines.some((line) => line.includes('"level":"error"') && line.includes("TypeError")));
    await serving.close();
  });
});
