import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";

const BIN = fileURLToPath(new URL("../../bin/quarry.js", import.meta.url));

async function quarry(args: readonly string[], onStarted?: (kill: (signal: NodeJS.Signals) => void) => void) {
  const child = spawn(process.execPath, [BIN, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (data) => {
    stdout += data;
  });
  child.stderr.on("data", (data) => {
    stderr += data;
  });
  onStarted?.((signal) => child.kill(signal));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, stdout, stderr };
}

describe("the command line", () => {
  it("explains itself", async () => {
    const { code, stdout } = await quarry(["--help"]);
    assert.equal(code, 0);
    assert.match(stdout, /demo/);
    const demo = await quarry(["demo", "--help"]);
    assert.equal(demo.code, 0);
    assert.match(demo.stdout, /Example:/);
    assert.match((await quarry(["--version"])).stdout, /^\d+\.\d+\.\d+\n$/);
  });

  it("answers wrong usage with exit code 2 and what to do", async () => {
    for (const args of [
      ["nonsense"],
      ["demo", "--tasks", "many"],
      ["demo", "--workers", "1"],
      ["demo", "--what"],
    ]) {
      const { code, stderr } = await quarry(args);
      assert.equal(code, 2, args.join(" "));
      assert.notEqual(stderr, "");
    }
  });

  it("the demo ends every task exactly once although a worker is killed, and prints one JSON value", async () => {
    const { code, stdout } = await quarry(["demo", "--tasks", "3000", "--workers", "3", "--json"]);
    assert.equal(code, 0);
    const report = JSON.parse(stdout);
    assert.equal(report.completed, 3_000);
    assert.equal(report.isExactlyOnce, true);
    assert.ok(report.rescued > 0, "the killed worker held nothing");
  });

  it("an interrupted demo leaves nothing behind", async () => {
    const before = demoFolders();
    const { code, stderr } = await quarry(["demo", "--tasks", "100000"], (kill) => {
      const look = setInterval(() => {
        if (demoFolders().length === before.length) return;
        clearInterval(look);
        setTimeout(() => kill("SIGINT"), 300);
      }, 20);
    });
    assert.equal(code, 1);
    assert.match(stderr, /interrupted/);
    assert.deepEqual(demoFolders(), before);
  });
});

function demoFolders(): string[] {
  return readdirSync(tmpdir()).filter((name) => name.startsWith("quarry-demo-"));
}
