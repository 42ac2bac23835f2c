import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { openDatabase } from "../src/index.ts";

describe("the README's example", () => {
  it("runs as it stands, and stops on Ctrl-C", async () => {
    const readme = await readFile(new URL("../README.md", import.meta.url), "utf8");
    const example = /```ts\n([\s\S]*?)```/.exec(readme)?.[1];
    assert.ok(example, "the README has no example");
    assert.ok(example.split("\n").length <= 25, "the example is no longer short");
    const folder = await mkdtemp(join(tmpdir(), "quarry-readme-"));
    const source = new URL("../src/index.ts", import.meta.url).href;
    await writeFile(
      join(folder, "example.ts"),
      example.replace('from "quarry"', `from ${JSON.stringify(source)}`),
    );
    const child = spawn(process.execPath, ["example.ts"], {
      cwd: folder,
      stdio: ["ignore", "pipe", "inherit"],
    });
    let printed = "";
    for await (const data of child.stdout) {
      printed += data;
      if (printed.includes("ada@example.org")) child.kill("SIGINT");
    }
    assert.equal(printed, "hello ada@example.org\n");
    const database = openDatabase(join(folder, "emails.db"));
    assert.deepEqual(
      (await database.query("select status from emails")).map((row) => row.status),
      ["completed"],
    );
    await database.close();
    await rm(folder, { recursive: true });
  });
});
