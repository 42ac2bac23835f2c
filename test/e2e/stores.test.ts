import assert from "node:assert/strict";
import { cp, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { openQuarry, type Quarry } from "../../src/index.ts";
import { SAMPLE_QUESTIONS } from "../quality/questions.ts";
import { startPgvector } from "../support/pgvector.ts";
import { freshPostgres } from "../support/postgres.ts";
import { findQdrant } from "../support/qdrant.ts";

/** Without the scan: reading it is tested elsewhere and takes longer than all the rest. */
const SAMPLES = join(import.meta.dirname, "../../samples");
const FOLDERS = ["handbook", "operations", "press", "survey"];
const TENANT = "default";
const MODES = ["vector", "keyword", "hybrid"] as const;

type Found = Map<string, string[]>;

describe("the sample documents in every store", () => {
  let folder: string;
  let files: string;
  let postgres: { url: string; drop(): Promise<void> };
  let embedded: Found;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "quarry-stores-"));
    files = join(folder, "files");
    for (const name of FOLDERS) await cp(join(SAMPLES, name), join(files, name), { recursive: true });
    postgres = await freshPostgres();
    const quarry = await open({ vectors: "embedded" });
    await ingest(quarry);
    embedded = await searchAll(quarry);
    await quarry.close();
  });
  after(async () => {
    await postgres.drop();
    await rm(folder, { recursive: true, force: true });
  });
  const open = (settings: Parameters<typeof openQuarry>[0]) =>
    openQuarry({
      dataFolder: join(folder, "data"),
      databaseUrl: postgres.url,
      logLevel: "silent",
      ...settings,
    });
  const ingest = async (quarry: Quarry) => {
    const crew = await quarry.work();
    const { items } = await quarry.ingest([files]);
    await quarry.queue.finished(items.map((item) => item.queue_id));
    await worked(quarry);
    await crew.stop();
  };

  test("with Qdrant and PostgreSQL's words: a reindex is asked for, and brings the same passages", {
    timeout: 200_000,
  }, async (t) => {
    const { url, apiKey } = await findQdrant();
    const qdrant = { vectors: "qdrant", qdrantUrl: url, ...(apiKey && { qdrantApiKey: apiKey }) } as const;
    let quarry = await open(qdrant);
    const query = { query: "granite", tenant: TENANT };
    await assert.rejects(quarry.search.search(query), { code: "schema_mismatch", message: /quarry reindex/ });
    await assert.rejects(quarry.work(), { code: "schema_mismatch" });
    await quarry.close();
    quarry = await open(qdrant);
    t.after(() => quarry.close());
    const documents = await quarry.reindex();
    const crew = await quarry.work();
    await worked(quarry);
    assert.equal((await quarry.documents.states()).completed, documents);
    assertSame(await searchAll(quarry), embedded, t);

    await renameAndDelete(quarry);
    await writeFile(join(folder, "new.md"), "Basalt came to the quarry later.");
    const { items } = await quarry.ingest([join(folder, "new.md")]);
    await quarry.queue.finished(items.map((item) => item.queue_id));
    await worked(quarry);
    await crew.stop();
    const back = await open({ vectors: "embedded" });
    t.after(() => back.close());
    await assert.rejects(back.search.search(query), {
      code: "schema_mismatch",
      message: /QUARRY_VECTORS is embedded/,
    });
  });

  test("with pgvector: the same passages", { timeout: 280_000 }, async (t) => {
    const { url, stop } = await startPgvector();
    const dataFolder = join(folder, "pgvector");
    const quarry = await open({ vectors: "pgvector", databaseUrl: url, dataFolder, poolMax: 1 });
    t.after(async () => {
      await quarry.close();
      await stop();
    });
    await ingest(quarry);
    assertSame(await searchAll(quarry), embedded, t);
  });

  /** Names and rows stand in the database alone, so a rename writes nothing to the stores. */
  async function renameAndDelete(quarry: Quarry): Promise<void> {
    const [from, to] = [join(files, "press"), join(files, "news")];
    const [before] = (await quarry.search.search({ query: "press release", tenant: TENANT })).results;
    assert.ok(before);
    await rename(from, to);
    await quarry.documents.move({ tenant: TENANT }, { from, to, isFolder: true });
    const { results } = await quarry.search.search({ query: "press release", tenant: TENANT, limit: 50 });
    assert.ok(results.some(({ source }) => source.startsWith(to)));
    assert.ok(!results.some(({ source }) => source.startsWith(from)));
  }
});

async function worked(quarry: Quarry): Promise<void> {
  while ((await quarry.documents.progress()).open > 0)
    await new Promise((resolve) => setTimeout(resolve, 100));
}

async function searchAll(quarry: Quarry): Promise<Found> {
  const found: Found = new Map();
  for (const { question } of SAMPLE_QUESTIONS)
    for (const mode of MODES) {
      const { results } = await quarry.search.search({ query: question, tenant: TENANT, limit: 5, mode });
      found.set(
        `${mode}: ${question}`,
        results.map(({ filename, content }) => `${filename}: ${content}`),
      );
    }
  return found;
}

function assertSame(found: Found, wanted: Found, t: { diagnostic(message: string): void }): void {
  for (const mode of MODES) {
    let [same, first, total] = [0, 0, 0];
    let questions = 0;
    for (const [key, passages] of wanted) {
      if (!key.startsWith(`${mode}:`)) continue;
      const here = found.get(key)!;
      questions++;
      total += passages.length;
      same += passages.filter((passage) => here.includes(passage)).length;
      if (here[0] === passages[0]) first++;
    }
    const shares = { same: same / total, first: first / questions };
    t.diagnostic(`${mode}: ${JSON.stringify(shares)} of ${total} passages for ${questions} questions`);
    const floor = mode === "keyword" ? 0.95 : 0.99;
    assert.ok(shares.same >= floor && shares.first >= floor, `${mode}: ${JSON.stringify(shares)}`);
  }
}
