import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Ran, Running } from "./running.ts";

describe("quarry queue", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "quarry-cli-"));
    await mkdir(join(folder, "docs"));
    await writeFile(join(folder, "docs", "a.md"), "# Lamps\n\nThe lamp is lit at dusk.");
    await writeFile(join(folder, "docs", "empty.txt"), "");
  });
  after(() => rm(folder, { recursive: true, force: true }));
  const quarry = (...args: string[]) => new Running(folder, args).ended();
  const told = (text: string, ...args: string[]): Promise<Ran> => {
    const running = new Running(folder, args);
    running.say(text);
    return running.ended();
  };

  test("shows what waits, what was done and what went wrong, and tries again", async () => {
    const queued = await quarry("ingest", "docs", "--json", "--priority", "4");
    const [folderItem] = JSON.parse(queued.out).items;
    assert.deepEqual(
      [folderItem.item_type, folderItem.status, folderItem.priority],
      ["folder", "pending", 4],
    );
    assert.match(
      (await quarry("queue", "status")).out,
      /pending +1\n.*\n.*\n.*\n +workers +0 \(run quarry up\)/,
    );
    const waited = await quarry("ingest", "docs", "--wait");
    assert.equal(waited.code, 1);
    assert.match(waited.out, /Taken in: 1 added, 1 failed\n/);
    assert.match(waited.out, /empty\.txt/);
    const status = JSON.parse((await quarry("queue", "status", "--json")).out);
    assert.deepEqual(status, {
      pending: 0,
      in_progress: 0,
      done: 2,
      failed: 1,
      workers: 0,
      without_workers: [],
    });
    const failed = JSON.parse((await quarry("queue", "list", "--status", "failed", "--json")).out).items;
    assert.equal(failed.length, 1);
    assert.match((await quarry("queue", "show", failed[0].queue_id)).out, /error_message +.*empty/);
    assert.match((await quarry("queue", "retry", "--all-failed")).out, /1 will be tried again/);
    assert.match((await quarry("queue", "cancel", failed[0].queue_id)).out, /cancelled/);
    assert.match((await quarry("queue", "prune")).out, /2 deleted/);
    assert.match((await quarry("queue", "list")).out, /No items/);
  });

  test("wrong usage is told", async () => {
    for (const args of [
      ["queue", "list", "--status", "lost"],
      ["queue", "retry"],
      ["queue", "prune", "--older-than", "x"],
      ["ingest", "docs", "--priority", "11"],
    ])
      assert.equal((await quarry(...args)).code, 2, args.join(" "));
    assert.equal((await quarry("queue", "show", "nothing")).code, 1);
  });

  test("text from standard input becomes a document", async () => {
    const { code, out } = await told("The crane is red.", "ingest", "-", "--wait");
    assert.equal(code, 0, out);
    assert.match((await quarry("search", "crane")).out, /crane is red/);
    assert.equal((await told("", "ingest", "-")).code, 1);
  });
});
