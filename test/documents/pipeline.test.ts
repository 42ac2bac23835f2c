import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { QuarryError } from "../../src/index.ts";
import { Pauses } from "../../src/queue/pauses.ts";
import { DATABASES, type TestDatabase } from "../support/databases.ts";
import { openPipeline, type Pipeline, until, vectorOf } from "./parts.ts";

const TENANT = { tenant: "default" };

for (const { name, open } of DATABASES) {
  describe(`documents on ${name}`, () => {
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

    const write = async (filename: string, text: string) => {
      const path = join(opened.folder, filename);
      await writeFile(path, text);
      return path;
    };
    const add = async (filename: string, text: string) =>
      pipeline.documents.add({ path: await write(filename, text) });
    const found = async (query: string) => {
      const hits = await pipeline.parts.fulltext.search(query, { limit: 10, filter: TENANT });
      return hits.map((hit) => hit.documentId);
    };

    test("go through all phases, pages without text included, and nothing is done twice", async () => {
      const { id } = await add("a.txt", "Ada wrote to Bob.\f[scan]Carol answered.\f\fBob slept.");
      await pipeline.drain();
      const document = await pipeline.documents.show(id);
      assert.equal(document.state, "completed");
      assert.deepEqual(
        [document.ocrStatus, document.vectorStatus, document.graphragStatus, document.pages, document.chunks],
        ["completed", "completed", "completed", 4, 3],
      );
      assert.deepEqual(await found("carol"), [id]);
      const nearest = await pipeline.parts.vectors.search(vectorOf("Bob slept."), {
        limit: 1,
        filter: TENANT,
      });
      assert.equal(nearest[0]?.documentId, id);
      assert.equal((await pipeline.parts.graph.find(["bob"], TENANT))[0]?.mentions, 2);
      const { recognised, embedded, extracted } = pipeline.calls;
      assert.deepEqual([recognised.length, embedded.length, extracted.length], [1, 3, 3]);
    });

    test("that are the same again are left alone; the same text elsewhere is not embedded again", async () => {
      const first = await add("a.txt", "Ada wrote to Bob.");
      await pipeline.drain();
      const again = await pipeline.documents.add({ path: join(opened.folder, "a.txt") });
      assert.deepEqual([again.id, again.change], [first.id, "unchanged"]);
      const copy = await add("b.txt", "Ada wrote to Bob.");
      assert.equal(copy.change, "added");
      await pipeline.drain();
      assert.equal((await pipeline.documents.show(copy.id)).state, "completed");
      assert.deepEqual([pipeline.calls.embedded.length, pipeline.calls.extracted.length], [1, 1]);
      assert.deepEqual((await found("ada")).sort(), [first.id, copy.id].sort());
    });

    test("that were edited replace their old version when they can be searched; only the edit is embedded", async () => {
      const paragraphs = Array.from(
        { length: 12 },
        (_, n) => `## Part ${n}\n\n${"stone ".repeat(60)}number${n}.`,
      );
      const old = await add("a.md", paragraphs.join("\n\n"));
      await pipeline.drain();
      const before = pipeline.calls.embedded.length;
      assert.equal(before, 12);
      paragraphs[5] = `## Part 5\n\n${"stone ".repeat(60)}changed.`;
      const renewed = await add("a.md", paragraphs.join("\n\n"));
      assert.equal(renewed.change, "replaced");
      const pauses = new Pauses(opened.database);
      await pauses.pause("chunks.vector");
      const held = await pipeline.crew();
      const looked =
        "select 1 from document_removals where kind = 'replaced' and (run_after is not null or status = 'completed')";
      await until(async () => (await opened.database.query(looked)).length > 0);
      assert.deepEqual(
        await found("number5"),
        [old.id],
        "until the new one can be searched the old one is found",
      );
      assert.equal((await pipeline.documents.show(old.id)).state, "completed");
      await held.stop();
      await pauses.resume("chunks.vector");
      await pipeline.drain();
      const running = await pipeline.crew();
      await until(async () => (await pipeline.documents.list()).documents.length === 1);
      await until(async () => (await found("number5")).length === 0);
      await running.stop();
      assert.equal(pipeline.calls.embedded.length, before + 1);
      assert.deepEqual(await found("changed"), [renewed.id]);
      assert.deepEqual(await found("number6"), [renewed.id]);
      assert.equal(await pipeline.parts.vectors.count(TENANT), 12);
      assert.equal(existsSync(join(pipeline.dataFolder, "documents", old.id)), false);
      paragraphs[7] = `## Part 7\n\n${"stone ".repeat(60)}changed too.`;
      await add("a.md", paragraphs.join("\n\n"));
      await pipeline.drain();
      assert.equal(pipeline.calls.embedded.length, before + 2, "what the first version knew is still known");
    });

    test("with the same text in many places have it read once, even at the same moment", async () => {
      for (let number = 0; number < 12; number++)
        await add(`${number}.txt`, "The same.\f[scan]The same scan.");
      await pipeline.drain();
      const { recognised, embedded, extracted } = pipeline.calls;
      assert.deepEqual([recognised.length, embedded.length, extracted.length], [1, 2, 2]);
    });

    test("wait out an outage without spending their tries", async () => {
      let isDown = true;
      pipeline.calls.before = (step) => {
        if (step === "embed" && isDown) throw new QuarryError("model_unavailable", "it is down");
      };
      const { id } = await add("a.txt", "One.\fTwo.");
      const running = await pipeline.crew();
      const spent = () =>
        opened.database.query(
          "select 1 from task_queue_chunk where vector_run_after is not null and vector_retry_count = 0",
        );
      await until(async () => (await spent()).length === 2);
      isDown = false;
      await opened.database.query("update task_queue_chunk set vector_run_after = null");
      await until(async () => (await pipeline.documents.show(id)).state === "completed");
      await running.stop();
    });

    test("that have text do not wait behind scans", async () => {
      const { promise: isRead, resolve: read } = Promise.withResolvers<void>();
      pipeline.calls.before = (step) => (step === "ocr" ? isRead : undefined);
      const scans = await add(
        "scans.txt",
        Array.from({ length: 12 }, (_, page) => `[scan]Page ${page}.`).join("\f"),
      );
      const running = await pipeline.crew();
      const marked = () => opened.database.query("select 1 from task_queue_page where is_scan = true");
      await until(async () => (await marked()).length === 12);
      const { id } = await add("note.txt", "Ada wrote to Bob.");
      await until(async () => (await pipeline.documents.show(id)).state === "completed");
      assert.equal(pipeline.calls.recognised.length, 0);
      read();
      await until(async () => (await pipeline.documents.show(scans.id)).state === "completed");
      await running.stop();
      const spent = await opened.database.query("select 1 from task_queue_page where ocr_retry_count > 0");
      assert.deepEqual([pipeline.calls.recognised.length, spent.length], [12, 0]);
    });

    test("that several processes take in at the same moment are one document, and the last version wins", async () => {
      const path = await write("a.txt", "First.");
      const others = await Promise.all([open, open].map(() => openPipeline(opened)));
      const all = [pipeline, ...others];
      const first = await Promise.all(all.map(({ documents }) => documents.add({ path })));
      assert.equal(new Set(first.map(({ id }) => id)).size, 1);
      await write("a.txt", "Second.");
      const second = await Promise.all(all.map(({ documents }) => documents.add({ path })));
      assert.equal(new Set(second.map(({ id }) => id)).size, 1);
      const current = await opened.database.query("select id from documents where replaced_by is null");
      assert.deepEqual(
        current.map((row) => row.id),
        [second[0]!.id],
      );
      for (const other of others) await other.close();
    });

    test("are worked on by several processes at once, each text once", async () => {
      const ids: string[] = [];
      for (let number = 0; number < 8; number++)
        ids.push((await add(`${number}.txt`, `One ${number}.\f[scan]Two ${number}.\fThree ${number}.`)).id);
      const other = await openPipeline(opened);
      const crews = await Promise.all([pipeline.crew(), other.crew()]);
      await until(async () => (await pipeline.documents.progress(ids)).open === 0);
      for (const crew of crews) await crew.stop();
      const both = [pipeline, other];
      for (const kind of ["recognised", "embedded", "extracted"] as const) {
        const texts = both.flatMap(({ calls }) => calls[kind]);
        assert.equal(texts.length, kind === "recognised" ? 8 : 24, kind);
      }
      assert.equal(await pipeline.parts.vectors.count(TENANT), 24);
      await other.close();
    });

    test("with a bad page keep the good ones, say what failed, and retry only that", async () => {
      let isTorn = true;
      pipeline.calls.before = (step, text) => {
        if (step === "ocr" && text.includes("torn") && isTorn) throw new Error("cannot be made out");
      };
      const { id } = await add("a.txt", "Good one.\f[scan]torn page\f[scan]Fine scan.");
      const running = await pipeline.crew();
      await until(async () => (await pipeline.documents.show(id)).graphrag.completed === 2);
      await running.stop();
      // Waiting for the third try would take the test seconds.
      await opened.database.query(
        "update task_queue_page set ocr_retry_count = max_retries, ocr_run_after = null where ocr_status = 'failed'",
      );
      const document = await pipeline.documents.show(id);
      assert.equal(document.state, "partial");
      assert.deepEqual(
        document.failures.map(({ phase, pageNumber, error }) => [phase, pageNumber, error]),
        [["ocr", 2, "page 2: cannot be made out"]],
      );
      assert.match(document.error ?? "", /cannot be made out/);
      assert.deepEqual(await found("fine"), [id]);
      isTorn = false;
      assert.equal(await pipeline.documents.retry(id), 1);
      await pipeline.drain();
      assert.equal((await pipeline.documents.show(id)).state, "completed");
      assert.equal(pipeline.calls.recognised.filter((text) => text.includes("Fine")).length, 1);
    });

    test("that cannot be read at all fail at once, with the reason, and the rest of the batch is unharmed", async () => {
      const bad = await add("bad.txt", "[broken]");
      const good = await add("good.txt", "Good.");
      await pipeline.drain();
      const document = await pipeline.documents.show(bad.id);
      assert.deepEqual([document.state, document.error], ["failed", "it is broken"]);
      assert.equal((await pipeline.documents.show(good.id)).state, "completed");
      const path = join(opened.folder, "bad.txt");
      assert.equal((await pipeline.documents.add({ path })).change, "unchanged");
      assert.equal((await pipeline.documents.add({ path, isRetried: true })).change, "retried");
    });

    test("redo a phase and those after it, and leave nothing of before behind", async () => {
      const { id } = await add("a.txt", "[scan]Ada wrote.\fBob slept.");
      await pipeline.drain();
      const counts = () => [
        pipeline.calls.recognised.length,
        pipeline.calls.embedded.length,
        pipeline.calls.extracted.length,
      ];
      assert.deepEqual(counts(), [1, 2, 2]);
      await pipeline.documents.redo(id, "graphrag");
      assert.equal((await pipeline.documents.show(id)).graphragStatus, "pending");
      await pipeline.drain();
      assert.deepEqual(counts(), [1, 2, 4]);
      await pipeline.documents.redo(id, "vector");
      const half = await pipeline.documents.show(id);
      assert.deepEqual(
        [half.ocrStatus, half.vectorStatus, half.graphragStatus],
        ["completed", "pending", "pending"],
      );
      await pipeline.drain();
      assert.deepEqual(counts(), [1, 4, 4], "the entities of the same text are still known");
      pipeline.calls.before = () => undefined;
      await pipeline.documents.redo(id, "ocr");
      await pipeline.drain();
      assert.deepEqual(counts(), [2, 4, 4]);
      assert.equal((await pipeline.documents.show(id)).state, "completed");
      const running = await pipeline.crew();
      await until(
        async () =>
          (await opened.database.query("select 1 from document_removals where status <> 'completed'"))
            .length === 0,
      );
      await running.stop();
      assert.equal(await pipeline.parts.vectors.count(TENANT), 2);
      assert.equal((await pipeline.parts.graph.find(["bob"], TENANT))[0]?.mentions, 1);
    });

    test("can be cancelled while they are worked on; what was done stays and a retry goes on", async () => {
      const started = Promise.withResolvers<void>();
      const aborted = Promise.withResolvers<void>();
      pipeline.calls.before = async (step, text, signal) => {
        if (step !== "ocr" || !text.includes("slow")) return;
        started.resolve();
        signal.addEventListener("abort", () => aborted.resolve());
        await aborted.promise;
      };
      const { id } = await add("a.txt", "Good page.\f[scan]slow one");
      const running = await pipeline.crew();
      await started.promise;
      await until(async () => (await pipeline.documents.show(id)).graphrag.completed === 1);
      const { waiting, running: taken } = await pipeline.documents.cancel(id);
      assert.deepEqual([waiting, taken], [0, 1]);
      await aborted.promise;
      await running.stop();
      const document = await pipeline.documents.show(id);
      assert.equal(document.state, "partial");
      assert.match(document.failures[0]?.error ?? "", /cancelled/);
      assert.deepEqual(await found("good"), [id]);
      assert.deepEqual(await pipeline.documents.cancel(id), { waiting: 0, running: 0 });
      pipeline.calls.before = () => undefined;
      await pipeline.documents.retry(id);
      await pipeline.drain();
      assert.equal((await pipeline.documents.show(id)).state, "completed");
    });

    test("leave every store when they are deleted, even while a worker is about to write", async () => {
      const kept = await add("kept.txt", "Kept text.");
      const gone = await add("gone.txt", "Gone text.");
      const embedding = Promise.withResolvers<void>();
      const deleted = Promise.withResolvers<void>();
      pipeline.calls.before = async (step, text) => {
        if (step !== "embed" || !text.includes("Gone")) return;
        embedding.resolve();
        await deleted.promise;
      };
      const running = await pipeline.crew();
      await embedding.promise;
      await pipeline.documents.delete(gone.id);
      deleted.resolve();
      await assert.rejects(pipeline.documents.show(gone.id), { code: "not_found" });
      await until(
        async () =>
          (await opened.database.query("select 1 from document_removals where status <> 'completed'"))
            .length === 0,
      );
      await running.stop();
      assert.deepEqual(await found("text"), [kept.id]);
      assert.equal(await pipeline.parts.vectors.count(TENANT), 1);
      assert.equal(existsSync(join(pipeline.dataFolder, "documents", gone.id)), false);
      assert.deepEqual(
        await opened.database.query(`select 1 from step_cache where document_id = '${gone.id}'`),
        [],
      );
      const [removal] = await opened.database.query(
        "select vectors_status, fulltext_status, graph_status, files_status from document_removals",
      );
      assert.deepEqual(new Set(Object.values(removal!)), new Set(["completed"]));
    });

    test("wait while a lane is paused, whoever paused it", async () => {
      const pauses = new Pauses(opened.database);
      await pauses.pause("chunks.vector");
      const { id } = await add("a.txt", "Some text.");
      const running = await pipeline.crew();
      await until(async () => (await pipeline.documents.show(id)).chunks === 1);
      await new Promise((resolve) => setTimeout(resolve, 300));
      assert.equal(pipeline.calls.embedded.length, 0);
      await pauses.resume("chunks.vector");
      await until(async () => (await pipeline.documents.show(id)).state === "completed");
      await running.stop();
    });

    test("one text that the model refuses fails alone", async () => {
      pipeline.calls.before = (step, text) => {
        if (step === "embed" && text.includes("poison")) throw new Error("refused");
      };
      const { id } = await add("a.txt", ["fine one", "poison", "fine two", "fine three"].join("\f"));
      const running = await pipeline.crew();
      await until(async () => (await pipeline.documents.show(id)).vector.completed === 3);
      await running.stop();
      const { vector } = await pipeline.documents.show(id);
      assert.deepEqual([vector.completed, vector.total], [3, 4]);
    });

    test("are listed by what they are called and how far they are", async () => {
      await add("alpha.txt", "Text.");
      await add("beta.txt", "[broken]");
      await pipeline.drain();
      await add("gamma.txt", "Waiting.");
      const names = async (filter: object) =>
        (await pipeline.documents.list(filter)).documents.map(({ filename }) => filename);
      assert.deepEqual(await names({}), ["gamma.txt", "beta.txt", "alpha.txt"]);
      assert.deepEqual(await names({ state: "completed" }), ["alpha.txt"]);
      assert.deepEqual(await names({ state: "failed" }), ["beta.txt"]);
      assert.deepEqual(await names({ state: "queued" }), ["gamma.txt"]);
      assert.deepEqual(await names({ name: "BET" }), ["beta.txt"]);
      assert.deepEqual(await names({ vector: "completed" }), ["alpha.txt"]);
      assert.deepEqual(await names({ tenant: "nobody" }), []);
      const first = await pipeline.documents.list({ limit: 2 });
      const rest = await pipeline.documents.list({ limit: 2, after: first.next });
      assert.deepEqual(
        [...first.documents, ...rest.documents].map(({ filename }) => filename),
        ["gamma.txt", "beta.txt", "alpha.txt"],
      );
      assert.equal(rest.next, undefined);
      await assert.rejects(pipeline.documents.list({ limit: 0 }), { code: "invalid_input" });
      await assert.rejects(pipeline.documents.list({ after: "x" }), { code: "invalid_input" });
    });

    test("are refused with a reason when they cannot be taken in", async () => {
      await assert.rejects(pipeline.documents.add({ path: join(opened.folder, "none") }), {
        code: "not_found",
      });
      await assert.rejects(pipeline.documents.add({ path: opened.folder }), { code: "invalid_input" });
      const big = await write("big.txt", "x".repeat(1_000_001));
      await assert.rejects(pipeline.documents.add({ path: big }), {
        code: "file_too_large",
        message: /QUARRY_FILE_MB_MAX/,
      });
      const path = await write("a.txt", "x");
      await assert.rejects(pipeline.documents.add({ path, tenant: "../x" }), { code: "invalid_input" });
      assert.deepEqual((await pipeline.documents.list()).documents, []);
    });
  });
}
