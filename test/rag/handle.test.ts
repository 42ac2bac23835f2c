import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import type { NewDocument } from "../../src/documents/documents.ts";
import { type Crew, QuarryError } from "../../src/index.ts";
import { createLog } from "../../src/log.ts";
import type { JobMessage } from "../../src/rag/message.ts";
import { until } from "../documents/parts.ts";
import { type Desk, openDesk, RAG, TRANSPORTS } from "./desk.ts";

const reindex = { reindex: true, skip_validation: false, preserve_metadata: true };

for (const transport of TRANSPORTS) {
  describe(`jobs of RAGs on ${transport.name}`, () => {
    let desk: Desk;
    let crew: Crew;
    beforeEach(async () => {
      desk = await openDesk(transport);
      crew = await desk.work();
    });
    afterEach(() => desk.close());

    test("a job is done when its document can be searched and its file has been moved", async () => {
      await desk.write("a.txt", "Ada wrote to Bob.\fAnd Bob to Ada.");
      const job = await desk.run(desk.message("a.txt"));
      assert.deepEqual(
        [job.status, job.error, job.error_code, job.chunks_created, job.embeddings_generated],
        ["done", null, null, 2, 2],
      );
      assert.ok(job.tokens_used >= 8, String(job.tokens_used));
      assert.deepEqual([await desk.files("incoming"), await desk.files("processed")], [[], ["a.txt"]]);
      const document = await desk.pipeline.documents.show(job.document_id!);
      assert.deepEqual(
        [document.source, document.collection, document.metadata],
        [`rag:${RAG}/a.txt`, RAG, { rag_id: RAG, source_type: "txt", submitted_by: "cli" }],
      );
    });

    test("its figures grow while the pipeline works", async () => {
      const held = Promise.withResolvers<void>();
      desk.pipeline.calls.before = async (step, text) => {
        if (step === "embed" && text.includes("second")) await held.promise;
      };
      await desk.write("a.txt", "The first page.\fThe second page.");
      const message = desk.message("a.txt");
      await desk.queue.submit(message);
      await until(async () => (await desk.queue.read(message.job_id))!.chunks_created === 2);
      const before = (await desk.queue.read(message.job_id))!;
      assert.equal(before.status, "processing");
      assert.ok(before.embeddings_generated < 2);
      assert.equal(typeof before.started_at, "string");
      held.resolve();
      const after = await desk.finished(message.job_id);
      assert.deepEqual([after.status, after.embeddings_generated], ["done", 2]);
      assert.ok(after.tokens_used > before.tokens_used);
    });

    test("a new version of a file replaces the old one, and its metadata stay or go as asked", async () => {
      await desk.write("a.txt", "Old text.");
      const first = await desk.run(desk.message("a.txt"));
      const { database } = desk.opened;
      await database.query(
        `update documents set metadata = '{"owner": "Ada", "submitted_by": "x"}' where id = '${first.document_id}'`,
      );
      await desk.write("a.txt", "New text.");
      const second = await desk.run(desk.message("a.txt", { submitted_by: "api" }));
      assert.deepEqual((await desk.pipeline.documents.show(second.document_id!)).metadata, {
        owner: "Ada",
        rag_id: RAG,
        source_type: "txt",
        submitted_by: "api",
      });
      await desk.write("a.txt", "Newest text.");
      const options = { reindex: false, skip_validation: false, preserve_metadata: false };
      const third = await desk.run(desk.message("a.txt", { options }));
      assert.deepEqual((await desk.pipeline.documents.show(third.document_id!)).metadata, {
        rag_id: RAG,
        source_type: "txt",
        submitted_by: "cli",
      });
      assert.deepEqual(await desk.texts(), ["Newest text."]);
      assert.deepEqual(await desk.files("processed"), ["a.txt", "a~2.txt", "a~3.txt"]);
      assert.equal(await readFile(join(desk.rag.folders.processed, "a~2.txt"), "utf8"), "New text.");
    });

    test("files of one name in different folders are different documents", async () => {
      await desk.write("2024/a.txt", "Of last year.");
      await desk.write("2025/a.txt", "Of this year.");
      await desk.run(desk.message("2024/a.txt"));
      await desk.run(desk.message("2025/a.txt"));
      assert.deepEqual(await desk.texts(), ["Of last year.", "Of this year."]);
    });

    test("reindex clears what was there before, not what came with it", async () => {
      await desk.write("old.txt", "What was there before.");
      await desk.run(desk.message("old.txt"));
      await desk.write("new.txt", "What is new.");
      await desk.write("too.txt", "What came with it.");
      const [one, other] = [desk.message("new.txt", { options: reindex }), desk.message("too.txt")];
      await Promise.all([desk.run(one), desk.run(other)]);
      assert.deepEqual(await desk.texts(), ["What came with it.", "What is new."]);
      const job = (await desk.queue.read(one.job_id))!;
      assert.equal(typeof job.cleared_at, "string");
      // Asked for once more, after that was done.
      await desk.write("newest.txt", "What is newest.");
      await desk.run(desk.message("newest.txt", { options: reindex }));
      assert.deepEqual(await desk.texts(), ["What is newest."]);
    });

    test("reindex clears the collection whatever is wrong with the file, but not of a RAG that is none", async () => {
      const refused: readonly (readonly [string, Partial<JobMessage>])[] = [
        ["empty.txt", {}],
        ["missing.txt", {}],
        ["sheet.xlsx", {}],
        ["empty.txt", { filename: "../evil.txt" }],
        ["empty.txt", { source_path: "/etc/passwd" }],
      ];
      for (const [name, more] of refused) {
        await desk.write("old.txt", "What was there before.");
        await desk.run(desk.message("old.txt"));
        assert.deepEqual(await desk.texts(), ["What was there before."]);
        if (name === "empty.txt") await desk.write(name, "");
        const job = await desk.run(desk.message(name, { ...more, options: reindex }));
        assert.deepEqual([job.status, typeof job.cleared_at], ["failed", "string"], name);
        assert.deepEqual(await desk.texts(), [], `${name} ${JSON.stringify(more)}`);
      }
      await desk.write("old.txt", "What was there before.");
      await desk.run(desk.message("old.txt"));
      await desk.run(desk.message("old.txt", { rag_id: "nobodys_rag", options: reindex }));
      assert.deepEqual(await desk.texts(), ["What was there before."]);
    });

    test("reindex clears nothing on a worker that does not see the RAG's folders", async () => {
      await desk.write("old.txt", "What was there before.");
      await desk.run(desk.message("old.txt"));
      const { sources } = desk.rag.folders;
      const message = desk.message("new.txt", { options: reindex });
      await rename(sources, `${sources}.away`);
      const job = await desk.run(message);
      assert.deepEqual([job.status, job.cleared_at], ["failed", null]);
      assert.deepEqual(await desk.texts(), ["What was there before."]);
    });

    test("of a batch in which every job asks for it, the collection is cleared for the first", async () => {
      await crew.stop();
      await desk.write("old.txt", "What was there before.");
      const [begun, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      desk.pipeline.calls.before = async (step, text) => {
        if (step !== "embed" || text !== "Last.") return;
        begun.resolve();
        await held.promise;
      };
      const batch = [];
      for (const [name, text] of [
        ["bad.pdf", "no PDF"],
        ["one.txt", "One."],
        ["two.txt", "Two."],
        ["last.txt", "Last."],
      ] as const) {
        await desk.write(name, text);
        batch.push(desk.message(name, { options: reindex }));
      }
      await desk.work();
      await desk.run(desk.message("old.txt"));
      for (const message of batch.slice(0, 3)) await desk.push(message);
      for (const { job_id } of batch.slice(0, 3)) await desk.finished(job_id);
      // By itself: texts that are embedded together would be held with it.
      await desk.push(batch[3]!);
      await begun.promise;
      // Some of them are done when this one comes, which was submitted with them.
      await desk.write("late.txt", "Late.");
      const late = desk.message("late.txt", { options: reindex, submitted_at: batch[0]!.submitted_at });
      await desk.push(late);
      await desk.finished(late.job_id);
      held.resolve();
      await desk.finished(batch[3]!.job_id);
      assert.deepEqual(await desk.texts(), ["Last.", "Late.", "One.", "Two."]);
    });

    for (const quicker of ["the reindex", "the other"]) {
      test(`a file that is submitted again beside a reindex stays when ${quicker} is quicker`, async (t) => {
        const text = "It was and stays.";
        await desk.write("other.txt", text);
        await desk.run(desk.message("other.txt"));
        await crew.stop();
        await desk.write("new.txt", "It is new.");
        const path = await desk.write("other.txt", text);
        const { documents } = desk.pipeline;
        const [add, removeFrom] = [documents.add.bind(documents), documents.removeFrom.bind(documents)];
        const cleared = Promise.withResolvers<void>();
        const found = Promise.withResolvers<void>();
        t.mock.method(documents, "removeFrom", async (...args: Parameters<typeof removeFrom>) => {
          if (quicker === "the other") await found.promise;
          return removeFrom(...args).finally(cleared.resolve);
        });
        t.mock.method(documents, "add", async (document: NewDocument) => {
          if (quicker === "the reindex" && document.path === path) await cleared.promise;
          const added = await add(document);
          if (document.path === path) found.resolve();
          return added;
        });
        const jobs = [desk.message("new.txt", { options: reindex }), desk.message("other.txt")];
        for (const message of jobs) await desk.queue.submit(message);
        await desk.work();
        for (const { job_id } of jobs) assert.equal((await desk.finished(job_id)).status, "done");
        assert.deepEqual(await desk.texts(), ["It is new.", text]);
      });
    }

    test("a reindex that is late leaves what was found unchanged since it came", async () => {
      await desk.write("other.txt", "It was and stays.");
      await desk.run(desk.message("other.txt"));
      await desk.write("new.txt", "It is new.");
      await crew.stop();
      const [late, other] = [desk.message("new.txt", { options: reindex }), desk.message("other.txt")];
      await desk.queue.submit(late, { priority: "low" });
      await desk.write("other.txt", "It was and stays.");
      await desk.queue.submit(other, { priority: "high" });
      // The lane is held at one job, so that the second is taken when the first is done.
      const [first] = await desk.queue.store.claim({ worker: "one", limit: 1 });
      assert.equal(first!.key, other.job_id);
      await desk.queue.store.release([first!]);
      await desk.work({}, { concurrency: 1 });
      for (const { job_id } of [other, late]) assert.equal((await desk.finished(job_id)).status, "done");
      assert.deepEqual(await desk.texts(), ["It is new.", "It was and stays."]);
    });

    test("errors that cannot be mended fail at once, with a record beside the file", async () => {
      await desk.write("bad.pdf", "this is no PDF");
      const job = await desk.run(desk.message("bad.pdf"));
      assert.deepEqual(
        [job.status, job.error, job.error_type, job.error_code, job.retry_count],
        ["failed", "PDF header corrupted or invalid", "ParseError", "ERR_PDF_INVALID", 1],
      );
      assert.deepEqual(job.suggestions[0], "Verify PDF is valid using: pdfinfo bad.pdf");
      assert.match(job.traceback!, /validate\.ts/);
      assert.deepEqual(await desk.files("failed"), ["bad.pdf", "bad.pdf.error.json"]);
      assert.deepEqual(await desk.files("incoming"), []);
      const record = await desk.errorRecord("bad.pdf.error.json");
      const { failed_at, traceback, ...rest } = record;
      assert.equal(typeof failed_at, "string");
      assert.equal(traceback, job.traceback);
      assert.deepEqual(rest, {
        job_id: job.job_id,
        rag_id: RAG,
        filename: "bad.pdf",
        status: "failed",
        submitted_at: job.submitted_at,
        started_at: job.started_at,
        error: job.error,
        error_type: job.error_type,
        error_code: job.error_code,
        retry_count: job.retry_count,
        max_retries: job.max_retries,
        suggestions: job.suggestions,
      });
    });

    test("failures are logged, with what it takes to find out why", async () => {
      await crew.stop();
      const lines: string[] = [];
      const log = createLog({ level: "warn", destination: { write: (line) => void lines.push(line) } });
      await desk.work({ log });
      await desk.write("bad.pdf", "this is no PDF");
      const job = await desk.run(desk.message("bad.pdf"));
      const said = lines.map((line) => JSON.parse(line)).filter((line) => line.job === job.job_id);
      assert.deepEqual(
        said.map(({ rag, file, attempt, error, error_code, msg }) => [
          rag,
          file,
          attempt,
          error,
          error_code,
          msg,
        ]),
        [[RAG, "bad.pdf", 1, job.error, "ERR_PDF_INVALID", "a job failed"]],
      );
    });

    test("each kind of mistake has its code", async () => {
      const outside = join(desk.opened.folder, "outside.txt");
      await writeFile(outside, "secret");
      await symlink(outside, await pathOf("link.txt"));
      await symlink(desk.opened.folder, await pathOf("folder"));
      await desk.write("empty.txt", "");
      await desk.write("large.txt", "x".repeat(1_000_001));
      await desk.write("bin.txt", Buffer.from([1, 2, 3, 4, 0, 5, 6, 7]));
      await desk.write("pdf.txt", "%PDF-1.4 …");
      await desk.write("bad.docx", "no zip");
      await desk.write("broken.txt", "[broken]");
      await desk.write("sheet.xlsx", "x");
      await desk.write("odd.txt", "Its name is odd.");
      const cases = [
        [desk.message("a.txt", { rag_id: "nobodys_rag" }), "ERR_RAG_UNKNOWN"],
        [desk.message("missing.txt"), "ERR_FILE_NOT_FOUND"],
        [desk.message("a.txt", { source_path: outside }), "ERR_PATH_NOT_ALLOWED"],
        [
          desk.message("a.txt", { source_path: join(desk.rag.folders.incoming, "../../x.txt") }),
          "ERR_PATH_NOT_ALLOWED",
        ],
        [desk.message("a.txt", { source_path: "incoming/a.txt" }), "ERR_PATH_NOT_ALLOWED"],
        [desk.message("odd.txt", { filename: "../../../evil.txt" }), "ERR_PATH_NOT_ALLOWED"],
        [desk.message("link.txt"), "ERR_PATH_NOT_ALLOWED"],
        [desk.message("folder/outside.txt"), "ERR_PATH_NOT_ALLOWED"],
        [desk.message("folder", { source_type: "txt" }), "ERR_PATH_NOT_ALLOWED"],
        [desk.message("empty.txt"), "ERR_FILE_EMPTY"],
        [desk.message("large.txt"), "ERR_FILE_TOO_LARGE"],
        [desk.message("bin.txt"), "ERR_TEXT_INVALID"],
        [desk.message("pdf.txt"), "ERR_TEXT_INVALID"],
        [desk.message("bad.docx"), "ERR_DOCX_INVALID"],
        [desk.message("broken.txt"), "ERR_TEXT_INVALID"],
        [desk.message("sheet.xlsx"), "ERR_UNSUPPORTED_TYPE"],
      ] as const;
      for (const [message, code] of cases) {
        const job = await desk.run(message);
        assert.deepEqual([job.status, job.error_code], ["failed", code], job.error ?? "");
      }
      // What lies outside, and links to it, were not touched.
      assert.equal(await readFile(outside, "utf8"), "secret");
      assert.ok(existsSync(join(desk.rag.folders.incoming, "link.txt")));
      assert.equal(existsSync(join(desk.opened.folder, "evil.txt.error.json")), false);
    });

    test("validation can be skipped, the safety of paths cannot", async () => {
      const options = { reindex: false, skip_validation: true, preserve_metadata: true };
      await desk.write("odd.pdf", "Not a PDF, but the reader takes it.");
      assert.equal((await desk.run(desk.message("odd.pdf", { options }))).status, "done");
      const outside = join(desk.opened.folder, "outside.txt");
      await writeFile(outside, "secret");
      const job = await desk.run(desk.message("a.txt", { source_path: outside, options }));
      assert.equal(job.error_code, "ERR_PATH_NOT_ALLOWED");
    });

    test("what may pass is tried again, and fails for good when its retries are spent", async () => {
      let failures = 0;
      desk.pipeline.calls.before = (step) => {
        if (step === "embed" && failures++ < 1_000)
          throw new QuarryError("file_unreadable", "the model says no");
      };
      await desk.write("a.txt", "Some text.");
      const message = desk.message("a.txt", { max_retries: 1 });
      const job = await desk.run(message);
      assert.deepEqual([job.status, job.error_code, job.retry_count], ["failed", "ERR_EMBEDDING_FAILED", 1]);
      assert.deepEqual(await desk.files("failed"), ["a.txt", "a.txt.error.json"]);
      // Redriven, it is taken from failed and its record goes.
      failures = 10_000;
      assert.equal(await desk.queue.redrive({ ids: [message.job_id] }), 1);
      const again = await desk.finished(message.job_id);
      assert.deepEqual([again.status, again.error, again.error_code], ["done", null, null]);
      assert.deepEqual([await desk.files("failed"), await desk.files("processed")], [[], ["a.txt"]]);
      assert.equal(again.document_id, job.document_id);
    });

    test("a corrected file under the same name is what a redriven job takes", async () => {
      await desk.write("a.txt", "");
      const message = desk.message("a.txt");
      assert.equal((await desk.run(message)).error_code, "ERR_FILE_EMPTY");
      await desk.write("a.txt", "Now there is something in it.");
      await desk.queue.redrive("all");
      assert.equal((await desk.finished(message.job_id)).status, "done");
      assert.deepEqual(await desk.texts(), ["Now there is something in it."]);
      // What was wrong with the other one is over; the file itself is somebody's, and stays.
      assert.deepEqual(await desk.files("failed"), ["a.txt"]);
      assert.deepEqual(await desk.files("processed"), ["a.txt"]);
    });

    test("the record of a file that was missing goes when the job finds it", async () => {
      const message = desk.message("a.txt");
      assert.equal((await desk.run(message)).error_code, "ERR_FILE_NOT_FOUND");
      // Another job's record of the same name is not its own.
      await desk.write("b/a.txt", "");
      const other = desk.message("b/a.txt");
      assert.equal((await desk.run(other)).error_code, "ERR_FILE_EMPTY");
      assert.deepEqual(await desk.files("failed"), ["a.txt.error.json", "a~2.txt", "a~2.txt.error.json"]);
      await desk.write("a.txt", "Here it is.");
      await desk.queue.redrive({ ids: [message.job_id] });
      assert.equal((await desk.finished(message.job_id)).status, "done");
      assert.deepEqual(await desk.files("failed"), ["a~2.txt", "a~2.txt.error.json"]);
    });

    test("a file that is replaced while it is worked on is left to its own job", async () => {
      const held = Promise.withResolvers<void>();
      desk.pipeline.calls.before = async (step) => {
        if (step === "embed") await held.promise;
      };
      const path = await desk.write("a.txt", "First text.");
      const message = desk.message("a.txt");
      await desk.queue.submit(message);
      await until(async () => (await desk.queue.read(message.job_id))!.document_id !== null);
      await rm(path);
      await desk.write("a.txt", "Second text.");
      held.resolve();
      assert.equal((await desk.finished(message.job_id)).status, "done");
      assert.deepEqual([await desk.files("incoming"), await desk.files("processed")], [["a.txt"], []]);
      assert.equal((await desk.run(desk.message("a.txt"))).status, "done");
      assert.deepEqual(await desk.texts(), ["Second text."]);
      assert.deepEqual(await desk.files("processed"), ["a.txt"]);
    });

    const pathOf = async (name: string) => {
      await desk.write(".keep", "");
      return join(desk.rag.folders.incoming, name);
    };
  });
}
