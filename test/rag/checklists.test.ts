import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { openDatabase, openQuarry, type Quarry, QuarryError } from "../../src/index.ts";
import type { JobStatus } from "../../src/rag/queue.ts";
import { type Ran, Running } from "../cli/running.ts";
import { freshRedis, redisAt, type TestRedis } from "../support/redis.ts";
import { type Server, startRedis } from "../support/services.ts";
import { openPlace } from "./places.ts";
import { checkRetries } from "./retrying.ts";

/** The two checklists at the end of the contract, item by item and in its words: the real thing, but for the user. */
const TRANSPORTS = [
  { name: "Redis", hasRedis: true },
  { name: "the database", hasRedis: false },
];
const RAG = "policies_rag";

for (const { name, hasRedis } of TRANSPORTS) {
  describe(`the contract's checklists over ${name}`, () => {
    let folder: string;
    let server: Server | undefined;
    let redis: TestRedis | undefined;
    let quarry: Quarry;
    let submitted: Ran;
    let jobId: string;

    before(async () => {
      folder = await mkdtemp(join(tmpdir(), "quarry-checklists-"));
      server = hasRedis
        ? await startRedis({ quitSignal: "SIGKILL", args: ["--appendfsync", "always"] })
        : undefined;
      redis = server && (await redisAt(server.url));
      await writeFile(
        join(folder, "quarry.yaml"),
        `rags:\n  ${RAG}:\n    sources: ${join(folder, "sources")}\n`,
      );
      await writeFile(
        join(folder, "handbook.md"),
        "# Leave\n\nAda has twenty-five days.\n\n# Travel\n\nBy train.\n",
      );
      submitted = await new Running(folder, ["rag", "submit", "handbook.md", "--rag", RAG], env()).ended();
      jobId = submitted.out.trim();
      quarry = await open();
    });
    after(async () => {
      await quarry.close();
      await redis?.close();
      await server?.stop();
      await rm(folder, { recursive: true });
    });

    const env = () => ({ REDIS_URL: server?.url ?? "" });
    const open = () =>
      openQuarry({
        dataFolder: join(folder, ".quarry"),
        rags: { [RAG]: { sources: join(folder, "sources") } },
        ...(server && { redisUrl: server.url }),
        pollMs: 200,
        heartbeatMs: 500,
        staleMs: 3_000,
        checkEveryMs: 500,
        logLevel: "silent",
      });
    const write = async (file: string, content: string) => {
      await mkdir(join(folder, "sources/incoming"), { recursive: true });
      await writeFile(join(folder, "sources/incoming", file), content);
      return join(folder, "sources/incoming", file);
    };
    const submit = async (file: string, content: string, more: object = {}) => {
      const source_path = await write(file, content);
      return (await quarry.rag.submit({ rag_id: RAG, source_path, ...more })).job_id;
    };
    const finished = (id: string) => quarry.rag.finished(id, AbortSignal.timeout(60_000));
    const files = async (which: string) =>
      (await readdir(join(folder, "sources", which)).catch(() => [])).toSorted();

    describe("Implementation Checklist: CLI (Producer)", () => {
      test("Parse command line arguments", async () => {
        assert.deepEqual([submitted.code, submitted.err], [0, ""]);
        const wrong = await new Running(
          folder,
          ["rag", "submit", "handbook.md", "--ragg", RAG],
          env(),
        ).ended();
        assert.equal(wrong.code, 2);
      });
      test("Validate file exists and RAG exists", async () => {
        const missing = await new Running(folder, ["rag", "submit", "nope.md", "--rag", RAG], env()).ended();
        assert.match(missing.out, /no such file/);
        const unknown = await new Running(
          folder,
          ["rag", "submit", "handbook.md", "--rag", "x"],
          env(),
        ).ended();
        assert.match(unknown.err, /no RAG "x"/);
        assert.deepEqual([missing.code, unknown.code], [1, 1]);
      });
      test("Generate unique job_id", async () => {
        assert.match(jobId, /^rag-policies_rag-\d{10}-[0-9a-f]{8}$/);
      });
      test("Create job message JSON", async () => {
        const [text] = redis
          ? [await redis.command("LINDEX", "rag:ingest:queue", "-1")]
          : (await rows("select message from rag_jobs")).map(({ message }) => message);
        const { submitted_at, ...message } = JSON.parse(String(text));
        assert.match(submitted_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
        assert.deepEqual(message, {
          job_id: jobId,
          rag_id: RAG,
          source_path: join(folder, "sources/incoming/handbook.md"),
          source_type: "md",
          filename: "handbook.md",
          submitted_by: "cli",
          options: { reindex: false, skip_validation: false, preserve_metadata: true },
          retry_count: 0,
          max_retries: 3,
        });
      });
      test("Push to rag:ingest:queue (LPUSH)", async () => {
        if (redis) assert.equal(await redis.command("LLEN", "rag:ingest:queue"), 1);
        assert.equal((await quarry.rag.queue.counts()).queued, 1);
      });
      test('Create status key with "submitted" state', async () => {
        // By the time that anybody can look it is in the queue, so the word is the next one.
        if (redis)
          assert.deepEqual(await redis.command("HMGET", `rag:ingest:job:${jobId}`, "status", "filename"), [
            "queued",
            "handbook.md",
          ]);
        assert.equal((await quarry.rag.read(jobId)).status, "queued");
      });
      test("Return job_id to user", () => {
        assert.equal(submitted.out, `${jobId}\n`);
      });
    });

    describe("Implementation Checklist: Worker (Consumer)", () => {
      let job: JobStatus;
      const seen: JobStatus[] = [];
      before(async () => {
        await quarry.work();
        job = await quarry.rag.finished(jobId, AbortSignal.timeout(60_000), (now) => void seen.push(now));
      });

      test("Connect to Redis", async () => {
        const { workerConnected, connection } = await quarry.rag.health();
        assert.equal(workerConnected, true);
        if (server) assert.ok(connection.includes(new URL(server.url).host), connection);
      });
      test("Poll queue (RPOP from rag:ingest:queue)", async () => {
        if (redis) assert.equal(await redis.command("LLEN", "rag:ingest:queue"), 0);
        assert.equal((await quarry.rag.queue.counts()).length, 0);
      });
      test("Load job message", () => {
        assert.deepEqual([job.rag_id, job.filename, job.max_retries], [RAG, "handbook.md", 3]);
      });
      test('Set status to "processing" and started_at', () => {
        assert.ok(seen.some(({ status, started_at }) => status === "processing" && started_at !== null));
      });
      test("Load document from source_path", async () => {
        const document = await quarry.documents.show(job.document_id!);
        assert.deepEqual([document.filename, document.mediaType], ["handbook.md", "text/markdown"]);
      });
      test("Split into chunks", () => {
        assert.ok(job.chunks_created >= 1);
      });
      test("Generate embeddings", () => {
        assert.equal(job.embeddings_generated, job.chunks_created);
        assert.ok(job.tokens_used > 5);
      });
      test("Upsert to Qdrant", async () => {
        const { results } = await quarry.search.search({
          query: "how many days of leave",
          tenant: "default",
          collection: RAG,
        });
        assert.match(results[0]!.content, /twenty-five days/);
      });
      test("Move file to processed/", async () => {
        assert.deepEqual([await files("incoming"), await files("processed")], [[], ["handbook.md"]]);
      });
      test('Update status to "done"', async () => {
        assert.equal(job.status, "done");
        if (redis) assert.equal(await redis.command("HGET", `rag:ingest:job:${jobId}`, "status"), "done");
      });
      test("Set completed_at and metadata", async () => {
        assert.ok(job.completed_at! >= job.started_at!);
        assert.equal(typeof job.duration_seconds, "number");
        if (!redis) return;
        const ttl = Number(await redis.command("TTL", `rag:ingest:job:${jobId}`));
        assert.ok(ttl > 604_000 && ttl <= 604_800, String(ttl));
        assert.equal(await redis.command("EXISTS", `rag:ingest:job:${jobId}:ttl`), 1);
      });
      test("Handle errors and retries", async () => {
        const failed = await finished(await submit("bad.pdf", "no PDF"));
        assert.deepEqual([failed.status, failed.error_type], ["failed", "ParseError"]);
      });
      test("Move failed files to failed/", async () => {
        assert.deepEqual(await files("failed"), ["bad.pdf", "bad.pdf.error.json"]);
      });
    });

    describe("Implementation Checklist: Status Tracking", () => {
      test("CLI can query job status from Redis", async () => {
        const ran = await new Running(folder, ["rag", "status", "--job", jobId, "--json"], env()).ended();
        assert.equal(JSON.parse(ran.out).status, "done");
      });
      test("Worker updates status in real-time", async () => {
        const statuses = new Set<string>();
        const id = await submit("live.txt", "The status of this one is watched.");
        await quarry.rag.finished(id, AbortSignal.timeout(60_000), ({ status }) => void statuses.add(status));
        assert.ok(statuses.has("done") && statuses.size >= 2, [...statuses].join());
      });
      test("Status includes progress (chunks, embeddings)", async () => {
        const figures = new Set<number>();
        const paragraphs = Array.from(
          { length: 150 },
          (_, n) => `## Part ${n}\n\n${`stone number ${n} `.repeat(40)}`,
        );
        const id = await submit("long.md", paragraphs.join("\n\n"));
        const job = await quarry.rag.finished(id, AbortSignal.timeout(120_000), (now) => {
          assert.ok(now.embeddings_generated <= now.chunks_created);
          figures.add(now.embeddings_generated);
        });
        assert.deepEqual([job.status, job.embeddings_generated], ["done", job.chunks_created]);
        assert.ok(figures.size >= 3, `embeddings were seen to be ${[...figures].join(", ")}`);
      });
      test("Error messages stored for debugging", async () => {
        const { jobs } = await quarry.rag.list({ status: "failed" });
        assert.equal(jobs[0]!.error, "PDF header corrupted or invalid");
        assert.match((await quarry.rag.read(jobs[0]!.job_id)).traceback!, /RagError|Error: /);
      });
    });

    describe("Testing Checklist", () => {
      test("CLI creates valid JSON messages", async () => {
        const [row] = await rows(`select message from rag_jobs where job_id = '${jobId}'`);
        const message = JSON.parse(String(row!.message));
        assert.deepEqual(Object.keys(message).toSorted(), [
          ...["filename", "job_id", "max_retries", "options", "rag_id", "retry_count"],
          ...["source_path", "source_type", "submitted_at", "submitted_by"],
        ]);
      });
      test("Worker processes messages from queue", async () => {
        assert.equal((await finished(await submit("one.txt", "One more."))).status, "done");
      });
      test("Status updates correctly", async () => {
        const { status, retry_count, error } = await quarry.rag.read(jobId);
        assert.deepEqual([status, retry_count, error], ["done", 0, null]);
      });
      test("Files move to correct directories", async () => {
        assert.deepEqual(await files("incoming"), []);
        assert.ok((await files("processed")).includes("one.txt"));
        assert.ok((await files("failed")).includes("bad.pdf"));
      });
      test("Errors are handled and logged", async () => {
        const record = JSON.parse(await readFile(join(folder, "sources/failed/bad.pdf.error.json"), "utf8"));
        assert.deepEqual([record.error_code, record.status], ["ERR_PDF_INVALID", "failed"]);
        assert.ok(record.suggestions.length >= 3);
        // In the log of a worker as it is run.
        await quarry.close();
        quarry = await open();
        const id = await submit("worse.pdf", "no PDF either");
        const worker = new Running(folder, ["worker"], env());
        const job = await finished(id);
        worker.kill("SIGTERM");
        const { code, err } = await worker.ended();
        await quarry.work();
        const lines = err.split("\n").flatMap((line) => (line.startsWith("{") ? [JSON.parse(line)] : []));
        const [{ time, ...told }, ...others] = lines.filter((line) => line.job === id);
        assert.ok(time >= job.started_at! && time <= new Date().toISOString(), time);
        assert.deepEqual([code, others], [0, []]);
        assert.deepEqual(told, {
          ...{ level: "warn", job: id, rag: RAG, file: "worse.pdf", attempt: 1 },
          ...{
            error: job.error,
            error_type: "ParseError",
            error_code: "ERR_PDF_INVALID",
            msg: "a job failed",
          },
        });
      });
      test("Retries work as expected", async () => {
        const place = await openPlace("sqlite", hasRedis ? await freshRedis() : undefined);
        try {
          await checkRetries(place, new QuarryError("model_unavailable", "the service is away"));
        } finally {
          await place.close();
        }
        const [letter] = (await quarry.rag.deadLetters({ limit: 1 })).letters;
        await write("worse.pdf", "still no PDF");
        assert.equal(await quarry.rag.redrive({ ids: [letter!.id] }), 1);
        const again = await finished(letter!.id);
        // Not recoverable: one try, and failed.
        assert.deepEqual([again.status, again.retry_count], ["failed", 1]);
      });
      test("Queue works under load (100+ jobs)", async () => {
        const ids = await Promise.all(
          Array.from({ length: 120 }, (_, n) => submit(`load-${n}.txt`, `Text ${n} of many.`)),
        );
        for (const id of ids) assert.equal((await finished(id)).status, "done");
        assert.equal((await files("processed")).filter((file) => file.startsWith("load-")).length, 120);
      });
      test("Multiple workers don't conflict", async () => {
        const other = await open();
        await other.work();
        const ids = await Promise.all(
          Array.from({ length: 40 }, (_, n) => submit(`both-${n}.txt`, `Text ${n} for two workers.`)),
        );
        const jobs = await Promise.all(ids.map(finished));
        await other.close();
        assert.deepEqual(
          jobs.filter(({ status, retry_count }) => status !== "done" || retry_count > 0),
          [],
        );
        assert.equal((await files("processed")).filter((file) => file.startsWith("both-")).length, 40);
        assert.equal(new Set(jobs.map(({ document_id }) => document_id)).size, 40);
      });
      test("Redis persistence works (restart recovery)", async () => {
        await quarry.close();
        quarry = await open();
        const ids = await Promise.all(
          Array.from({ length: 10 }, (_, n) => submit(`restart-${n}.txt`, `Text ${n} before the restart.`)),
        );
        await quarry.close();
        await server?.restart();
        quarry = await open();
        await quarry.work();
        for (const id of ids) assert.equal((await finished(id)).status, "done");
        assert.deepEqual(await files("incoming"), []);
      });
    });

    /** As psql would show them. */
    const rows = async (sql: string) => {
      const database = openDatabase(join(folder, ".quarry/quarry.db"));
      return database.query(sql).finally(() => database.close());
    };
  });
}
