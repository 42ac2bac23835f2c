import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { loadSettings, type SettingProblem } from "../src/config.ts";
import type { Finding } from "../src/doctor/finding.ts";
import { examine } from "../src/doctor.ts";
import { openDatabase, openQuarry } from "../src/index.ts";
import { startPgvector } from "./support/pgvector.ts";
import { freshPostgres } from "./support/postgres.ts";
import { findQdrant } from "./support/qdrant.ts";
import { freshBucket } from "./support/s3.ts";

const LAST_STORE = "vectors";

describe("what the doctor finds", () => {
  let folder: string;
  let postgres: Awaited<ReturnType<typeof freshPostgres>>;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "quarry-doctor-"));
    postgres = await freshPostgres();
  });
  after(async () => {
    await postgres.drop();
    await rm(folder, { recursive: true, force: true });
  });

  /** By name, as far as that part: models take long to load. */
  const stores = async (env: Record<string, string>) => {
    const problems: SettingProblem[] = [];
    const onProblem = (problem: SettingProblem) => void problems.push(problem);
    const { settings } = loadSettings({ env, folder, onProblem });
    const findings = new Map<string, Finding>();
    for await (const found of examine(settings, { isMade: true, problems })) {
      const name = found.part.replace(/ \(.*/, "");
      findings.set(name, found);
      if (name === LAST_STORE) break;
    }
    return findings;
  };

  it("is that a PostgreSQL without tables is well, and so is what can be reached", async () => {
    const { url, apiKey } = await findQdrant();
    const env = { DATABASE_URL: postgres.url, QUARRY_DATA: join(folder, "none") };
    const qdrant = { QDRANT_URL: url, ...(apiKey && { QDRANT_API_KEY: apiKey }) };
    for (const vectors of [{}, qdrant]) {
      const findings = [...(await stores({ ...env, ...vectors })).values()];
      assert.deepEqual(
        findings.map(({ health }) => health),
        findings.map(() => "ok"),
      );
    }
    const database = openDatabase(postgres.url);
    const tables = await database.query("select 1 from pg_tables where schemaname = 'public'");
    await database.close();
    assert.deepEqual(tables, [], "nothing was made");
  });

  it("is how far a database is behind this program, or that it is ahead of it", async () => {
    const data = join(folder, "versions");
    await (await openQuarry({ dataFolder: data, logLevel: "silent" })).close();
    const said = async (sql: string) => {
      const database = openDatabase(join(data, "quarry.db"));
      await database.query(sql);
      await database.close();
      const { health, said: text } = (await stores({ QUARRY_DATA: data })).get("database")!;
      return `${health}: ${text}`;
    };
    assert.match(
      await said("delete from quarry_migrations where version > 3"),
      /^ok: SQLite .*, migration 3 of \d+: the next command/,
    );
    assert.match(
      await said(
        "insert into quarry_migrations (version, name, checksum, applied_at) values (9999, 'x', 'x', 'x')",
      ),
      /^failed: the database is at version 9999, this program knows \d+: use a newer program/,
    );
  });

  it("is whether a PostgreSQL without tables has pgvector", async () => {
    const vectors = async (url: string) =>
      (await stores({ DATABASE_URL: url, QUARRY_VECTORS: "pgvector" })).get(LAST_STORE)!;
    const pgvector = await startPgvector();
    try {
      const { health, said } = await vectors(pgvector.url);
      assert.deepEqual([health, /^pgvector \d/.test(said)], ["ok", true], said);
    } finally {
      await pgvector.stop();
    }
    const database = openDatabase(postgres.url);
    const [known] = await database.query("select 1 from pg_available_extensions where name = 'vector'");
    await database.close();
    const { health, said } = await vectors(postgres.url);
    assert.equal(health, known ? "ok" : "failed");
    if (!known) assert.match(said, /has no pgvector: install it there/);
  });

  it("is, of a folder and a bucket, what the commands find", async () => {
    const bucket = await freshBucket();
    const told = async (data: string, isElsewhere: boolean) => {
      const dataFolder = join(folder, data);
      const place = { QUARRY_DATA: dataFolder, DATABASE_URL: postgres.url };
      const found = (await stores({ ...place, ...(isElsewhere && bucket.env) })).get("files")!;
      const opening = openQuarry({
        ...{ dataFolder, databaseUrl: postgres.url, logLevel: "silent" },
        ...(isElsewhere && bucket.settings),
      });
      if (found.health === "failed") await assert.rejects(opening, { message: found.said });
      else await (await opening).close();
      return found.said;
    };
    const quarry = await openQuarry({
      ...{ dataFolder: join(folder, "with-index"), databaseUrl: postgres.url, logLevel: "silent" },
      ...bucket.settings,
    });
    assert.match(await told("empty", true), /not in use yet/);
    await quarry.documents.add({ path: import.meta.filename });
    await quarry.close();
    assert.match(await told("with-index", true), /belongs to this database/);
    // The index is in the folder, and this one has none.
    assert.match(await told("fresh", true), /the data folder .*fresh does not belong/);
    assert.match(await told("fresh", false), /QUARRY_FILES is not set: set it to s3:/);
  });

  it("says of what cannot be reached which setting holds its address", async () => {
    const closed = createServer().listen(0, "127.0.0.1");
    await once(closed, "listening");
    const address = `127.0.0.1:${(closed.address() as AddressInfo).port}`;
    await new Promise((resolve) => closed.close(resolve));
    const findings = await stores({
      ...{ DATABASE_URL: `postgres://nobody@${address}/nothing`, QDRANT_URL: `http://${address}` },
      ...{ QUARRY_FILES: "s3://quarry-files/a", AWS_ENDPOINT_URL_S3: `http://${address}` },
      ...{ AWS_ACCESS_KEY_ID: "id", AWS_SECRET_ACCESS_KEY: "key" },
    });
    for (const [part, setting] of [
      ["database", "DATABASE_URL"],
      ["files", "AWS_ENDPOINT_URL_S3"],
      [LAST_STORE, "QDRANT_URL"],
    ] as const) {
      const { said, exitCode } = findings.get(part)!;
      assert.equal(exitCode, 3, part);
      assert.match(said, new RegExp(`ECONNREFUSED.*; start it, or set ${setting} to where it listens`));
    }
  });

  it("is that the key of a bucket is missing, and how the others are", async () => {
    const findings = await stores({ DATABASE_URL: postgres.url, QUARRY_FILES: "s3://quarry-files/a" });
    const { said, exitCode } = findings.get("files")!;
    assert.deepEqual([exitCode, findings.get("database")!.health], [2, "ok"]);
    assert.match(said, /set AWS_ACCESS_KEY_ID/);
    assert.ok(findings.has(LAST_STORE));
  });
});
