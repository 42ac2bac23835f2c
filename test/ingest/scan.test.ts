import assert from "node:assert/strict";
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { after, before, describe, test } from "node:test";
import { scan } from "../../src/ingest/scan.ts";

describe("scanning folders", () => {
  let folder: string;
  before(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), "quarry-scan-")));
    const files = [
      "b.txt",
      "a.md",
      "sub/c.pdf",
      "sub/.hidden.md",
      ".git/config",
      "node_modules/x/readme.md",
      "film.mp4",
      "data/page.md",
    ];
    for (const file of files) {
      await mkdir(join(folder, file, ".."), { recursive: true });
      await writeFile(join(folder, file), "x");
    }
    await symlink("/etc/passwd", join(folder, "secrets.txt"));
    await symlink("/etc", join(folder, "etc"));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const found = async (paths: string[], except: string[] = []) => {
    const files: string[] = [];
    const skipped: string[] = [];
    for await (const one of scan(paths, { except }))
      (one.kind === "file" ? files : skipped).push(relative(folder, one.path));
    return { files, skipped };
  };

  test("finds documents in a stable order and leaves out what is hidden, generated, linked or no document", async () => {
    assert.deepEqual(await found([folder], [join(folder, "data")]), {
      files: ["a.md", "b.txt", "sub/c.pdf"],
      skipped: [".git", "etc", "film.mp4", "node_modules", "secrets.txt", "sub/.hidden.md"],
    });
  });

  test("says why something is left out", async () => {
    const reasons = new Map<string, string>();
    for await (const one of scan([folder], { except: [] }))
      if (one.kind === "skipped") reasons.set(relative(folder, one.path), one.why);
    assert.deepEqual(
      [".git", "node_modules", "film.mp4", "etc"].map((path) => reasons.get(path)),
      ["hidden", "made by tools", ".mp4 files are no documents", "a link or a device"],
    );
  });

  test("takes a file that is named, whatever it is called", async () => {
    assert.deepEqual((await found([join(folder, "film.mp4")])).files, ["film.mp4"]);
  });

  test("says which path is not there", async () => {
    const seen: string[] = [];
    for await (const one of scan([join(folder, "nothing"), join(folder, "a.md")], { except: [] }))
      seen.push(one.kind === "refused" ? one.why : one.kind);
    assert.deepEqual(seen, ["no such file or folder", "file"], "and goes on with the others");
  });
});
