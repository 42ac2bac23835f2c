import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { serveForTest } from "./serving.ts";

const BIN = fileURLToPath(new URL("../../bin/quarry.js", import.meta.url));

describe("quarry serve and quarry up", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "quarry-serve-"));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  function start(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    const child = spawn(process.execPath, [BIN, ...args, "--data", folder], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...env },
    });
    const said = { stdout: "", stderr: "" };
    const firstLine = Promise.withResolvers<string>();
    child.stdout.on("data", (data) => {
      said.stdout += data;
      if (said.stdout.includes("\n")) firstLine.resolve(said.stdout.split("\n")[0]!);
    });
    child.stderr.on("data", (data) => {
      said.stderr += data;
    });
    const ended = once(child, "close").then(([code]) => {
      firstLine.resolve("");
      return { code, ...said };
    });
    return { firstLine: firstLine.promise, ended, kill: (signal: NodeJS.Signals) => child.kill(signal) };
  }

  it("serve says where it listens, answers, and ends gracefully", async () => {
    const serving = start(["serve", "--port", "0"]);
    const line = await serving.firstLine;
    const [, url] =
      /^Listening on (http:\/\/127\.0\.0\.1:\d+) \(docs at \/docs\)/.exec(line) ?? assert.fail(line);
    assert.equal((await fetch(`${url}/health`)).status, 200);
    const status = (await (await fetch(`${url}/status`)).json()) as { workers: object[] };
    assert.deepEqual(status.workers, []);
    serving.kill("SIGINT");
    const { code, stdout, stderr } = await serving.ended;
    assert.equal(code, 0, stderr);
    assert.match(stdout, /Stopped\.\n$/);
  });

  it("up serves and works in one process, and prints one JSON value", async () => {
    const up = start(["up", "--port", "0", "--json"]);
    const line = await up.firstLine;
    const { url, worker, lanes } = JSON.parse(line);
    assert.ok(lanes.includes("chunks.vector"));
    const status = (await (await fetch(`${url}/status`)).json()) as { workers: { id: string }[] };
    assert.deepEqual(
      status.workers.map(({ id }) => id),
      [worker],
    );
    up.kill("SIGTERM");
    const { code, stdout, stderr } = await up.ended;
    assert.equal(code, 0, stderr);
    assert.equal(stdout, `${line}\n`);
  });

  it("what cannot be started is told, with what to do", async () => {
    const taken = await serveForTest();
    for (const command of ["serve", "up"]) {
      const { code, stderr } = await start([command, "--port", String(taken.port)]).ended;
      assert.equal(code, 3);
      assert.match(stderr, /something else listens there.*--port/);
    }
    await taken.close();
    const exposed = await start(["serve", "--host", "0.0.0.0", "--port", "0"], { QUARRY_API_KEY: "" }).ended;
    assert.equal(exposed.code, 2);
    assert.match(exposed.stderr, /set QUARRY_API_KEY/);
    const short = await start(["serve", "--port", "0"], { QUARRY_API_KEY: "canary" }).ended;
    assert.equal(short.code, 2);
    assert.match(short.stderr, /QUARRY_API_KEY cannot be used: a key has 16 to 512/);
    assert.doesNotMatch(short.stderr, /canary/);
    assert.equal((await start(["serve", "--port", "65536"]).ended).code, 2);
  });
});
