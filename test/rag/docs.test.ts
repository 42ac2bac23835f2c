import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { ERROR_CODES, QuarryError } from "../../src/index.ts";
import { asRagError, RAG_ERRORS } from "../../src/rag/errors.ts";
import { openDesk, TRANSPORTS } from "./desk.ts";

const run = promisify(execFile);
const DOCS = join(import.meta.dirname, "../../docs");

describe("docs/rag.md", () => {
  test("tells every error code, as the table has it", async () => {
    const text = await readFile(join(DOCS, "rag.md"), "utf8");
    const told = [...text.matchAll(/^\| `(ERR_\w+)` \| `(\w+)` \| (yes|no) \| [^|]+ \|$/gm)].map((row) =>
      row.slice(1),
    );
    assert.deepEqual(
      told,
      Object.entries(RAG_ERRORS).map(([code, { type, isRecoverable }]) => [
        code,
        type,
        isRecoverable ? "yes" : "no",
      ]),
    );
  });

  test("every error of Quarry's is one of a job's", () => {
    for (const code of ERROR_CODES) {
      const error = asRagError(new QuarryError(code, "…"), "pdf");
      assert.ok(error.errorCode in RAG_ERRORS, code);
    }
  });

  test("its producers work as they stand: redis-cli and Python", async () => {
    const desk = await openDesk(TRANSPORTS.find(({ hasRedis }) => hasRedis)!);
    try {
      await desk.work();
      const text = await readFile(join(DOCS, "rag.md"), "utf8");
      const [, shown] = /LPUSH rag:ingest:queue '([^']+)'/.exec(text)!;
      const path = await desk.write("my_policy.pdf", "%PDF-1.4 The pipeline of this test takes it for text.");
      const message = shown!.replace("/app/data/sources/policies_rag/incoming/my_policy.pdf", path);
      const { url } = desk.redis!;
      await run("redis-cli", ["-u", url, "LPUSH", "rag:ingest:queue", message]);
      const { job_id } = JSON.parse(message);
      const job = await poll(() => desk.queue.read(job_id));
      assert.deepEqual(
        [job.status, job.filename, job.submitted_by],
        ["done", "my_policy.pdf", "cli"],
        job.error ?? "",
      );
      const { stdout } = await run("redis-cli", ["-u", url, "HGETALL", `rag:ingest:job:${job_id}`]);
      assert.match(stdout, /^status\ndone$/m);

      const other = await desk.write("faq.txt", "Where is the canteen?");
      const script = join(DOCS, "examples/rag_producer.py");
      const { stdout: said } = await run("python3", [script, url, desk.rag.id, other]);
      assert.match(said, /^rag-policies_rag-\d+-[0-9a-f]{8}\ndone 1 \n$/);
      const failing = await run("python3", [
        script,
        url,
        desk.rag.id,
        join(desk.rag.folders.incoming, "nope.txt"),
      ]).catch((error) => error);
      assert.equal(failing.code, 1);
      assert.match(failing.stdout, /\nfailed 0 .*no such file/);
    } finally {
      await desk.close();
    }
  });
});

async function poll<T extends { readonly status: string }>(look: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await look();
    if (found?.status === "done" || found?.status === "failed") return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
