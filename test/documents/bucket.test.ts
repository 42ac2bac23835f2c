import assert from "node:assert/strict";
import { cp, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { openDatabase, openQuarry, type Quarry, type Row } from "../../src/index.ts";
import { startModelServer } from "../support/model-server.ts";
import { freshPostgres } from "../support/postgres.ts";
import { findQdrant } from "../support/qdrant.ts";
import { bucketAt, freshBucket, startS3 } from "../support/s3.ts";

const TENANT = "default";
const SAMPLES = join(import.meta.dirname, "../../samples");

test("documents whose files are in a bucket: taken in, read, found, shown and deleted", async (t) => {
  const place = await openPlace(t, await freshBucket());
  const { quarry, bucket, ingest } = place;
  await cp(join(SAMPLES, "survey"), join(place.folder, "survey"), { recursive: true });
  await quarry.work();
  const { documentIds } = await quarry.queue.finished(await ingest("survey"));
  await worked(quarry);
  const documents = await Promise.all(documentIds.map((id) => quarry.documents.show(id)));
  assert.ok(documents.length > 0 && documents.every(({ state }) => state === "completed"));
  const pages = documents.reduce((sum, document) => sum + (document.pages ?? 0), 0);

  const kept = await bucket.list();
  assert.equal(kept.filter((key) => /\/original\.\w+$/.test(key)).length, documents.length);
  assert.equal(kept.filter((key) => key.endsWith("_nohf.md")).length, pages);
  assert.ok(kept.includes("quarry/folder-id"));
  assert.ok(!(await readdir(place.dataFolder)).includes("documents"), "nothing of them is on this machine");

  const { results } = await quarry.search.search({ query: "granite", tenant: TENANT });
  const hit = results[0]!;
  const text = await quarry.documents.pageText(hit.documentId, hit.pageNumber);
  assert.ok(text!.length > 0);
  assert.equal(await quarry.documents.pageText(hit.documentId, 9_999), undefined);

  for (const id of documentIds) await quarry.documents.delete(id);
  await until(async () => (await bucket.list()).length === 1);
  // The second look, after whoever held something has lost it, is still to come.
  await until(async () => {
    const done = await place.query(
      "select 1 as done from document_removals where status = 'completed' and files_status = 'completed'",
    );
    return done.length === documentIds.length;
  });
});

test("a bucket belongs to one database, and one that lacks the files is refused", async (t) => {
  const bucket = await freshBucket();
  const first = await openPlace(t, bucket);
  const crew = await first.quarry.work();
  await writeFile(join(first.folder, "a.md"), "Granite is cut in the quarry.");
  await first.quarry.queue.finished(await first.ingest("a.md"));
  await crew.stop();

  const second = await openPlace(t, bucket);
  const isOthers = { code: "invalid_input", message: /holds the files of another database/ };
  await assert.rejects(second.quarry.work(), isOthers);
  // What was refused decides nothing: the next place is as good as the first.
  const fresh = await second.open({ filesUrl: undefined, dataFolder: join(second.folder, "fresh") });
  await fresh.documents.add({ path: join(first.folder, "a.md") });
  await fresh.close();

  const elsewhere = { filesUrl: `${first.bucket.settings.filesUrl}/other` };
  await assert.rejects(first.open({ ...elsewhere, areFilesMoved: true }), {
    message: /does not hold the files of this database: .*copy "documents"/,
  });
  for (const key of await bucket.list("quarry/"))
    await bucket.copy(key, key.replace("quarry/", "quarry/other/"));
  await (await first.open({ ...elsewhere, areFilesMoved: true })).close();
  const moved = await first.open(elsewhere);
  t.after(() => moved.close());
  await (await moved.work()).stop();
  await assert.rejects(first.open(), { message: /and QUARRY_FILES is s3:.*: set it to s3:.*\/other; or/ });
});

test("a process that would keep files elsewhere than the others is refused, and told which setting is missing", async (t) => {
  const bucket = await freshBucket();
  const place = await openPlace(t, bucket);
  const inFolder = { filesUrl: undefined };
  const url = bucket.settings.filesUrl;
  // Nothing is kept yet: whoever begins decides.
  await (await place.open(inFolder)).close();
  const crew = await place.quarry.work();
  await writeFile(join(place.folder, "a.md"), "Granite is cut in the quarry.");
  await place.quarry.queue.finished(await place.ingest("a.md"));

  const refusal = { code: "invalid_input", message: new RegExp(`${url}, and QUARRY_FILES is not set: set`) };
  await assert.rejects(place.open(inFolder), refusal);
  // Where the files are comes before whose folder this is.
  await assert.rejects(place.open({ ...inFolder, dataFolder: join(place.folder, "fresh") }), refusal);
  await assert.rejects(
    place.open(inFolder),
    ({ message }: Error) => !message.includes(bucket.secretAccessKey),
  );
  await assert.rejects(place.open({ ...inFolder, areFilesMoved: true }), {
    message: new RegExp(`stop them first \\(.*, process ${process.pid}\\)`),
  });
  await crew.stop();

  const moving = { ...inFolder, areFilesMoved: true };
  await assert.rejects(place.open(moving), { code: "not_found", message: /1 of the 1 files .* are not in/ });
  const original = (await bucket.list()).find((key) => key.endsWith("original.md"))!;
  const copied = join(place.dataFolder, original.replace("quarry/", ""));
  await mkdir(dirname(copied), { recursive: true });
  await writeFile(copied, "Granite is cut in the quarry.");
  await (await place.open(moving)).close();
  await assert.rejects(place.open(), {
    message:
      /keeps its files in the data folder, and QUARRY_FILES is s3:.*: unset it; or, .*quarry migrate files/,
  });
  await (await place.open(inFolder)).close();
});

test("while a bucket is away, a file that is tried again and again is to be removed once", async (t) => {
  const server = await startS3();
  t.after(() => server.stop());
  const { quarry, folder, query } = await openPlace(t, await bucketAt(server));
  await (await quarry.work()).stop();
  await server.quit();
  const paths = ["a.md", "b.md"].map((name) => join(folder, name));
  for (const path of paths) await writeFile(path, "Granite is cut in the quarry.");
  for (const path of [paths[0]!, ...paths])
    await assert.rejects(quarry.documents.add({ path }), { code: "store_unavailable" });
  const removals = async () => (await query("select document_id from document_removals")).length;
  assert.equal(await removals(), paths.length);
  await server.launch();
  for (const path of paths) await quarry.documents.add({ path });
  assert.equal(await removals(), 0);
});

test("machines that begin at once take a new bucket into use together", async (t) => {
  const [bucket, postgres] = await Promise.all([freshBucket(), freshPostgres()]);
  const folder = await mkdtemp(join(tmpdir(), "quarry-bucket-"));
  const { url, apiKey } = await findQdrant();
  const open = (name: string) =>
    openQuarry({
      ...{ dataFolder: join(folder, name), databaseUrl: postgres.url, logLevel: "silent" },
      ...{ qdrantUrl: url, vectors: "qdrant", ...(apiKey && { qdrantApiKey: apiKey }) },
      ...bucket.settings,
    });
  const machines = await Promise.all(["one", "two", "three"].map(open));
  t.after(async () => {
    for (const quarry of machines) await quarry.close();
    await postgres.drop();
    await rm(folder, { recursive: true, force: true });
  });
  const lanes = ["documents.remove"];
  for (const crew of await Promise.all(machines.map((quarry) => quarry.work({ lanes })))) await crew.stop();
  assert.deepEqual(await bucket.list(), ["quarry/folder-id"]);
});

test("a bucket that is away stops the lanes that need it and no others; nothing is lost, no attempt spent", async (t) => {
  const server = await startS3();
  t.after(() => server.stop());
  const place = await openPlace(t, await bucketAt(server));
  const { quarry, bucket, ingest, query } = place;
  await quarry.work();
  for (const name of ["old.md", "older.md"])
    await writeFile(join(place.folder, name), `Granite is cut in the quarry of ${name}.`);
  const { documentIds } = await quarry.queue.finished([
    ...(await ingest("old.md")),
    ...(await ingest("older.md")),
  ]);
  await worked(quarry);

  await server.quit();
  await quarry.documents.delete(documentIds[0]!);
  await writeFile(join(place.folder, "new.md"), "Basalt is sawn in the valley.");
  const later = await ingest("new.md");
  const row = async (sql: string): Promise<Row> => (await query(sql))[0]!;
  await until(async () => {
    const { removals } = await row(
      "select count(*) as removals from document_removals where status = 'pending' and run_after is not null and files_status = 'pending' and vectors_status = 'completed'",
    );
    const { items } = await row(
      "select count(*) as items from unified_queue where status = 'pending' and run_after is not null",
    );
    return Number(removals) === 1 && Number(items) === 1;
  });
  // What needs no files goes on.
  await quarry.documents.redo(documentIds[1]!, "graphrag");
  await worked(quarry, [documentIds[1]!]);
  assert.equal((await row("select max(retry_count) as spent from unified_queue")).spent, 0);
  const { results } = await quarry.search.search({ query: "granite", tenant: TENANT });
  assert.deepEqual(
    results.map(({ filename }) => filename),
    ["older.md"],
  );
  await assert.rejects(quarry.documents.pageText(documentIds[1]!, 1), { code: "store_unavailable" });

  await server.launch();
  // Due at once, instead of in a quarter of a minute.
  for (const table of ["unified_queue", "document_removals", "documents"]) {
    const column = table === "documents" ? "ocr_run_after" : "run_after";
    await query(`update ${table} set ${column} = '2000-01-01T00:00:00.000Z' where ${column} is not null`);
  }
  await quarry.queue.finished(later);
  await until(async () => {
    const open = await row("select count(*) as open from document_removals where status <> 'completed'");
    return Number(open.open) === 0;
  });
  const ids = new Set((await bucket.list()).map((key) => /documents\/([^/]+)/.exec(key)?.[1] ?? "none"));
  assert.equal(ids.size, 3, "two documents, and the id of the bucket");
  assert.ok(!ids.has(documentIds[0]!));
});

test("a copy in a bucket that never became a document is taken out again", async (t) => {
  const place = await openPlace(t, await freshBucket());
  const { quarry, bucket, query } = place;
  await writeFile(join(place.folder, "a.md"), "Granite is cut in the quarry.");
  // As if the process had died between the copy and the row.
  await query(
    "create trigger no_document before insert on documents begin select raise(rollback, 'the power failed'); end",
  );
  await assert.rejects(quarry.documents.add({ path: join(place.folder, "a.md") }));
  const abandoned = await query("select document_id, status, run_after from document_removals");
  assert.ok(abandoned.every((row) => row.status === "pending" && row.run_after !== null));
  await bucket.put(`quarry/documents/${abandoned[0]!.document_id}/original.md`, "Granite");

  await query("drop trigger no_document");
  const { id } = await quarry.documents.add({ path: join(place.folder, "a.md") });
  const later = await query("select document_id from document_removals");
  assert.deepEqual(later.length, abandoned.length, "that of the document is gone");
  await query("update document_removals set run_after = '2000-01-01T00:00:00.000Z'");
  const crew = await quarry.work();
  await until(async () => {
    const done = await query("select 1 as one from document_removals where status = 'completed'");
    return done.length === abandoned.length;
  });
  await worked(quarry);
  await crew.stop();
  const kept = (await bucket.list("quarry/documents/")).map((key) => key.split("/")[2]);
  assert.deepEqual([...new Set(kept)], [id]);
});

async function openPlace(
  t: { after(end: () => Promise<void>): void },
  given: Awaited<ReturnType<typeof bucketAt>>,
) {
  const folder = await mkdtemp(join(tmpdir(), "quarry-bucket-"));
  const model = await startModelServer();
  const dataFolder = join(folder, "data");
  const databaseUrl = join(folder, "quarry.db");
  /** `filesUrl: undefined` keeps files in the data folder. */
  const open = (
    settings: { filesUrl?: string | undefined; areFilesMoved?: boolean; dataFolder?: string } = {},
  ) => {
    const { filesUrl = "filesUrl" in settings ? undefined : given.settings.filesUrl, areFilesMoved = false } =
      settings;
    const { filesUrl: _, ...keys } = given.settings;
    return openQuarry({
      ...{ databaseUrl, logLevel: "silent", pollMs: 100, checkEveryMs: 200 },
      dataFolder: settings.dataFolder ?? dataFolder,
      ...{ embedder: "ollama:nomic-embed-text", ollamaHost: model.url },
      ...{ ...keys, ...(filesUrl !== undefined && { filesUrl }), areFilesMoved },
    });
  };
  const quarry = await open();
  const rows = openDatabase(databaseUrl);
  t.after(async () => {
    await quarry.close();
    await rows.close();
    await model.close();
    await rm(folder, { recursive: true, force: true });
  });
  const ingest = async (name: string) =>
    (await quarry.ingest([join(folder, name)])).items.map((item) => item.queue_id);
  return { quarry, open, bucket: given, folder, dataFolder, ingest, query: (sql: string) => rows.query(sql) };
}

async function worked(quarry: Quarry, ids?: readonly string[]): Promise<void> {
  await until(async () => (await quarry.documents.progress(ids)).open === 0);
}

async function until(isReached: () => Promise<boolean>): Promise<void> {
  while (!(await isReached())) await new Promise((resolve) => setTimeout(resolve, 50));
}
