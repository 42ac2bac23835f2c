import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { z } from "zod";
import { defineFunction, openQuarry } from "../../src/index.ts";
import { Running } from "./running.ts";

describe("quarry tasks", () => {
  let folder: string;
  let failed: string;
  let waiting: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "quarry-cli-"));
    const payload = z.object({ n: z.int() });
    const run = async () => {
      throw new Error("the well is \u001b[31mdry");
    };
    const draw = defineFunction({ name: "draw", entityType: "planner", payload, run });
    const quarry = await openQuarry({
      dataFolder: join(folder, ".quarry"),
      logLevel: "silent",
      functions: [draw],
    });
    const [one, other] = [
      await quarry.tasks.createEntity("planner"),
      await quarry.tasks.createEntity("planner"),
    ];
    const task = (entity_id: string) =>
      ({
        entity_type: "planner",
        entity_id,
        function_name: "draw",
        payload: { n: 7 },
        max_retries: 1,
      }) as const;
    [failed] = (await quarry.tasks.enqueue([task(one)])) as [string];
    const crew = await quarry.work({ lanes: ["tasks"] });
    while ((await quarry.tasks.read(failed)).status !== "FAILED")
      await new Promise((resolve) => setTimeout(resolve, 20));
    await crew.stop();
    [waiting] = (await quarry.tasks.enqueue([task(other)])) as [string];
    await quarry.close();
  });
  after(() => rm(folder, { recursive: true, force: true }));
  const quarry = (...args: string[]) => new Running(folder, ["tasks", ...args]).ended();

  test("lists, shows, retries and cancels", async () => {
    const all = await quarry("list");
    assert.match(all.out, new RegExp(`${waiting} +PENDING +draw .*\\n.*${failed} +FAILED`));
    assert.ok(!all.out.includes("\u001b"));
    const listed = JSON.parse((await quarry("list", "--status", "FAILED", "--json")).out);
    assert.deepEqual(
      listed.tasks.map((task: { task_id: string }) => task.task_id),
      [failed],
    );
    const shown = await quarry("show", failed, "--json");
    assert.deepEqual(JSON.parse(shown.out).payload, { n: 7 });
    assert.match((await quarry("show", failed)).out, /payload +\{"n":7\}/);
    const retried = await quarry("retry", failed, "--json");
    assert.deepEqual(JSON.parse(retried.out), { task_id: failed, status: "PENDING" });
    assert.equal(JSON.parse((await quarry("show", failed, "--json")).out).retry_count, 1);
    assert.match((await quarry("cancel", failed, waiting)).out, /cancelled\n.*cancelled/);
    assert.match((await quarry("list")).out, /No tasks/);
  });

  test("wrong usage is told, and what is not there", async () => {
    assert.match((await quarry("list", "--help")).out, /Example:\n +quarry tasks list --status FAILED/);
    for (const args of [
      ["list", "--status", "failed"],
      ["list", "--type", "agent"],
      ["show"],
      ["list", "--limit", "0"],
    ])
      assert.equal((await quarry(...args)).code, 2, args.join(" "));
    for (const verb of ["show", "retry", "cancel"]) {
      const { code, err } = await quarry(verb, "nothing");
      assert.equal(code, 1);
      assert.match(err, /there is no task "nothing"/);
    }
  });
});
