import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { openDatabase } from "../src/index.ts";

const ROOT = join(import.meta.dirname, "..");
const run = promisify(execFile);

/** As `npm install` lays it out, but built from what is in the checkout now. */
async function install(folder: string): Promise<void> {
  const home = join(folder, "node_modules/quarry");
  await mkdir(home, { recursive: true });
  await cp(join(ROOT, "package.json"), join(home, "package.json"));
  for (const name of ["migrations", "node_modules"]) await symlink(join(ROOT, name), join(home, name));
  const args = ["--project", join(ROOT, "tsconfig.build.json"), "--outDir", join(home, "dist")];
  await run(join(ROOT, "node_modules/.bin/tsc"), args);
}

describe("the README's examples", () => {
  let folder: string;
  let examples: string[];
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "quarry-readme-"));
    await install(folder);
    const readme = await readFile(new URL("../README.md", import.meta.url), "utf8");
    examples = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map((match) => match[1]!);
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const start = async (word: string): Promise<ChildProcess> => {
    const example = examples.find((text) => text.includes(word));
    assert.ok(example, `the README has no example with ${word}`);
    assert.ok(example.split("\n").length <= 25, "the example is no longer short");
    await writeFile(join(folder, `${word}.ts`), example);
    return spawn(process.execPath, [`${word}.ts`], { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  };

  it("of documents runs as it stands and finds the passage", { timeout: 120_000 }, async () => {
    await cp(new URL("../samples/handbook", import.meta.url), join(folder, "samples"), { recursive: true });
    const child = await start("openQuarry");
    const exited = once(child, "exit");
    let printed = "";
    for await (const data of child.stdout!) printed += data;
    assert.deepEqual(await exited, [0, null]);
    assert.match(printed, /^blasting\.md 1 .*told at least 24 hours before each blast/m);
  });

  it("of a table of one's own runs as it stands, and stops on Ctrl-C", async () => {
    const child = await start("emails");
    let printed = "";
    for await (const data of child.stdout!) {
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
  });
});
