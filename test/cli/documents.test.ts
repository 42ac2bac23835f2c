import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

const BIN = join(import.meta.dirname, "../../bin/quarry.js");

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

describe("documents on the command line", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "quarry-cli-"));
    await writeFile(join(folder, "notes.md"), "# Harbour\n\nThe lighthouse keeper lit the lamp at dusk.\n");
    await writeFile(join(folder, "empty.pdf"), "");
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const start = (args: readonly string[], env: Record<string, string> = {}) =>
    spawn(process.execPath, [BIN, ...args], {
      cwd: folder,
      env: { ...process.env, DATABASE_URL: "", QUARRY_DATA: "", ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
  const quarry = async (...args: string[]): Promise<Ran> => {
    const child = start(args);
    let out = "";
    let err = "";
    child.stdout.on("data", (bytes) => {
      out += bytes;
    });
    child.stderr.on("data", (bytes) => {
      err += bytes;
    });
    const [code] = await once(child, "close");
    return { code: code as number, out, err };
  };
  const json = async (...args: string[]) => JSON.parse((await quarry(...args, "--json")).out);

  test("every command tells how it is used, with an example", async () => {
    const commands = [
      "ingest",
      "search",
      "status",
      "up",
      "worker",
      "migrate",
      "migrate legacy",
      "lanes list",
      "lanes pause",
      "documents list",
      "documents show",
      "documents retry",
      "documents redo",
      "documents cancel",
      "documents delete",
    ];
    for (const command of commands) {
      const { code, out } = await quarry(...command.split(" "), "--help");
      assert.equal(code, 0, command);
      assert.match(out, /Example/, command);
      assert.match(out, /--json/, command);
    }
    for (const group of [[], ["documents"], ["lanes"]])
      assert.match((await quarry(...group, "--help")).out, /Example/, group.join());
  });

  test("a folder is ingested, searched, listed and shown; a bad file is named and the exit code says so", {
    timeout: 120_000,
  }, async () => {
    const ingested = await quarry("ingest", "notes.md", "empty.pdf", "--wait", "--json");
    assert.equal(ingested.code, 1, ingested.err);
    const { documents } = JSON.parse(ingested.out);
    const states = Object.fromEntries(
      documents.map((one: { filename: string; state: string }) => [one.filename, one.state]),
    );
    assert.deepEqual(states, { "notes.md": "completed", "empty.pdf": "failed" });

    const answer = await json("search", "who", "lights", "the", "lamp");
    assert.equal(answer.results[0].filename, "notes.md");
    assert.match(
      (await quarry("search", "lighthouse")).out,
      /1\. notes\.md › page 1 › Harbour\n {3}.*lighthouse/,
    );

    const list = await json("documents", "list", "--state", "failed");
    assert.deepEqual(
      list.documents.map((one: { filename: string }) => one.filename),
      ["empty.pdf"],
    );
    const shown = await quarry("documents", "show", list.documents[0].id);
    assert.match(shown.out, /empty/);
    assert.match(shown.out, /Failed:/);

    const again = await quarry("ingest", "notes.md", "--wait");
    assert.equal(again.code, 0, again.err);
    assert.match(again.out, /1 unchanged/);
    const status = await json("status");
    assert.deepEqual([status.progress.documents, status.progress.open, status.workers], [2, 0, []]);
  });

  test("wrong usage exits with 2 and says what to do", async () => {
    for (const args of [
      ["ingest"],
      ["documents", "show", "nonsense"],
      ["documents", "redo", "00000000-0000-4000-8000-000000000000", "--phase", "later"],
      ["documents", "list", "--state", "odd"],
      ["search", "x", "--mode", "odd"],
      ["search", "x", "--limit", "0"],
      ["lanes", "pause", "odd"],
      ["worker", "--lanes", "odd"],
    ]) {
      const { code, err } = await quarry(...args);
      assert.equal(code, 2, `${args.join(" ")}: ${err}`);
      assert.ok(err.length > 0);
    }
    const missing = await quarry("documents", "show", "00000000-0000-4000-8000-000000000000");
    assert.deepEqual([missing.code, /documents list/.test(missing.err)], [1, true]);
  });

  test("an unreachable database exits with 3", async () => {
    const child = start(["status"], { DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" });
    const [code] = await once(child, "close");
    assert.equal(code, 3);
  });

  test("a paused lane stays paused until it is resumed", async () => {
    await quarry("lanes", "pause", "chunks.graphrag");
    const lanes: { name: string; isPaused: boolean }[] = await json("lanes", "list");
    assert.deepEqual(
      lanes.filter(({ isPaused }) => isPaused).map(({ name }) => name),
      ["chunks.graphrag"],
    );
    await quarry("lanes", "resume", "chunks.graphrag");
    assert.ok((await json("lanes", "list")).every(({ isPaused }: { isPaused: boolean }) => !isPaused));
  });

  test("Ctrl-C leaves everything resumable and says how", { timeout: 120_000 }, async () => {
    const paragraphs = Array.from(
      { length: 400 },
      (_, n) => `Paragraph ${n} tells of stone number ${n * 7919} and its weight.`,
    );
    await writeFile(join(folder, "long.md"), paragraphs.join("\n\n"));
    const child = start(["ingest", "long.md", "--wait"]);
    let err = "";
    let out = "";
    child.stdout.on("data", (bytes) => {
      out += bytes;
    });
    child.stderr.on("data", (bytes) => {
      err += bytes;
      if (/OCR/.test(err)) child.kill("SIGINT");
    });
    const [code] = await once(child, "close");
    assert.match(out, /Nothing is lost.*quarry up/, err);
    assert.equal(code, 1);
    const rest = await quarry("ingest", "long.md", "--wait");
    assert.equal(rest.code, 0, rest.err);
    const { documents } = await json("documents", "list", "--name", "long.md");
    assert.equal(documents[0].state, "completed");
  });

  test("`up` works on what others take in, until it is stopped", { timeout: 120_000 }, async () => {
    const up = start(["up", "--json", "--port", "0"]);
    await once(up.stdout, "data");
    await writeFile(join(folder, "later.txt"), "The ferry leaves at noon.");
    assert.equal((await quarry("ingest", "later.txt")).code, 0);
    let state = "";
    while (state !== "completed")
      state = (await json("documents", "list", "--name", "later.txt")).documents[0]?.state;
    up.kill("SIGTERM");
    const [code] = await once(up, "close");
    assert.equal(code, 0);
    assert.equal((await json("status")).workers.length, 0);
  });

  test("a deleted document is no longer found", { timeout: 60_000 }, async () => {
    const [document] = (await json("documents", "list", "--name", "later")).documents;
    assert.equal((await quarry("documents", "delete", document.id)).code, 0);
    const { results } = await json("search", "ferry leaves at noon");
    assert.ok(results.every((one: { filename: string }) => one.filename !== "later.txt"));
  });
});
