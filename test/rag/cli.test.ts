import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Ran, Running } from "../cli/running.ts";
import { freshRedis, type TestRedis } from "../support/redis.ts";

const TRANSPORTS = [
  { name: "the database", hasRedis: false },
  { name: "Redis", hasRedis: true },
];

for (const { name, hasRedis } of TRANSPORTS) {
  describe(`quarry rag over ${name}`, () => {
    let folder: string;
    let redis: TestRedis | undefined;
    before(async () => {
      folder = await mkdtemp(join(tmpdir(), "quarry-rag-cli-"));
      redis = hasRedis ? await freshRedis() : undefined;
      await writeFile(
        join(folder, "quarry.yaml"),
        "rags:\n  policies_rag:\n    collection: policies\n    chunking: { tokens: 128, overlap: 10 }\n  faq_rag:\n",
      );
      await writeFile(join(folder, "policy.md"), "# Leave\n\nTwenty-five days a year.\n");
      await writeFile(join(folder, "faq.txt"), "Where is the canteen? On the ground floor.\n");
      await writeFile(join(folder, "bad.pdf"), "this is no PDF");
    });
    after(async () => {
      await redis?.close();
      await rm(folder, { recursive: true });
    });

    const run = (...args: string[]): Promise<Ran> =>
      new Running(folder, args, { REDIS_URL: redis?.url ?? "" }).ended();
    const json = async (...args: string[]) => {
      const { code, out, err } = await run(...args, "--json");
      assert.equal(err, "");
      return { code, value: JSON.parse(out) };
    };

    test("submits files, which are copied into incoming, and prints the ids of their jobs", async () => {
      const { code, out } = await run(
        "rag",
        "submit",
        "policy.md",
        "--rag",
        "policies_rag",
        "--priority",
        "high",
      );
      assert.equal(code, 0);
      assert.match(out, /^rag-policies_rag-\d{10}-[0-9a-f]{8}\n$/);
      const incoming = join(folder, "data/sources/policies_rag/incoming");
      assert.deepEqual(await readdir(incoming), ["policy.md"]);
      const { value: job } = await json("rag", "status", "--job", out.trim());
      assert.deepEqual([job.status, job.priority, job.submitted_by], ["queued", "high", "cli"]);
      assert.equal(job.source_path, join(incoming, "policy.md"));
      const { value: queue } = await json("queue", "status");
      assert.deepEqual(
        [queue.rag.length, queue.rag.processing, queue.rag.queued, queue.rag.workerConnected],
        [1, 0, 1, false],
      );
    });

    test("works on them and waits, and tells what failed", async () => {
      const ran = await run("rag", "submit", "faq.txt", "bad.pdf", "--rag", "faq_rag", "--wait", "--json");
      assert.equal(ran.code, 1);
      assert.match(ran.err, /^\{.*"file":"bad.pdf".*"ERR_PDF_INVALID","msg":"a job failed"\}\n$/);
      const value = JSON.parse(ran.out);
      const jobs = Object.fromEntries(
        value.jobs.map((job: Record<string, unknown>) => [job.filename, [job.status, job.error_code]]),
      );
      assert.deepEqual(jobs, { "faq.txt": ["done", null], "bad.pdf": ["failed", "ERR_PDF_INVALID"] });
      const root = join(folder, "data/sources/faq_rag");
      assert.deepEqual(await readdir(join(root, "processed")), ["faq.txt"]);
      assert.deepEqual((await readdir(join(root, "failed"))).toSorted(), ["bad.pdf", "bad.pdf.error.json"]);
      assert.equal(
        JSON.parse(await readFile(join(root, "failed/bad.pdf.error.json"), "utf8")).status,
        "failed",
      );
    });

    test("lists jobs and dead letters, redrives and purges them", async () => {
      const { value: page } = await json("rag", "list", "--status", "failed", "--rag", "faq_rag");
      assert.deepEqual(
        page.jobs.map((job: Record<string, unknown>) => job.filename),
        ["bad.pdf"],
      );
      const { out } = await run("rag", "list");
      assert.match(out, /bad\.pdf: PDF header corrupted or invalid/);
      const { value: letters } = await json("rag", "dead-letter", "list");
      assert.equal(letters.letters.length, 1);
      assert.equal(letters.letters[0].reason, "PDF header corrupted or invalid");
      const id = letters.letters[0].id;
      const listed = async (...flags: string[]) => {
        const { value } = await json("rag", "dead-letter", "list", ...flags);
        return value.letters.map((letter: { id: string }) => letter.id);
      };
      assert.deepEqual(await listed("--rag", "faq_rag", "--code", "ERR_PDF_INVALID"), [id]);
      assert.deepEqual(await listed("--rag", "policies_rag"), []);
      assert.deepEqual(await listed("--code", "ERR_FILE_EMPTY"), []);
      assert.deepEqual((await json("rag", "dead-letter", "redrive", id)).value, { count: 1 });
      assert.equal((await json("rag", "status", "--job", id)).value.status, "queued");
      const watched = new Running(folder, ["rag", "status", "--job", id, "--watch", "--json"], {
        REDIS_URL: redis?.url ?? "",
      });
      const worker = new Running(folder, ["worker"], { REDIS_URL: redis?.url ?? "" });
      const seen = await watched.ended();
      assert.equal(seen.code, 1);
      const last = JSON.parse(seen.out.trim().split("\n").at(-1)!);
      assert.deepEqual([last.status, last.error_code], ["failed", "ERR_PDF_INVALID"]);
      const { value: queue } = await json("queue", "status");
      assert.deepEqual([queue.rag.deadLetters, queue.rag.workerConnected], [1, true]);
      const said = (await run("queue", "status")).out;
      assert.match(said, /Queue name: rag:ingest:queue\n.*Connection: .*\n/);
      assert.match(said, /Dead letters: 1 \(the oldest of 20\d\d-\S+Z; kept for 30 days\)\n/);
      worker.kill("SIGTERM");
      await worker.ended();
      assert.deepEqual((await json("rag", "dead-letter", "purge", "--all")).value, { count: 1 });
      assert.deepEqual((await json("rag", "dead-letter", "list")).value.letters, []);
      // The file is somebody's, and stays.
      assert.ok((await readdir(join(folder, "data/sources/faq_rag/failed"))).includes("bad.pdf"));
    });

    test("mistakes are told with what to do", async () => {
      await symlink("/etc/passwd", join(folder, "data/sources/faq_rag/incoming/passwd.txt"));
      await mkdir(join(folder, "somewhere"), { recursive: true });
      const cases = [
        [["submit", "policy.md", "--rag", "nobodys"], 1, /no RAG "nobodys"; there are policies_rag, faq_rag/],
        [["submit", "nope.md", "--rag", "faq_rag"], 1, /^refused: \S+nope\.md: no such file\n$/],
        [["submit", "somewhere", "--rag", "faq_rag", "--type", "md"], 1, /is not a file/],
        [["submit", "quarry.yaml", "--rag", "faq_rag"], 1, /is not one of pdf, txt, md, docx/],
        [["submit", "data/sources/faq_rag/incoming/passwd.txt", "--rag", "faq_rag"], 1, /is a link/],
        [["submit", "policy.md"], 2, /--rag/],
        [["submit", "policy.md", "--rag", "faq_rag", "--priority", "urgent"], 2, /high, normal, low/],
        [["status", "--job", "rag-x"], 1, /no job rag-x/],
        [["dead-letter", "redrive"], 2, /--all/],
        [["dead-letter", "list", "--code", "ERR_NONE"], 2, /ERR_MESSAGE_INVALID, ERR_RAG_UNKNOWN/],
        [["dead-letter", "redrive", "rag-x"], 1, /is no dead letter: see quarry rag dead-letter list/],
      ] as const;
      for (const [args, code, message] of cases) {
        const ran = await run("rag", ...args);
        assert.match(ran.out + ran.err, message);
        assert.equal(ran.code, code, ran.out + ran.err);
      }
    });
  });
}

describe("quarry rag", () => {
  test("without RAGs says how to name one; a Redis that is away is exit code 3", async () => {
    const folder = await mkdtemp(join(tmpdir(), "quarry-rag-none-"));
    await writeFile(join(folder, "a.txt"), "a");
    const none = await new Running(folder, ["rag", "submit", "a.txt", "--rag", "x"], {
      REDIS_URL: "",
    }).ended();
    assert.deepEqual([none.code, none.err.includes("rags:")], [2, true], none.err);
    await writeFile(join(folder, "quarry.yaml"), "rags:\n  x:\n");
    const away = await new Running(folder, ["rag", "submit", "a.txt", "--rag", "x"], {
      REDIS_URL: "redis://:canary@127.0.0.1:1",
    }).ended();
    assert.equal(away.code, 3, away.err);
    assert.doesNotMatch(away.err + away.out, /canary/);
    // Nothing came of it, so the copy is gone too.
    assert.deepEqual(await readdir(join(folder, "data/sources/x/incoming")), []);
    await rm(folder, { recursive: true });
  });
});
