import assert from "node:assert/strict";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, test } from "node:test";
import { Running } from "./running.ts";

describe("stopping a command", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "quarry-stopping-"));
    // A scan: a page of it takes seconds.
    const scan = new URL("../../samples/archive/flood-report-1952.pdf", import.meta.url);
    await cp(scan, join(folder, "scan.pdf"));
    await writeFile(join(folder, "notes.md"), "The lighthouse keeper lit the lamp.\n");
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const start = (...args: string[]) => new Running(folder, args);
  /** Looked up in the file itself: a command would take as long to start as a page takes to be read. */
  const isReading = () => {
    try {
      const database = new DatabaseSync(join(folder, ".quarry", "quarry.db"), { readOnly: true });
      const found = database.prepare("select 1 from task_queue_page where ocr_status = 'processing'").get();
      database.close();
      return found !== undefined;
    } catch {
      // It is not there yet.
      return false;
    }
  };

  test("Ctrl-C says what it waits for, a second one does not wait, and the next run goes on", {
    timeout: 120_000,
  }, async () => {
    const ingest = start("ingest", "scan.pdf", "--wait");
    await ingest.until(isReading);
    ingest.kill("SIGINT");
    await ingest.until(({ out }) => /Stopping: .*up to 10 s.*Ctrl-C again/.test(out));
    ingest.kill("SIGINT");
    const { code, signal, out } = await ingest.ended();
    assert.deepEqual([code, signal], [1, null], "it ended by itself");
    assert.match(out, /Nothing is lost/);
    const { out: status } = await start("status", "--json").ended();
    assert.equal(JSON.parse(status).workers.length, 0);
  });

  test("`up` without a terminal tells how far it is, and that it stops", { timeout: 60_000 }, async () => {
    const up = start("up", "--port", "0", "--data", "up");
    await up.until(({ out }) => /Ctrl-C stops/.test(out));
    assert.equal((await start("ingest", "notes.md", "--data", "up").ended()).code, 0);
    await up.until(({ err }) => /OCR.* · Vector.* · GraphRAG/.test(err));
    up.kill("SIGINT");
    const { code, out } = await up.ended();
    assert.equal(code, 0);
    assert.match(out, /Stopping: .*up to 30 s.*\nStopped\.\n$/);
  });

  test("a watch whose reader has gone ends", { timeout: 60_000 }, async () => {
    const watch = start("status", "--watch", "--json");
    await watch.until(({ out }) => out.includes("\n"));
    watch.stopReading();
    assert.equal((await watch.ended()).code, 0);
  });

  test("a watch that is written to a file writes there", { timeout: 60_000 }, async () => {
    const watch = start("status", "--watch");
    await watch.until(({ out }) => /GraphRAG/.test(out));
    watch.kill("SIGINT");
    const { code, out, err } = await watch.ended();
    assert.deepEqual([code, err], [0, ""]);
    assert.equal(out.match(/GraphRAG/g)?.length, 1, "what did not change is not repeated");
  });
});
