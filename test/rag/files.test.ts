import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  chmod,
  link,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { writeErrorRecord } from "../../src/rag/error-record.ts";
import { errorFields, RagError } from "../../src/rag/errors.ts";
import { openSource, targetFolder } from "../../src/rag/folders.ts";
import { takeFile } from "../../src/rag/intake.ts";
import { shortHash } from "../../src/rag/moves.ts";
import { type Rag, readRags } from "../../src/rag/settings.ts";

const NOBODY = 65_534;

describe("files of a RAG", () => {
  let root: string;
  let rag: Rag;
  let secret: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "quarry-files-"));
    rag = readRags({ r: {} }, { folder: root, where: "the test", model: "m" }).get("r")!;
    await mkdir(rag.folders.incoming, { recursive: true });
    await mkdir(join(root, "outside"));
    secret = join(root, "outside", "a.txt");
    await writeFile(secret, "secret");
    await writeFile(join(rag.folders.incoming, "a.txt"), "mine");
  });
  afterEach(() => rm(root, { recursive: true }));

  const textOf = async (path: string) => {
    const source = await openSource(rag, path);
    const text = await source.handle.readFile("utf8");
    await source.handle.close();
    return [source.name, text];
  };
  const refused = { errorCode: "ERR_PATH_NOT_ALLOWED" };

  test("have one name, in whichever of its folders they lie", async () => {
    await mkdir(join(rag.folders.failed, "sub"), { recursive: true });
    await writeFile(join(rag.folders.failed, "sub", "b.txt"), "b");
    await writeFile(join(rag.folders.sources, "c.txt"), "c");
    assert.deepEqual(await textOf(join(rag.folders.incoming, "a.txt")), ["a.txt", "mine"]);
    assert.deepEqual(await textOf(join(rag.folders.incoming, "..", "incoming", "a.txt")), ["a.txt", "mine"]);
    assert.deepEqual(await textOf(join(rag.folders.failed, "sub", "b.txt")), ["sub/b.txt", "b"]);
    assert.deepEqual(await textOf(join(rag.folders.sources, "c.txt")), ["c.txt", "c"]);
  });

  test("are regular files inside its folder, reached without links", async () => {
    const { incoming, sources } = rag.folders;
    await symlink(secret, join(incoming, "link.txt"));
    await symlink(join(incoming, "a.txt"), join(incoming, "inner.txt"));
    await symlink(join(root, "outside"), join(incoming, "folder"));
    await mkdir(`${sources}-twin`);
    await writeFile(join(`${sources}-twin`, "a.txt"), "a twin's");
    execFileSync("mkfifo", [join(incoming, "pipe.txt")]);
    for (const path of [
      secret,
      join(incoming, "../../../../outside/a.txt"),
      join(`${sources}-twin`, "a.txt"),
      join(incoming, "link.txt"),
      join(incoming, "inner.txt"),
      join(incoming, "folder", "a.txt"),
      join(incoming, "pipe.txt"),
      incoming,
      "incoming/a.txt",
      `${incoming}/a.txt\0.pdf`,
      "",
    ])
      await assert.rejects(openSource(rag, path), refused, path);
    await assert.rejects(openSource(rag, join(incoming, "b.txt")), { errorCode: "ERR_FILE_NOT_FOUND" });
  });

  test("that may not be read are told apart from those that are missing", async () => {
    const path = join(rag.folders.incoming, "a.txt");
    await chmod(path, 0);
    await chmod(root, 0o755);
    await chmod(rag.folders.incoming, 0o755);
    // Root may read everything, so it is somebody else for a moment.
    const isRoot = process.geteuid?.() === 0;
    if (isRoot) process.seteuid!(NOBODY);
    try {
      await assert.rejects(openSource(rag, path), { errorCode: "ERR_FILE_UNREADABLE" });
      const missing = join(rag.folders.incoming, "b.txt");
      await assert.rejects(openSource(rag, missing), { errorCode: "ERR_FILE_NOT_FOUND" });
    } finally {
      if (isRoot) process.seteuid!(0);
    }
  });

  test("are never read through a folder that is swapped for a link while they are opened", async () => {
    const folder = join(rag.folders.incoming, "sub");
    const away = join(root, "away");
    await mkdir(folder);
    await writeFile(join(folder, "a.txt"), "mine");
    let isOver = false;
    const swapping = (async () => {
      while (!isOver) {
        await rename(folder, away);
        await symlink(join(root, "outside"), folder);
        await rm(folder);
        await rename(away, folder);
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    })();
    const seen = { mine: 0, refused: 0 };
    for (let round = 0; round < 1_500; round++) {
      const [, text] = await textOf(join(folder, "a.txt")).catch((error) => {
        if (!(error instanceof RagError)) throw error;
        return ["", "refused"];
      });
      seen[text as keyof typeof seen]++;
    }
    isOver = true;
    await swapping;
    assert.deepEqual(Object.keys(seen), ["mine", "refused"]);
    assert.ok(seen.mine > 0 && seen.refused > 0, JSON.stringify(seen));
  });

  test("are not moved into a folder that is a link", async () => {
    await symlink(join(root, "outside"), rag.folders.processed);
    await assert.rejects(targetFolder(rag, "processed"), refused);
    assert.equal(await targetFolder(rag, "failed"), rag.folders.failed);
  });

  test("from elsewhere are copied into incoming, apart from what has the name already", async () => {
    const taken = await takeFile(rag, secret);
    assert.deepEqual(
      [taken.path, taken.filename, taken.isCopied],
      [join(rag.folders.incoming, "a~2.txt"), "a.txt", true],
    );
    assert.equal(await readFile(taken.path, "utf8"), "secret");
    assert.equal(await readFile(secret, "utf8"), "secret");
    const own = await takeFile(rag, join(rag.folders.incoming, "a.txt"));
    assert.deepEqual([own.path, own.isCopied], [join(rag.folders.incoming, "a.txt"), false]);
    assert.deepEqual((await readdir(rag.folders.incoming)).toSorted(), ["a.txt", "a~2.txt"]);
    await assert.rejects(takeFile(rag, join(root, "nope.txt")), { errorCode: "ERR_FILE_NOT_FOUND" });
    await assert.rejects(takeFile(rag, join(root, "outside")), refused);
    // A link inside the folder is no file from elsewhere.
    await symlink(secret, join(rag.folders.incoming, "link.txt"));
    await assert.rejects(takeFile(rag, join(rag.folders.incoming, "link.txt")), refused);
  });

  test("many of one name, copied at once, all get a name of their own", async () => {
    const taken = await Promise.all(Array.from({ length: 20 }, () => takeFile(rag, secret)));
    assert.equal(new Set(taken.map(({ path }) => path)).size, 20);
    for (const { path } of taken) assert.equal(await readFile(path, "utf8"), "secret");
  });
});

