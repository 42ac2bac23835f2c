import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { Documents } from "../../src/documents/documents.ts";
import { QuarryError } from "../../src/errors.ts";
import { bound } from "../support/bound.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import { openPipeline, type Pipeline, until } from "./parts.ts";

for (const { name, open } of DATABASES) {
  describe(`a document that is taken in again, on ${name}`, () => {
    let opened: TestDatabase;
    let pipeline: Pipeline;
    beforeEach(async () => {
      opened = await open();
      pipeline = await openPipeline(opened);
    });
    afterEach(async () => {
      await pipeline.close();
      await opened.close();
    });

    const add = async (
      text: string,
      more: { metadata?: Record<string, unknown>; isRetried?: boolean } = {},
    ) => {
      const path = join(opened.folder, "a.txt");
      await writeFile(path, text);
      return pipeline.documents.add({ path, ...more });
    };
    const workUntil = async (isTrue: () => Promise<boolean>) => {
      const running = await pipeline.crew();
      await until(isTrue);
      await running.stop();
    };

    test("with other metadata keeps its id and its work; the metadata are the new ones", async () => {
      const first = await add("Ada wrote.", { metadata: { year: 2025, by: "Ada" } });
      await pipeline.drain();
      const second = await add("Ada wrote.", { metadata: { year: 2026 } });
      assert.deepEqual([second.id, second.change], [first.id, "metadata_changed"]);
      const { metadata, state } = await pipeline.documents.show(first.id);
      assert.deepEqual([metadata, state], [{ year: 2026 }, "completed"]);
      assert.equal((await add("Ada wrote.", { metadata: { year: 2026 } })).change, "unchanged");
      assert.equal((await add("Ada wrote.")).change, "unchanged", "metadata that are not given stay");
      assert.equal((await pipeline.documents.list()).documents.length, 1);
      assert.equal(pipeline.calls.inspected.length, 1);
    });

    test("with other metadata and a retry has both", async () => {
      const { id } = await add("[broken]");
      await pipeline.drain();
      const again = await add("[broken]", { metadata: { year: 2026 }, isRetried: true });
      assert.deepEqual([again.id, again.change], [id, "retried"]);
      assert.deepEqual((await pipeline.documents.show(id)).metadata, { year: 2026 });
    });

    test("after a commit whose answer was lost has its file, and is worked on", async () => {
      const { database } = opened;
      const cut = new Proxy(database, {
        get: (target, name) => {
          if (name !== "transaction") return bound(target, name);
          return async (work: Parameters<typeof target.transaction>[0]) => {
            await target.transaction(work);
            throw new QuarryError("commit_unknown", "the line was cut");
          };
        },
      });
      const path = join(opened.folder, "a.txt");
      await writeFile(path, "Ada wrote.");
      const documents = new Documents({
        ...pipeline.parts,
        database: cut,
        attemptsMax: 3,
        fileBytesMax: 1_000,
      });
      await assert.rejects(documents.add({ path }), { code: "commit_unknown" });
      assert.equal((await add("Ada wrote.")).change, "unchanged");
      await pipeline.drain();
      const [document] = (await pipeline.documents.list()).documents;
      assert.equal(document!.state, "completed");
    });

    test("with metadata that cannot be stored is refused", async () => {
      await add("Ada wrote.");
      await assert.rejects(add("Ada wrote.", { metadata: { by: "a\0b" } }), { code: "invalid_input" });
    });

    test("after it failed leaves no failed versions behind, also when it fails again", async () => {
      for (const text of ["[broken] one", "[broken] two", "[broken] three"]) {
        await add(text);
        await pipeline.drain();
      }
      await workUntil(async () => (await pipeline.documents.list()).documents.length === 1);
      assert.deepEqual((await pipeline.documents.states()).failed, 1);
    });

    test("and fails now keeps the version that can be searched", async () => {
      const good = await add("Ada wrote.");
      await pipeline.drain();
      for (const text of ["[broken] one", "[broken] two"]) {
        await add(text);
        await pipeline.drain();
      }
      await workUntil(async () => (await pipeline.documents.list()).documents.length === 2);
      assert.equal((await pipeline.documents.show(good.id)).state, "completed");
      const states = await pipeline.documents.states();
      assert.deepEqual([states.completed, states.failed], [0, 1], "old versions are not counted");
    });

    test("is known by a beginning of its id that no other has", async () => {
      const { id } = await add("Ada wrote.");
      assert.equal(await pipeline.documents.idOf(id.slice(0, 20)), id);
      assert.equal(await pipeline.documents.idOf(id.toUpperCase()), id);
      await writeFile(join(opened.folder, "b.txt"), "Bob slept.");
      await pipeline.documents.add({ path: join(opened.folder, "b.txt") });
      // Ids rise with time: the first digits of two that were taken in together are the same.
      await assert.rejects(pipeline.documents.idOf(id.slice(0, 4)), {
        code: "invalid_input",
        message: /several/,
      });
      await assert.rejects(pipeline.documents.idOf("00000000"), { code: "not_found" });
      await assert.rejects(pipeline.documents.idOf("a%"), { code: "invalid_input" });
    });

    test("but cannot be split does not leave the number of pages unknown for ever", async () => {
      await add("[broken]");
      assert.equal((await pipeline.documents.progress()).unsplit, 1);
      await pipeline.drain();
      const { unsplit, open: stillOpen } = await pipeline.documents.progress();
      assert.deepEqual([unsplit, stillOpen], [0, 0]);
    });
  });
}
