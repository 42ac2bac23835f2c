import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { openFolderFiles } from "../../../src/adapters/files/folder.ts";
import { filesConformance } from "./conformance.ts";

filesConformance("in a folder", async () => {
  const folder = await mkdtemp(join(tmpdir(), "quarry-files-"));
  return {
    files: openFolderFiles(folder),
    elsewhere: { folder },
    list: async () => filesBelow(folder),
    close: () => rm(folder, { recursive: true, force: true }),
  };
});

it("folders of files are nobody else's to look into", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "quarry-files-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await openFolderFiles(join(folder, "data")).put("documents/a/page.md", Buffer.from("x"));
  for (const path of ["data", "data/documents", "data/documents/a"])
    assert.equal((await stat(join(folder, path))).mode & 0o777, 0o700);
});

/** The temporary file of a process that was killed is hidden, and not part of what is kept. */
function filesBelow(folder: string): string[] {
  return globSync("**/*", { cwd: folder, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}