describe("error records", () => {
  test("replace those of the same job and leave those of others", async () => {
    const folder = await mkdtemp(join(tmpdir(), "quarry-records-"));
    const record = (job_id: string, error: string) => ({
      ...{ job_id, rag_id: "r", filename: "a.pdf", status: "failed" as const },
      ...{ submitted_at: "x", started_at: null, failed_at: "y", retry_count: 1, max_retries: 3 },
      ...errorFields(new RagError("ERR_PDF_INVALID", error), "a.pdf"),
    });
    await writeErrorRecord(folder, "a.pdf", record("rag-r-1-aaaaaaaa", "first"));
    // A worker that was killed while it wrote leaves its half; whoever writes next takes it away.
    await writeFile(join(folder, `.${shortHash("rag-r-1-aaaaaaaa")}.0123.part`), "half a rec");
    await writeErrorRecord(folder, "a.pdf", record("rag-r-1-aaaaaaaa", "again"));
    await writeErrorRecord(folder, "a.pdf", record("rag-r-1-bbbbbbbb", "another job"));
    await link(join(folder, "a.pdf.error.json"), join(folder, "b.pdf.error.json"));
    assert.deepEqual((await readdir(folder)).toSorted(), [
      "a.pdf.error.json",
      "a.pdf.rag-r-1-bbbbbbbb.error.json",
      "b.pdf.error.json",
    ]);
    assert.equal(JSON.parse(await readFile(join(folder, "a.pdf.error.json"), "utf8")).error, "again");
    await rm(folder, { recursive: true });
  });

  test("show no secrets", () => {
    const cause = new Error("connect redis://:hunter2-canary@localhost failed");
    const fields = errorFields(
      new RagError("ERR_TIMEOUT", `no answer: ${cause.message}`, { cause }),
      "a.pdf",
    );
    assert.doesNotMatch(JSON.stringify(fields), /canary/);
  });
});
