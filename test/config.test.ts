import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { loadSettings } from "../src/config.ts";

describe("settings", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "quarry-config-"));
  });
  after(() => rm(folder, { recursive: true, force: true }));
  const load = (env: Record<string, string> = {}, given = {}) => loadSettings({ env, folder, given });

  test("have the design's defaults", () => {
    const { settings } = load();
    assert.deepEqual(
      [
        settings.isEnabled,
        settings.checkEveryMs,
        settings.pollMs,
        settings.heartbeatMs,
        settings.staleMs,
        settings.attemptsMax,
      ],
      [true, 60_000, 5_000, 30_000, 120_000, 3],
    );
    assert.equal(settings.databaseUrl, join(".quarry", "quarry.db"));
  });

  test("come from the call, then the environment, then quarry.yaml", async () => {
    await writeFile(
      join(folder, "quarry.yaml"),
      "stale_task_timeout: 300\nMAX_TASK_RETRIES: 7\nquarry_data: here\n",
    );
    const { settings, sources } = load(
      { MAX_TASK_RETRIES: "9", TASK_QUEUE_ENABLED: "false" },
      { pollMs: 10 },
    );
    assert.deepEqual(
      [settings.staleMs, settings.attemptsMax, settings.dataFolder, settings.isEnabled, settings.pollMs],
      [300_000, 9, "here", false, 10],
    );
    const from = Object.fromEntries(sources.map((source) => [source.name, source.from]));
    assert.deepEqual(
      [from.STALE_TASK_TIMEOUT, from.MAX_TASK_RETRIES, from.WORKER_POLL_INTERVAL, from.HEARTBEAT_INTERVAL],
      ["quarry.yaml", "environment", "call", "default"],
    );
    await rm(join(folder, "quarry.yaml"));
  });

  test("that make no sense are refused with their name", async () => {
    assert.throws(() => load({ STALE_TASK_TIMEOUT: "soon" }), {
      code: "invalid_input",
      message: /STALE_TASK_TIMEOUT/,
    });
    assert.throws(() => load({ MAX_TASK_RETRIES: "0" }), {
      code: "invalid_input",
      message: /MAX_TASK_RETRIES/,
    });
    assert.throws(() => load({ HEARTBEAT_INTERVAL: "100" }), {
      code: "invalid_input",
      message: /at most half/,
    });
    await writeFile(join(folder, "quarry.yaml"), "stale_timeout: 300\n");
    assert.throws(() => load(), { code: "invalid_input", message: /stale_timeout.*no setting/ });
    await writeFile(join(folder, "quarry.yaml"), "a: [\n");
    assert.throws(() => load(), { code: "invalid_input", message: /not valid YAML/ });
    await rm(join(folder, "quarry.yaml"));
  });

  test("that make no sense are told what they may be", () => {
    for (const [env, message] of [
      [{ TASK_QUEUE_ENABLED: "maybe" }, /"maybe": give true or false \(false: workers start no lanes\)$/],
      [{ MAX_TASK_RETRIES: "many" }, /"many": give a whole number from 1 to 100 /],
      [{ MAX_TASK_RETRIES: "1.5" }, /"1.5": give a whole number from 1 to 100 /],
      [{ MAX_TASK_RETRIES: "101" }, /"101": give a whole number from 1 to 100 /],
      [{ HEARTBEAT_INTERVAL: "soon" }, /"soon": give seconds, from 0.1 to 86400 /],
      [{ QUARRY_LOG: "loud" }, /"loud": .*silent.*debug/],
    ] as const)
      assert.throws(() => load(env), { code: "invalid_input", message });
  });

  test("choose where vectors are, and say what that store needs", () => {
    const qdrant = { QDRANT_URL: "http://127.0.0.1:6333" };
    const postgres = { DATABASE_URL: "postgres://db/quarry" };
    assert.equal(load().settings.vectors, "embedded");
    assert.equal(load(postgres).settings.vectors, "embedded");
    assert.equal(load(qdrant).settings.vectors, "qdrant");
    assert.equal(load({ ...qdrant, QUARRY_VECTORS: "embedded" }).settings.vectors, "embedded");
    assert.equal(load({ ...postgres, QUARRY_VECTORS: "pgvector" }).settings.vectors, "pgvector");
    for (const [env, message] of [
      [{ QUARRY_VECTORS: "somewhere" }, /"somewhere": give embedded, pgvector, qdrant/],
      [{ QUARRY_VECTORS: "pgvector" }, /set DATABASE_URL/],
      [{ QUARRY_VECTORS: "qdrant" }, /set QDRANT_URL/],
      [{ QDRANT_URL: "127.0.0.1:6333" }, /give http/],
    ] as const)
      assert.throws(() => load(env), { code: "invalid_input", message });
  });

  test("choose where files are, and say what that store needs", () => {
    const key = { AWS_ACCESS_KEY_ID: "id", AWS_SECRET_ACCESS_KEY: "canary" };
    assert.equal(load().settings.filesUrl, undefined);
    for (const url of ["s3://bucket", "s3://my-bucket.files/", "s3://bucket/some/prefix_1.0"])
      assert.equal(load({ QUARRY_FILES: url, ...key }).settings.filesUrl, url);
    for (const [env, message] of [
      [{ QUARRY_FILES: "s3://bucket" }, /set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment/],
      [{ QUARRY_FILES: "/srv/files", ...key }, /give s3:\/\/BUCKET\/PREFIX/],
      [{ QUARRY_FILES: "s3://Bucket/x", ...key }, /give s3/],
      [{ QUARRY_FILES: "s3://bucket/../x", ...key }, /give s3/],
      [{ QUARRY_FILES: "s3://bucket/a b", ...key }, /give s3/],
      [{ QUARRY_FILES: "s3://bucket", ...key, AWS_ENDPOINT_URL_S3: "127.0.0.1:9000" }, /give http/],
    ] as const)
      assert.throws(() => load(env), { code: "invalid_input", message });
  });

  test("name the machine: as its host, unless said; with SQLite there is only one", () => {
    assert.equal(load().settings.machine, undefined);
    assert.equal(load({ DATABASE_URL: "postgres://db/quarry" }).settings.machine, hostname());
    assert.equal(load({ QUARRY_MACHINE: "attic" }).settings.machine, "attic");
    assert.throws(() => load({ QUARRY_MACHINE: "two words" }), { code: "invalid_input" });
  });

  test("that are secret come from the environment only and are never shown", async () => {
    const { settings, sources } = load({
      ...{ QUARRY_API_KEY: "canary-key-0123456789", OPENAI_API_KEY: "canary" },
      ...{ AWS_ACCESS_KEY_ID: "canary", AWS_SECRET_ACCESS_KEY: "canary", AWS_SESSION_TOKEN: "canary" },
    });
    assert.deepEqual([settings.apiKey, settings.openaiApiKey], ["canary-key-0123456789", "canary"]);
    assert.doesNotMatch(JSON.stringify(sources), /canary/);
    await writeFile(join(folder, "quarry.yaml"), "openai_api_key: canary\n");
    assert.throws(
      () => load(),
      (error: Error) =>
        /only taken from the environment/.test(error.message) && !/canary/.test(error.message),
    );
    await rm(join(folder, "quarry.yaml"));
  });

  test("are all told in the documentation, with their defaults", async () => {
    const text = await readFile(new URL("../docs/settings.md", import.meta.url), "utf8");
    const told = [...text.matchAll(/^\| `([A-Z0-9_]+)` \|/gm)].map((match) => match[1]);
    assert.deepEqual(
      told.sort(),
      load()
        .sources.map(({ name }) => name)
        .sort(),
    );
  });
});
