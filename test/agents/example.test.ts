import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { openDatabase, openQuarry } from "../../src/index.ts";

const ROOT = join(import.meta.dirname, "../..");
const EXAMPLE = join(ROOT, "docs/examples/own_function.ts");
const run = promisify(execFile);

describe("functions of one's own", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "quarry-own-"));
    await mkdir(join(folder, "node_modules/quarry"), { recursive: true });
    const exported = { name: "quarry", type: "module", exports: "./index.ts" };
    await writeFile(join(folder, "node_modules/quarry/package.json"), JSON.stringify(exported));
    await symlink(join(ROOT, "src/index.ts"), join(folder, "node_modules/quarry/index.ts"));
    await symlink(join(ROOT, "node_modules/zod"), join(folder, "node_modules/zod"));
    await writeFile(join(folder, "own_function.ts"), await readFile(EXAMPLE));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  it("the documented example is short, runs as it stands and counts right", async () => {
    const lines = (await readFile(EXAMPLE, "utf8")).trimEnd().split("\n");
    assert.ok(lines.length <= 30, `${lines.length} lines`);
    const env = { ...process.env, DATABASE_URL: "", QUARRY_DATA: "" };
    const { stdout } = await run(process.execPath, ["own_function.ts"], { cwd: folder, env });
    assert.equal(stdout, "count_words COMPLETED\n".repeat(2));
    const database = openDatabase(join(folder, ".quarry/quarry.db"));
    try {
      const [worker] = await database.query("select result, status from workers");
      assert.deepEqual({ ...worker }, { result: "5", status: "COMPLETED" });
    } finally {
      await database.close();
    }
  });

  it("the documentation shows it as it is", async () => {
    const docs = await readFile(join(ROOT, "docs/tasks.md"), "utf8");
    assert.ok(docs.includes(await readFile(EXAMPLE, "utf8")));
  });

  it("a module of them is loaded by its setting, and refused when it is none", async () => {
    const write = async (name: string, text: string) => {
      const path = join(folder, name);
      await writeFile(path, text);
      return path;
    };
    const good = await write(
      "good.ts",
      `import { z } from "zod"; import { defineFunction } from "quarry";
       export const functions = [defineFunction({ name: "mine", entityType: "planner", payload: z.object({}), run: async () => undefined })];`,
    );
    const open = (functionsModule: string) =>
      openQuarry({ dataFolder: join(folder, "other"), logLevel: "silent", functionsModule });
    const quarry = await open(good);
    assert.ok(quarry.tasks.functions.includes("mine"));
    await quarry.close();
    for (const [name, text, says] of [
      ["empty.ts", "export {};", /must export functions/],
      [
        "shape.ts",
        "export const functions = [{ name: 'x', entityType: 'planner' }];",
        /functions\.0\.payload/,
      ],
      ["broken.ts", "throw new Error('on purpose');", /on purpose/],
    ] as const)
      await assert.rejects(open(await write(name, text)), { code: "invalid_input", message: says });
    await assert.rejects(open(join(folder, "missing.ts")), { code: "invalid_input", message: /missing\.ts/ });
  });
});
