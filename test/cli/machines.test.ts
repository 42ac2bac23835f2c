import assert from "node:assert/strict";
import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Running } from "./running.ts";

/** Two machines with one database, each with a file of its own under the same path. */
describe("several machines on the command line", () => {
  let folder: string;
  const on = (machine: string, ...args: string[]) => new Running(folder, args, { QUARRY_MACHINE: machine });
  const said = async (machine: string, ...args: string[]) => (await on(machine, ...args).ended()).out;
  const json = async (machine: string, ...args: string[]) =>
    JSON.parse(await said(machine, ...args, "--json"));
  const waitsForB = /1 of them for a worker on b, where none runs \(run quarry up on b\)\n/;

  before(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), "quarry-cli-")));
    for (const machine of ["a", "b"]) {
      await writeFile(join(folder, "same.md"), `# Lamps\n\nThe lamp of machine ${machine} is lit at dusk.\n`);
      assert.equal((await on(machine, "ingest", "same.md", "--wait").ended()).code, 0);
    }
  });
  after(() => rm(folder, { recursive: true, force: true }));

  it("documents, items and passages say whose they are, where one is another machine's", async () => {
    assert.match(
      await said("a", "documents", "list"),
      / machine +file .* b +\S+same\.md\n.* a +\S+same\.md\n/s,
    );
    assert.match(await said("a", "queue", "list"), / machine +about.* b +\S+same\.md\n.* a +\S+same\.md\n/s);
    const found = await said("a", "search", "lamp");
    assert.match(found, /same\.md {2}\(a, default, /);
    assert.match(found, /same\.md {2}\(b, default, /);
    assert.deepEqual(
      (await json("a", "search", "lamp")).results.map(({ seenOn }: { seenOn: string }) => seenOn).sort(),
      ["a", "b"],
    );
  });

  it("they are asked for by machine, and say nothing of it where all are this one's", async () => {
    for (const machine of ["a", "b"]) {
      const { documents } = await json("a", "documents", "list", "--machine", machine);
      const { items } = await json("a", "queue", "list", "--machine", machine);
      assert.deepEqual([documents.length, documents[0].seenOn], [1, machine]);
      assert.deepEqual([items.length, items[0].seen_on], [1, machine]);
    }
    for (const list of ["documents", "queue"])
      assert.doesNotMatch(await said("a", list, "list", "--machine", "a"), /machine/);
    assert.match(await said("a", "documents", "list", "--machine", "b"), /machine/);
  });

  it("items that only another machine's workers can take are told, with where to start one", async () => {
    const worker = on("a", "worker");
    try {
      await worker.until(({ out }) => out.includes("\n"));
      assert.match(
        await said("b", "ingest", "same.md"),
        /Waiting for a worker on b, where the paths are: run `quarry up` there, or add --wait\. /,
      );
      assert.match(await said("a", "status"), new RegExp(`items +1 waiting, ${waitsForB.source}`));
      assert.match(await said("a", "queue", "status"), new RegExp(`pending +1, ${waitsForB.source}`));
      const withoutWorkers = [{ machine: "b", items: 1 }];
      assert.deepEqual((await json("a", "status")).items, { waiting: 1, withoutWorkers });
      assert.deepEqual((await json("a", "queue", "status")).without_workers, withoutWorkers);

      const text = on("b", "ingest", "-");
      text.say("The crane is red.");
      assert.match(
        (await text.ended()).out,
        /1 worker is at it\.|All done\./,
        "a text may be taken anywhere",
      );
      assert.match(await said("a", "ingest", "same.md"), /1 worker is at it\.|All done\./);

      const second = on("b", "worker", "--lanes", "items.oldest");
      await second.until(({ out }) => out.includes("\n"));
      while ((await json("a", "status")).items.waiting > 0);
      second.kill("SIGTERM");
      assert.equal((await second.ended()).code, 0);
      assert.doesNotMatch(await said("a", "status"), /items/);
    } finally {
      worker.kill("SIGTERM");
      await worker.ended();
    }
  });
});
