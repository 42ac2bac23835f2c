import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { checkFiles, type FileStore } from "../../../src/adapters/files.ts";
import type { HalfWriterSettings } from "./half-writer.ts";

export interface TestedFiles {
  readonly files: FileStore;
  /** What another process needs to write to the same place. */
  readonly elsewhere: HalfWriterSettings;
  /** Everything that is kept there, halves and temporary files too. */
  list(): Promise<string[]>;
  close(): Promise<void>;
}

const MB = 1_048_576;
const ODD_PATHS = [
  ...[
    "",
    "/",
    "/etc/passwd",
    "../outside",
    "a/../../outside",
    "a/./b",
    "a//b",
    "a/",
    "./a",
    ".hidden",
    "a/.hidden",
  ],
  ...["a\\b", "a\0b", "a\nb", "a b", "a?b", "a%2e", "é", "x".repeat(600)],
];

/** What every place for files must do. */
export function filesConformance(name: string, open: () => Promise<TestedFiles>): void {
  describe(`files ${name}`, () => {
    let tested: TestedFiles;
    let files: FileStore;
    before(async () => {
      tested = await open();
      files = tested.files;
    });
    after(() => tested.close());
    const text = async (path: string) => (await files.read(path))?.toString();

    it("are read as they were put, from bytes and from a stream", async () => {
      const bytes = randomBytes(100_000);
      await files.put("documents/a/bytes.bin", bytes);
      await files.put("documents/a/stream.bin", chunks(bytes, 10_007));
      await files.put("documents/a/empty.bin", new Uint8Array());
      await files.put("documents/a/nothing.bin", chunks(Buffer.alloc(0), 1));
      assert.deepEqual(await files.read("documents/a/bytes.bin"), bytes);
      assert.deepEqual(await files.read("documents/a/stream.bin"), bytes);
      assert.equal((await files.read("documents/a/empty.bin"))?.length, 0);
      assert.equal((await files.read("documents/a/nothing.bin"))?.length, 0);
      for (const name of ["bytes", "stream", "empty", "nothing"])
        assert.equal(await files.has(`documents/a/${name}.bin`), true, name);
    });

    it("are replaced by what is put there later", async () => {
      await files.put("documents/b/page.md", Buffer.from("first, and longer"));
      await files.put("documents/b/page.md", Buffer.from("second"));
      assert.equal(await text("documents/b/page.md"), "second");
    });

    it("that are not there are said not to be", async () => {
      assert.equal(await files.read("documents/none/page.md"), undefined);
      assert.equal(await files.has("documents/none/page.md"), false);
      await files.put("documents/some/page.md", Buffer.from("x"));
      for (const path of ["documents/some", "documents/some/page.md/more", "documents/some/page"])
        assert.equal(await files.has(path), false, path);
      await files.removeFolder("documents/some");
      await files.removeFolder("documents/none");
    });

    it("have names of the program's own making only", async () => {
      const hash = "0".repeat(64);
      for (const path of ODD_PATHS) {
        const refused = { code: "invalid_input" };
        await assert.rejects(files.put(path, Buffer.from("x")), refused, JSON.stringify(path));
        await assert.rejects(files.read(path), refused);
        await assert.rejects(files.has(path), refused);
        await assert.rejects(files.removeFolder(path), refused);
        await assert.rejects(
          async () => files.withLocal({ path, contentHash: hash }, async () => 1),
          refused,
        );
      }
    });

    it("come whole or not at all: a stream that breaks leaves what was there before, and no half", async () => {
      await files.put("documents/c/small.bin", Buffer.from("before"));
      for (const [path, bytes] of [
        ["documents/c/small.bin", 50_000],
        ["documents/c/large.bin", 20 * MB],
      ] as const)
        await assert.rejects(files.put(path, broken(bytes)), /the disk was pulled/);
      assert.equal(await text("documents/c/small.bin"), "before");
      assert.equal(await files.read("documents/c/large.bin"), undefined);
      assert.deepEqual((await tested.list()).filter((path) => path.includes("documents/c/")).length, 1);
    });

    it("come whole or not at all: a process that is killed while it writes leaves no half to read", async () => {
      await files.put("documents/d/page.md", Buffer.from("before"));
      for (const path of ["documents/d/page.md", "documents/d/new.md"]) {
        await killedWhileWriting({ ...tested.elsewhere, path });
        assert.equal(await text(path), path.endsWith("page.md") ? "before" : undefined);
      }
    });

    it("of any size pass through little memory, and come as a local file with the same bytes", async () => {
      const held = heldMemory();
      const hash = createHash("sha256");
      const path = "documents/e/original.bin";
      await files.put(path, measured(128, hash, held));
      const usualMb = held.seenMb.sort((a, b) => a - b)[held.seenMb.length / 2]!;
      assert.ok(usualMb < 64, `${usualMb} MB were held`);
      const contentHash = hash.digest("hex");
      const found = await files.withLocal({ path, contentHash }, async (local) => {
        assert.match(local, /\.bin$/);
        return createHash("sha256")
          .update(await readFile(local))
          .digest("hex");
      });
      assert.equal(found, contentHash);
    });

    it("below a folder go together, however many, and no others", { timeout: 120_000 }, async () => {
      const paths = Array.from({ length: 300 }, (_, n) => `documents/f/page_${n}.md`);
      const others = ["documents/f.md", "documents/ff/page.md", "documents/fg"];
      const bytes = Buffer.from("x");
      const all = [...paths, ...others];
      const next = all.values();
      await Promise.all(
        Array.from({ length: 8 }, async () => {
          for (const path of next) await files.put(path, bytes);
        }),
      );
      await files.removeFolder("documents/f");
      const left = (await tested.list()).filter((path) => path.includes("documents/f"));
      assert.equal(left.length, others.length);
      for (const path of others) assert.equal(await text(path), "x");
      await files.removeFolder("documents/f");
    });

    it("can be checked, and the check leaves nothing behind", async () => {
      const before = await tested.list();
      await checkFiles(files);
      assert.deepEqual(await tested.list(), before);
    });
  });
}

export async function* chunks(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function* broken(bytes: number): AsyncGenerator<Uint8Array> {
  for (let sent = 0; sent < bytes; sent += 50_000) yield Buffer.alloc(50_000, 7);
  throw new Error("the disk was pulled");
}

interface Held {
  readonly seenMb: number[];
  look(): void;
}

/** What is held beside the heap; now and then something is let go of only later. */
function heldMemory(): Held {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as () => void;
  const now = () => {
    gc();
    return process.memoryUsage().arrayBuffers / MB;
  };
  const before = now();
  const seenMb: number[] = [];
  return { seenMb, look: () => void seenMb.push(now() - before) };
}

async function* measured(
  megabytes: number,
  hash: ReturnType<typeof createHash>,
  held: Held,
): AsyncGenerator<Uint8Array> {
  for (let n = 0; n < megabytes; n++) {
    const bytes = randomBytes(MB);
    hash.update(bytes);
    yield bytes;
    if (n % 4 === 3) held.look();
  }
}

async function killedWhileWriting(settings: HalfWriterSettings & { path: string }): Promise<void> {
  const script = join(import.meta.dirname, "half-writer.ts");
  const child = spawn(process.execPath, [script, JSON.stringify(settings)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [word] = await once(child.stdout, "data");
  assert.equal(String(word).trim(), "writing");
  child.kill("SIGKILL");
  await once(child, "exit");
}
