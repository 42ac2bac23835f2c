import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { openQuarry, type Quarry } from "../../src/index.ts";
import { makeDocx } from "../support/make-docx.ts";
import { makePdf, text } from "../support/make-pdf.ts";
import { makeZip } from "../support/make-zip.ts";

const page = { items: [text("The blast is announced ten minutes before.", { x: 72, y: 700 })] };
const pdf = makePdf({ pages: [page] });
const SKIP = { skip_validation: true };

/** What is in the file, what it is said to be, and what becomes of the job, with the real readers and models. */
const FILES: readonly (readonly [
  name: string,
  content: string | Uint8Array,
  outcome: "done" | `ERR_${string}`,
  options?: object,
])[] = [
  ["good.pdf", pdf, "done"],
  ["good.docx", makeDocx({ blocks: [{ heading: "Rules" }, { paragraph: "Helmets are worn." }] }), "done"],
  ["good.md", "# Rules\n\nGloves are worn.\n", "done"],
  ["good.txt", "Boots are worn.", "done"],
  ["utf16.txt", Buffer.from("\ufeffStiefel sind zu tragen.", "utf16le"), "done"],
  ["blank.txt", "\n\n", "done"],
  ["late.pdf", Buffer.concat([Buffer.from("rubbish before\n"), pdf]), "done"],
  ["corrupt.pdf", "%PDF-1.7\nand nothing that follows is a PDF", "ERR_PDF_INVALID"],
  ["cut.pdf", pdf.subarray(0, 60), "ERR_PDF_INVALID"],
  ["header.pdf", pdf.subarray(8), "ERR_PDF_INVALID"],
  ["locked.pdf", makePdf({ pages: [page], password: "secret" }), "ERR_FILE_ENCRYPTED"],
  ["empty.pdf", "", "ERR_FILE_EMPTY"],
  ["skipped-empty.txt", "", "ERR_FILE_EMPTY", SKIP],
  ["corrupt.docx", "PK\x03\x04 and nothing that follows is an archive", "ERR_DOCX_INVALID"],
  ["old.docx", Buffer.from([0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1, 0, 0]), "ERR_DOCX_INVALID"],
  ["sheet.docx", makeZip([{ name: "xl/workbook.xml", content: "<x/>" }]), "ERR_UNSUPPORTED_TYPE"],
  ["text.docx", "only text", "ERR_DOCX_INVALID"],
  ["skipped.docx", "only text", "done", SKIP],
  ["binary.txt", Buffer.from(Array.from({ length: 512 }, (_, n) => n % 7)), "ERR_TEXT_INVALID"],
  ["archive.md", makeZip([{ name: "a.txt", content: "a" }]), "ERR_TEXT_INVALID"],
  ["skipped.md", makeZip([{ name: "a.txt", content: "a" }]), "ERR_UNSUPPORTED_TYPE", SKIP],
  ["large.txt", "x ".repeat(600_000), "ERR_FILE_TOO_LARGE"],
];

describe("files of every kind, through the real pipeline", () => {
  let folder: string;
  let quarry: Quarry;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "quarry-real-files-"));
    await mkdir(join(folder, "incoming"));
    quarry = await openQuarry({
      dataFolder: join(folder, ".quarry"),
      rags: { site: { sources: folder } },
      fileMbMax: 1,
      pollMs: 100,
      logLevel: "silent",
    });
    await quarry.work();
  });
  after(async () => {
    await quarry.close();
    await rm(folder, { recursive: true });
  });

  test("are done or fail as they should, and end in the folder that says so", async () => {
    const ids = new Map<string, string>();
    for (const [name, content, , options] of FILES) {
      const source_path = join(folder, "incoming", name);
      await writeFile(source_path, content);
      const { job_id } = await quarry.rag.submit({
        rag_id: "site",
        source_path,
        ...(options && { options }),
      });
      ids.set(name, job_id);
    }
    const outcomes: [string, string][] = [];
    for (const [name, id] of ids) {
      const job = await quarry.rag.finished(id, AbortSignal.timeout(90_000));
      outcomes.push([name, job.status === "done" ? "done" : `${job.error_code}`]);
      if (job.status === "failed") assert.equal(job.retry_count, 1, `${name} was tried once: ${job.error}`);
    }
    assert.deepEqual(
      outcomes,
      FILES.map(([name, , outcome]) => [name, outcome]),
    );
    const done = FILES.filter(([, , outcome]) => outcome === "done").map(([name]) => name);
    const failed = FILES.filter(([, , outcome]) => outcome !== "done").map(([name]) => name);
    assert.deepEqual(await readdir(join(folder, "incoming")), []);
    assert.deepEqual((await readdir(join(folder, "processed"))).toSorted(), done.toSorted());
    assert.deepEqual(
      (await readdir(join(folder, "failed"))).toSorted(),
      failed.flatMap((name) => [name, `${name}.error.json`]).toSorted(),
    );
  });
});
