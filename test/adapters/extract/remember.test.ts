import assert from "node:assert/strict";
import { utimes, writeFile } from "node:fs/promises";
import { after, describe, test } from "node:test";
import { rememberByFile } from "../../../src/adapters/extract/remember.ts";
import { Files } from "./files.ts";

describe("what was made of a file", () => {
  const files = new Files();
  after(() => files.remove());
  let made = 0;
  const dropped: string[] = [];
  const read = rememberByFile(
    2,
    async (_path: string, how: string) => `${how} ${++made}`,
    (value) => dropped.push(value),
  );

  test("is kept until the file changes or others need the room", async () => {
    const [a, b] = [await files.put("a", "a"), await files.put("b", "b")];
    assert.equal(await read(a.path, "text"), "text 1");
    assert.equal(await read(b.path, "text"), "text 2");
    assert.equal(await read(a.path, "text"), "text 1");
    assert.equal(await read(a.path, "code"), "code 3");
    assert.deepEqual(dropped, ["text 2"]);
    await writeFile(a.path, "c");
    await utimes(a.path, 1, 1);
    assert.equal(await read(a.path, "text"), "text 4");
  });

  test("is not kept when it could not be made", async () => {
    let tries = 0;
    const fails = rememberByFile(1, async () => {
      if (++tries === 1) throw new Error("not yet");
      return tries;
    });
    const { path } = await files.put("a", "a");
    await assert.rejects(fails(path), /not yet/);
    assert.equal(await fails(path), 2);
  });
});
