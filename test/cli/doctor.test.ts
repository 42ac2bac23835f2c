import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { openQuarry } from "../../src/index.ts";
import { freshPostgres } from "../support/postgres.ts";
import { freshBucket } from "../support/s3.ts";
import { Running } from "./running.ts";

interface Report {
  readonly parts: readonly { part: string; health: string; said: string }[];
  readonly settings?: readonly { name: string; value?: unknown; from: string }[];
}

describe("quarry doctor", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "quarry-doctor-"));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const doctor = async (args: readonly string[], env: Record<string, string> = {}) => {
    const { code, out, err } = await new Running(folder, ["doctor", "--json", ...args], env).ended();
    assert.equal(err, "");
    return { code, report: JSON.parse(out) as Report };
  };
  const health = (report: Report, part: string) => report.parts.find((each) => each.part === part)?.health;

  it("finds all parts well in an empty folder, and makes nothing there", async () => {
    const { code, report } = await doctor([]);
    assert.equal(code, 0);
    assert.deepEqual(
      report.parts.map((each) => each.health),
      report.parts.map(() => "ok"),
    );
    assert.match(report.parts.find(({ part }) => part === "database")!.said, /nothing there yet/);
    assert.deepEqual(await readdir(folder), []);
  });

  it("tells each part that is away, goes on with the others and ends with 3", async () => {
    const { code, report } = await doctor([], {
      REDIS_URL: "redis://127.0.0.1:1",
      DATABASE_URL: "postgres://nobody@127.0.0.1:1/nothing",
    });
    assert.equal(code, 3);
    assert.deepEqual(
      ["Redis", "database", "embedder (local)"].map((part) => health(report, part)),
      ["failed", "failed", "ok"],
    );
    for (const part of ["graph (sql)", "vectors (embedded)"])
      assert.equal(health(report, part), undefined, `${part}: nothing is known of it`);
  });

  it("writes, reads and deletes a file where files are kept, and tells no key", async () => {
    const bucket = await freshBucket();
    const part = "files (bucket)";
    const well = await doctor(["--settings"], bucket.env);
    assert.equal(health(well.report, part), "ok");
    assert.deepEqual(await bucket.list(), []);
    const locked = await doctor([], { ...bucket.env, AWS_SECRET_ACCESS_KEY: "canary" });
    assert.deepEqual([locked.code, health(locked.report, part)], [3, "failed"]);
    assert.doesNotMatch(JSON.stringify([well, locked]), new RegExp(`canary|${bucket.secretAccessKey}`));
  });

  it("tells whose bucket it is, where the files are, and which machines nobody works for", async () => {
    const bucket = await freshBucket();
    const part = "files (bucket)";
    const said = async (data: string, env: Record<string, string>) => {
      const { code, report } = await doctor([], { QUARRY_DATA: join(folder, data), ...env });
      const found = report.parts.find((each) => each.part === part || each.part === "files (data folder)");
      return { code, said: found!.said, workers: report.parts.find((each) => each.part === "workers")?.said };
    };
    for (const data of ["one", "two"]) {
      const quarry = await openQuarry({ dataFolder: join(folder, data), ...bucket.settings });
      if (data === "one") await (await quarry.work({ lanes: ["documents.remove"] })).stop();
      const payload = { file_path: "/a", seen_on: "far-away" };
      await quarry.queue.enqueue({ item_type: "file", op: "ingest", payload });
      await quarry.close();
    }
    const known = await openQuarry({ dataFolder: join(folder, "one"), ...bucket.settings, machine: "near" });
    const crew = await known.work({ lanes: ["items"] });
    try {
      const ours = await said("one", bucket.env);
      assert.deepEqual([ours.code, /belongs to this database/.test(ours.said)], [0, true]);
      const advice = /items wait for workers on far-away: run quarry worker --lanes items,items.oldest/;
      assert.match(ours.workers!, advice);
      await known.documents.add({ path: import.meta.filename });
    } finally {
      await crew.stop();
      await known.close();
    }
    const others = await said("two", bucket.env);
    assert.deepEqual([others.code, /holds the files of another database/.test(others.said)], [2, true]);

    const elsewhere = await said("one", {});
    assert.equal(elsewhere.code, 2);
    assert.match(elsewhere.said, /QUARRY_FILES is not set: set it to s3:/);
  });

  it("tells wrong settings as a failure of their part, looks at the others and ends with 2", async () => {
    const wrong = {
      QUARRY_FILES: "/srv/files",
      QUARRY_VECTORS: "qdrant",
      QDRANT_URL: "",
      QUARRY_PORT: "many",
    };
    const { code, report } = await doctor([], wrong);
    assert.equal(code, 2);
    assert.deepEqual(
      report.parts.filter((each) => each.health !== "ok").map(({ part }) => part),
      ["files", "vectors", "settings"],
    );
    assert.equal(health(report, "embedder (local)"), "ok");
    const { out } = await new Running(folder, ["doctor"], { QUARRY_PORT: "many" }).ended();
    assert.match(out, /^1 of \d+ parts does not work\.$/m);
  });

  it("looks into a database that is there, and at Redis as it is set", async () => {
    const { url, drop } = await freshPostgres();
    try {
      await (await openQuarry({ dataFolder: join(folder, "data"), databaseUrl: url })).close();
      const env = {
        DATABASE_URL: url,
        QUARRY_DATA: join(folder, "data"),
        REDIS_URL: process.env.TEST_REDIS_URL!,
      };
      const { code, report } = await doctor([], env);
      assert.equal(code, 0);
      for (const part of ["database", "workers", "graph (sql)", "vectors (embedded)"])
        assert.equal(health(report, part), "ok", part);
      assert.match(report.parts.find(({ part }) => part === "Redis")!.said, /^\d/);
    } finally {
      await drop();
    }
  });

  it("shows settings with their source, and no secret", async () => {
    const { report } = await doctor(["--settings"], {
      QUARRY_API_KEY: "canary-key-0123456789",
      QUARRY_PORT: "7311",
    });
    const setting = (name: string) => report.settings!.find((each) => each.name === name);
    assert.deepEqual([setting("QUARRY_PORT")?.value, setting("QUARRY_PORT")?.from], ["7311", "environment"]);
    assert.equal(setting("QUARRY_API_KEY")?.value, "[hidden]");
    assert.doesNotMatch(JSON.stringify(report), /canary/);
  });
});
