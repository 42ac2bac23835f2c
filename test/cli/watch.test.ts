import assert from "node:assert/strict";
import { mkdir, mkdtemp, realpath, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { Running } from "./running.ts";

describe("quarry watch", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), "quarry-watch-cli-")));
    await mkdir(join(folder, "notes"));
    await writeFile(join(folder, "notes", "a.md"), "The first note.\n");
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const start = (...args: string[]) => new Running(folder, args);

  test("writes a line for what happens, says that nobody works on it, and ends when told", async () => {
    const watch = start("watch", "notes");
    await watch.until(({ out }) => /Watching 1 file\..*run quarry up/.test(out));
    assert.match(watch.out, /^ {2}scan {4}\S+notes\n/);
    await writeFile(join(folder, "notes", "b.md"), "The second note.\n");
    await watch.until(({ out }) => /ingest .*notes\/b\.md\n/.test(out));
    await rename(join(folder, "notes", "a.md"), join(folder, "notes", "c.md"));
    await watch.until(({ out }) => /rename .*notes\/a\.md → .*notes\/c\.md\n/.test(out));
    watch.kill("SIGINT");
    const { code, signal, err } = await watch.ended();
    assert.deepEqual([code, signal, err], [0, null, ""]);
    const { out } = await start("queue", "list", "--json").ended();
    assert.match(out, /notes\/b\.md/);
  });

  test("--json writes a value a line, for the tenant and collection that are named", async () => {
    const watch = start("watch", "notes", "--json", "--tenant", "acme", "--collection", "wiki");
    await watch.until(({ out }) => out.includes("\n"));
    await writeFile(join(folder, "notes", "b.md"), "The second note.\n");
    await watch.until(({ out }) => /b\.md/.test(out));
    watch.kill("SIGTERM");
    const { code, out } = await watch.ended();
    const [scan, file] = out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    assert.deepEqual([scan.item_type, scan.op, scan.path], ["folder", "scan", join(folder, "notes")]);
    assert.deepEqual(
      [file.item_type, file.op, file.priority, file.verdict, file.path],
      ["file", "ingest", 5, "queued", join(folder, "notes", "b.md")],
    );
    assert.equal(code, 0);
    const shown = JSON.parse((await start("queue", "show", file.queue_id, "--json").ended()).out);
    assert.deepEqual([shown.tenant_id, shown.collection], ["acme", "wiki"]);
  });

  test("leaves its own data folder alone, also in a folder that is watched", async () => {
    const watch = start("watch", ".", "--data", "data", "--json");
    await watch.until(({ out }) => out.includes("\n"));
    await writeFile(join(folder, "data", "page.md"), "ours");
    await writeFile(join(folder, "last.md"), "theirs");
    await watch.until(({ out }) => /last\.md/.test(out));
    watch.kill("SIGINT");
    const { out } = await watch.ended();
    assert.doesNotMatch(out, /page\.md/);
  });

  test("ends when nobody reads what it writes", async () => {
    const watch = start("watch", "notes", "--json");
    await watch.until(({ out }) => out.includes("\n"));
    watch.stopReading();
    let isOver = false;
    const ended = watch.ended().finally(() => {
      isOver = true;
    });
    for (let n = 0; !isOver; n++) {
      await writeFile(join(folder, "notes", `${n}.md`), "x");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    assert.equal((await ended).code, 0);
  });

  test("names the path that is not there", async () => {
    const { code, err } = await start("watch", "notes", "missing").ended();
    assert.equal(code, 2);
    assert.match(err, /missing: no such file or folder/);
  });
});
