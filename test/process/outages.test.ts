import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openDatabase, openQuarry } from "../../src/index.ts";
import { readStatus } from "../../src/status.ts";
import { Running } from "../cli/running.ts";
import { eventually } from "../support/crash/patience.ts";
import { cuttableLine } from "../support/cuttable-line.ts";
import { startModelServer } from "../support/model-server.ts";
import { freshPostgres } from "../support/postgres.ts";
import { findQdrant } from "../support/qdrant.ts";
import { freshBucket } from "../support/s3.ts";

const FILES = 6;
/** Without `items.oldest`, which would say the same as `items`. */
const LANES = "items,documents.split,pages.ocr,pages.chunk,chunks.vector";

test("a worker says once that its bucket or its database is away, and once that it is back; others see what it waits for", {
  timeout: 120_000,
}, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "quarry-outages-"));
  const [postgres, bucket, qdrant, model] = await Promise.all([
    ...([freshPostgres(), freshBucket(), findQdrant(), startModelServer()] as const),
  ]);
  const [toDatabase, toBucket] = await Promise.all([
    cuttableLine(postgres.url),
    cuttableLine(bucket.endpoint),
  ]);
  const quarry = await openQuarry({
    ...{ dataFolder: join(folder, "desk"), databaseUrl: postgres.url, logLevel: "silent", machine: "here" },
    ...{ vectors: "qdrant", qdrantUrl: qdrant.url, ...(qdrant.apiKey && { qdrantApiKey: qdrant.apiKey }) },
    ...{ ...bucket.settings, embedder: "ollama:nomic-embed-text", ollamaHost: model.url },
  });
  const rows = openDatabase(postgres.url);
  const env = {
    ...{ DATABASE_URL: postgres.url, QUARRY_MACHINE: "here", ...bucket.env },
    ...{ QUARRY_EMBEDDER: "ollama:nomic-embed-text", OLLAMA_HOST: model.url },
    ...{ QDRANT_URL: qdrant.url, ...(qdrant.apiKey && { QDRANT_API_KEY: qdrant.apiKey }) },
  };
  const worker = new Running(folder, ["worker", "--lanes", LANES], {
    ...{ ...env, DATABASE_URL: toDatabase.url, AWS_ENDPOINT_URL_S3: toBucket.url },
    ...{ QUARRY_LOG: "debug", WORKER_POLL_INTERVAL: "0.1", QUARRY_DATA: join(folder, "worker") },
  });
  t.after(async () => {
    worker.kill("SIGKILL");
    await worker.ended();
    await quarry.close();
    await rows.close();
    await Promise.all([toDatabase.close(), toBucket.close(), model.close()]);
    await postgres.drop();
    await rm(folder, { recursive: true, force: true });
  });
  const logged = () =>
    worker.err
      .split("\n")
      .filter((line) => line.startsWith("{") && line.endsWith("}"))
      .map((line) => JSON.parse(line) as { level: string; msg: string; queue?: string });
  const warnings = () =>
    logged().flatMap(({ level, msg, queue }) => (level === "warn" ? [[msg, queue].join(" ").trim()] : []));
  const told = (count: number) =>
    eventually(
      () => warnings().length >= count,
      () => worker.err,
    );
  await worker.until(({ out }) => out.includes("\n"));
  const before = warnings();

  toBucket.cut("reset");
  await mkdir(join(folder, "files"));
  for (let n = 0; n < FILES; n++)
    await writeFile(join(folder, "files", `${n}.md`), `# Text ${n}\n\nOf ${n}.`);
  await quarry.ingest(Array.from({ length: FILES }, (_unused, n) => join(folder, "files", `${n}.md`)));
  const delayed = "select count(*) as total from unified_queue where run_after is not null";
  await eventually(
    async () => Number((await rows.query(delayed))[0]!.total) === FILES,
    () => worker.err,
  );
  await eventually(
    async () => (await readStatus(quarry)).waits.length > 0,
    () => worker.err,
  );
  const [wait, ...others] = (await readStatus(quarry)).waits;
  assert.deepEqual([wait!.lane, wait!.workers, others], ["items", 1, []]);
  const { out } = await new Running(folder, ["status"], {
    ...env,
    QUARRY_DATA: join(folder, "desk"),
  }).ended();
  assert.ok(out.includes(`waits      items: ${wait!.reason.slice(0, 40)}`), out);
  assert.deepEqual(warnings(), [...before, "waits for what is away items"]);

  toBucket.mend();
  await told(before.length + 2);
  await eventually(
    async () => (await readStatus(quarry)).waits.length === 0,
    () => worker.err,
  );
  assert.deepEqual(warnings().slice(before.length + 1), ["waits no longer items"]);

  toDatabase.cut("reset");
  const failures = () => logged().filter(({ msg }) => msg === "claiming failed").length;
  await eventually(
    () => failures() > 20,
    () => worker.err,
  );
  toDatabase.mend();
  await told(before.length + 4);
  assert.deepEqual(warnings().slice(before.length + 2), [
    "the database is away: work waits until it is back",
    "the database is back: work goes on",
  ]);
});
