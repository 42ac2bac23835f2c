import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import {
  link,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import fc from "fast-check";
import { freeName } from "../../src/rag/filenames.ts";
import { finishMove, MOVE_STEPS, type Move, type MoveStep, moveFile } from "../../src/rag/moves.ts";

const JOB = "rag-policies_rag-1704882600-a7b2c3d4";

class Stopped extends Error {}

/** Another file system than that of temporary files, if this machine has one. */
async function otherFileSystem(): Promise<string | undefined> {
  const here = (await stat(tmpdir())).dev;
  for (const folder of ["/dev/shm", "/run/shm", "/var/tmp"]) {
    const there = await stat(folder).catch(() => undefined);
    if (there && there.dev !== here) return folder;
  }
  return undefined;
}

const OTHER = await otherFileSystem();

/** What the file systems between which files are moved can do. */
const WAYS: readonly { name: string; target?: string; links: "yes" | "no" }[] = [
  { name: "within a file system", links: "yes" },
  ...(OTHER === undefined ? [] : [{ name: "to another file system", target: OTHER, links: "yes" as const }]),
  { name: "where there are no hard links", links: "no" },
];

for (const way of WAYS) {
  describe(`moving a file ${way.name}`, () => {
    let root: string;
    let incoming: string;
    let processed: string;
    let noted: Move | undefined;
    beforeEach(async () => {
      root = await mkdtemp(join(tmpdir(), "quarry-moves-"));
      incoming = join(root, "incoming");
      await mkdir(incoming);
      processed = way.target ? await mkdtemp(join(way.target, "quarry-moves-")) : join(root, "processed");
      await mkdir(processed, { recursive: true });
      noted = undefined;
    });
    afterEach(async () => {
      await rm(root, { recursive: true });
      await rm(processed, { recursive: true, force: true });
    });

    const parts = (step: (name: MoveStep) => void | Promise<void> = () => undefined, jobId = JOB) => ({
      jobId,
      note: async (move: Move) => {
        noted = move;
      },
      step: async (name: MoveStep) => {
        if (way.links === "no" && (name === "link" || name === "naming"))
          throw Object.assign(new Error("no hard links"), { code: "EPERM", syscall: "link" });
        await step(name);
      },
    });
    const source = async (name: string, text: string) => {
      const path = join(incoming, name);
      await writeFile(path, text);
      return { path, stats: await lstat(path, { bigint: true }) };
    };
    const move = async (
      file: Awaited<ReturnType<typeof source>>,
      step?: (name: MoveStep) => void | Promise<void>,
    ) => moveFile(parts(step), file, { folder: processed, filename: basename(file.path) });

    test("it stands in the other folder, unchanged, and nothing else is left", async () => {
      const done = await move(await source("a.pdf", "bytes"));
      assert.deepEqual([done.state, done.to], ["moved", join(processed, "a.pdf")]);
      assert.equal(await readFile(done.to, "utf8"), "bytes");
      assert.deepEqual([await readdir(incoming), await readdir(processed)], [[], ["a.pdf"]]);
      assert.equal((await lstat(done.to)).nlink, 1);
    });

    test("stopped at any step and resumed, it is in exactly one place", async () => {
      const seen = new Set<MoveStep>();
      await move(await source("probe.pdf", "x"), (name) => void seen.add(name));
      assert.ok(seen.size >= 5, [...seen].join());
      for (const stop of seen) {
        const file = await source(`${stop}.pdf`, `bytes of ${stop}`);
        await assert.rejects(
          move(file, (name) => {
            if (name === stop) throw new Stopped();
          }),
          Stopped,
        );
        // Also resumed twice: whoever comes last finds it done.
        const done = await finishMove(parts(), noted!);
        await finishMove(parts(), { ...noted!, state: "placed" });
        assert.equal(await readFile(done.to, "utf8"), `bytes of ${stop}`, stop);
        assert.equal(existsSync(file.path), false, stop);
      }
      const left = [...(await readdir(incoming)), ...(await readdir(processed))];
      assert.deepEqual(
        left.filter((name) => !name.endsWith(".pdf")),
        [],
      );
      assert.equal(left.length, seen.size + 1);
    });

    test("a name that is taken, also while the move is under way, gets a suffix", async () => {
      await writeFile(join(processed, "a.pdf"), "another");
      await writeFile(join(processed, "a~2.pdf.error.json"), "{}");
      const done = await move(await source("a.pdf", "mine"), async (name) => {
        if (name === "intended") await writeFile(join(processed, "a~3.pdf"), "came meanwhile");
      });
      assert.equal(basename(done.to), "a~4.pdf");
      assert.equal(noted!.to, done.to);
      assert.equal(await readFile(done.to, "utf8"), "mine");
      assert.equal(await readFile(join(processed, "a.pdf"), "utf8"), "another");
      assert.equal(await readFile(join(processed, "a~3.pdf"), "utf8"), "came meanwhile");
    });

    test("a file that came under the old name meanwhile is left alone", async () => {
      for (const stop of ["placed", "aside"] as const) {
        const file = await source("b.pdf", "old");
        await assert.rejects(
          move(file, (name) => {
            if (name === stop) throw new Stopped();
          }),
          Stopped,
        );
        await writeFile(`${file.path}.new`, "a newer version");
        await rename(`${file.path}.new`, file.path);
        const done = await finishMove(parts(), noted!);
        assert.equal(await readFile(done.to, "utf8"), "old");
        assert.equal(await readFile(file.path, "utf8"), "a newer version");
        await rm(file.path);
        await rm(done.to);
        assert.deepEqual(await readdir(incoming), []);
      }
    });

    test("a file that went away or was replaced before is not moved", async () => {
      const file = await source("c.pdf", "old");
      await rm(file.path);
      await writeFile(file.path, "another one");
      await assert.rejects(move(file), { errorCode: "ERR_FILE_NOT_FOUND" });
      assert.equal(await readFile(file.path, "utf8"), "another one");
      assert.deepEqual(await readdir(processed), []);
    });

    test("a worker that lost its job in the middle of the move does not disturb the one that goes on", async () => {
      for (let round = 0; round < 20; round++) {
        const name = `r${round}.pdf`;
        const file = await source(name, `round ${round} `.repeat(10_000));
        await assert.rejects(
          move(file, (step) => {
            if (step === "intended") throw new Stopped();
          }),
        );
        // Its notes are refused from now on.
        const lost = { ...parts(), note: () => Promise.reject(new Stopped()) };
        const ends = await Promise.allSettled([finishMove(lost, noted!), finishMove(parts(), noted!)]);
        const finished = ends[1].status === "fulfilled" ? ends[1].value : await finishMove(parts(), noted!);
        assert.equal(await readFile(finished.to, "utf8"), `round ${round} `.repeat(10_000));
        assert.equal(existsSync(file.path), false);
        assert.deepEqual(await readdir(processed), [basename(finished.to)]);
        await rm(finished.to);
      }
    });

    test("a copy that another worker has only begun is never taken for the file", async () => {
      for (const at of ["naming", "reserved"] as const) {
        const file = await source(`${at}.pdf`, "whole");
        const begin = async (step: MoveStep) => {
          if (step !== at) return;
          const [temporary] = (await readdir(processed)).filter((name) => name.endsWith(".part"));
          if (temporary === undefined) return;
          await rm(join(processed, temporary));
          await writeFile(join(processed, temporary), "wh");
        };
        const first = await move(file, begin).catch(() => undefined);
        const finished = first ?? (await finishMove(parts(), noted!));
        assert.equal(await readFile(finished.to, "utf8"), "whole");
        assert.equal(existsSync(file.path), false);
        assert.deepEqual(await readdir(processed), [basename(finished.to)]);
        await rm(finished.to);
      }
    });

    test("two jobs whose files have one name keep both", async () => {
      const one = await source("same.pdf", "one");
      await mkdir(join(incoming, "sub"));
      const other = await source("sub/same.pdf", "other");
      const target = { folder: processed, filename: "same.pdf" };
      const ends = await Promise.all([
        moveFile(parts(undefined, "job-1"), one, target),
        moveFile(parts(undefined, "job-2"), other, target),
      ]);
      const texts = await Promise.all(ends.map(({ to }) => readFile(to, "utf8")));
      assert.deepEqual(texts, ["one", "other"]);
    });
  });
}

describe("names of moved files", () => {
  test("fit the file system, whatever they are, and keep their extension", async () => {
    const folder = await mkdtemp(join(tmpdir(), "quarry-names-"));
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "grapheme", minLength: 1, maxLength: 300 }), async (text) => {
        const wanted = `${text.replaceAll(/[/\\\0]/g, "")}x.pdf`;
        const name = await freeName(folder, wanted);
        assert.ok(Buffer.byteLength(`.${name}.error.json`) <= 255);
        assert.ok(name.endsWith(".pdf"));
        await writeFile(join(folder, name), "");
        const next = await freeName(folder, wanted);
        assert.notEqual(next, name);
        await link(join(folder, name), join(folder, next));
        await rm(join(folder, name));
        await rm(join(folder, next));
      }),
      { numRuns: 50 },
    );
    await rm(folder, { recursive: true });
  });

  test("every step that can be stopped at is named once", () => {
    assert.equal(new Set(MOVE_STEPS).size, MOVE_STEPS.length);
  });
});
