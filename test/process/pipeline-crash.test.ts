import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { contentHash } from "../../src/documents/chunker.ts";
import { Documents } from "../../src/documents/documents.ts";
import { STEPS, type Step, stepKey } from "../../src/documents/step-cache.ts";
import { openPipeline } from "../documents/parts.ts";
import { DATABASES } from "../support/databases.ts";

/** After a result was kept or written, before and after it is settled: in each phase. */
const DEATHS = [
  "before documents.split.completeWithResults",
  "after documents.split.completeWithResults",
  "after step_cache.put",
  "before pages.ocr.completeWithResults",
  "after pages.ocr.completeWithResults",
  "before pages.chunk.completeWithResults",
  "after chunks.vector.enqueue",
  "before chunks.vector.complete",
  "after chunks.vector.complete",
  "before chunks.graphrag.completeWithResults",
  "after chunks.graphrag.completeWithResults",
] as const;

const DOCUMENTS = 6;

describe("kill -9 in each phase", () => {
  for (const { name, open } of DATABASES) {
    test(`on ${name}: the work goes on, no result that was kept is made again, and nothing is missing`, {
      timeout: 240_000,
    }, async (t) => {
      const opened = await open();
      const pipeline = await openPipeline(opened);
      t.after(async () => {
        await pipeline.close();
        await opened.close();
      });
      // Each death costs an attempt of whatever was held then.
      const documents = new Documents({
        ...pipeline.parts,
        attemptsMax: 100,
        fileBytesMax: 1_000_000,
      });
      const ids: string[] = [];
      for (let number = 0; number < DOCUMENTS; number++) {
        const path = join(opened.folder, `${number}.txt`);
        await writeFile(
          path,
          `Text of document${number} by Ada.\f[scan]Scan of document${number} by Bob.\f\fEnd of document${number}.`,
        );
        ids.push((await documents.add({ path })).id);
      }
      const keyOf = await keysOfCalls(opened.folder);
      let kept = new Set<string>();
      let seen = 0;
      for (const point of [...DEATHS, ""]) {
        const how = await run(opened.url, opened.folder, point);
        assert.equal(how, point === "" ? "done" : "killed", point);
        const calls = callsIn(opened.folder).slice(seen);
        seen += calls.length;
        const keys = calls.map(keyOf);
        assert.equal(new Set(keys).size, keys.length, "a call was made twice by one process");
        const again = keys.filter((key) => kept.has(key));
        assert.deepEqual(again, [], "a call was made whose result had been kept");
        const rows = await opened.database.query("select cache_key from step_cache");
        kept = new Set(rows.map((row) => String(row.cache_key)));
      }
      assert.equal(kept.size, 6 + 18 + 18);
      for (const id of ids) {
        const document = await documents.show(id);
        assert.deepEqual([document.state, document.pages, document.chunks], ["completed", 4, 3]);
      }
      assert.equal(await pipeline.parts.vectors.count({ tenant: "default" }), 18);
      const hits = await pipeline.parts.fulltext.search("scan", { limit: 20, filter: { tenant: "default" } });
      assert.equal(hits.length, 6);
    });
  }
});

function callsIn(folder: string): [Step, string][] {
  const lines = readFileSync(join(folder, "calls.log"), "utf8").trim().split("\n");
  const calls = lines.map((line) => JSON.parse(line) as [string, string]);
  return calls.filter((call): call is [Step, string] => (STEPS as readonly string[]).includes(call[0]));
}

/** Under which key the result of a call is kept. A scan is known by its file and page, everything else by its text. */
async function keysOfCalls(folder: string): Promise<(call: [Step, string]) => string> {
  const scans = new Map<string, string>();
  for (let number = 0; number < DOCUMENTS; number++) {
    const text = await readFile(join(folder, `${number}.txt`), "utf8");
    scans.set(text.split("\f")[1]!, `${contentHash(text)} 2`);
  }
  return ([step, text]) => stepKey(step, "test", step === "ocr" ? scans.get(text)! : text);
}

/** "killed", or "done" when the point did not come up any more. */
async function run(url: string, folder: string, point: string): Promise<"killed" | "done"> {
  const script = join(import.meta.dirname, "../documents/crash-worker.ts");
  const child = spawn(process.execPath, [script, url, folder, point], { stdio: ["ignore", "pipe", "pipe"] });
  let words = "";
  child.stdout.on("data", (bytes) => {
    words += bytes;
  });
  child.stderr.on("data", (bytes) => {
    words += bytes;
  });
  const [code, signal] = await once(child, "exit");
  if (signal === "SIGKILL") return "killed";
  assert.equal(code, 0, words);
  return "done";
}
