import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Running } from "./running.ts";

describe("commands on an empty folder", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "quarry-empty-"));
  });
  after(() => rm(folder, { recursive: true, force: true }));
  const quarry = (args: string[], env: Record<string, string> = {}) => new Running(folder, args, env).ended();

  test("that only read say the same and create nothing", async () => {
    for (const args of [
      ["status"],
      ["search", "x"],
      ["documents", "list"],
      ["documents", "show", "01990b0e-7c1a"],
      ["documents", "delete", "01990b0e-7c1a"],
      ["lanes", "list"],
    ]) {
      const { code, out, err } = await quarry(args);
      assert.deepEqual([code, out], [1, ""], args.join(" "));
      assert.match(err, /there is nothing in \.quarry yet: ingest something first/, args.join(" "));
    }
    assert.deepEqual(await readdir(folder), []);
  });

  test("that name a database which cannot be opened say so, whatever they do", async () => {
    for (const command of [["documents", "list"], ["status"]]) {
      const { code, err } = await quarry(command, { DATABASE_URL: "mysql://x" });
      assert.equal(code, 2);
      assert.match(err, /cannot open "mysql:\/\/x" as a database: give postgres/);
    }
    assert.deepEqual(await readdir(folder), []);
  });

  test("that take over a database which is not there do not make one", async () => {
    const { code, err } = await quarry(["migrate", "legacy", "--from", "none.db"]);
    assert.equal(code, 2);
    assert.match(err, /none\.db: no such file/);
    assert.deepEqual(await readdir(folder), []);
  });

  test("that get a file as their data folder say so", async () => {
    await writeFile(join(folder, "file"), "");
    for (const data of ["file", "file/below"]) {
      const { code, err } = await quarry(["ingest", "file", "--data", data]);
      assert.equal(code, 2, err);
      assert.match(err, /a folder is needed; name another folder with --data/);
    }
  });
});

describe("mistakes on the command line", () => {
  let folder: string;
  let ids: Map<string, string>;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "quarry-mistakes-"));
    await mkdir(join(folder, "docs"));
    await writeFile(join(folder, "docs/notes.md"), "# Harbour\n\nThe keeper lit the lamp at dusk.\n");
    await writeFile(join(folder, "docs/blank.md"), "\n\n");
    await writeFile(join(folder, "docs/empty.txt"), "");
    await writeFile(join(folder, "docs/.env"), "SECRET=1");
    const { out } = await quarry("ingest", "docs", "--wait", "--collection", "harbour", "--json");
    const { documents } = JSON.parse(out) as { documents: { id: string; filename: string }[] };
    ids = new Map(documents.map(({ id, filename }) => [filename, id]));
  });
  after(() => rm(folder, { recursive: true, force: true }));
  const quarry = (...args: string[]) => new Running(folder, args).ended();

  test("one unknown id among others: nothing is done with any of them", async () => {
    for (const wrong of ["00000000-0000-4000-8000-000000000000", "nonsense"]) {
      const { code, out } = await quarry("documents", "delete", ids.get("notes.md")!, wrong);
      assert.deepEqual([code, out], [wrong === "nonsense" ? 2 : 1, ""]);
    }
    assert.equal((await quarry("documents", "show", ids.get("notes.md")!)).code, 0);
  });

  test("a beginning of an id will do", async () => {
    const id = ids.get("notes.md")!;
    const { code, out } = await quarry("documents", "show", id.slice(0, -2));
    assert.equal(code, 0);
    assert.match(out, new RegExp(id));
  });

  test("a list has a header, says where files are, and notes what has no text", async () => {
    const { out } = await quarry("documents", "list");
    assert.match(out, /^ +id +state +pages +chunks +collection +file +note\n/);
    assert.match(out, /completed +1 +1 +harbour +\S*docs\/notes\.md\n/);
    assert.match(out, /completed +1 +0 +harbour +\S*docs\/blank\.md +no text found\n/);
    assert.match((await quarry("documents", "show", ids.get("blank.md")!)).out, /no text found/);
  });

  test("what failed is said once, with its place", async () => {
    const { out } = await quarry("documents", "show", ids.get("empty.txt")!);
    assert.match(out, /Failed:\n +ocr +document +empty\.txt is empty/);
    assert.equal(out.match(/is empty/g)?.length, 1);
    assert.match((await quarry("status")).out, /documents +3, 0 with work to do, 1 failed\n/);
  });

  test("a search shows where a passage is from, and knows a wrong place from no results", async () => {
    const { out } = await quarry("search", "lamp");
    assert.match(out, new RegExp(`docs/notes\\.md {2}\\(harbour, ${ids.get("notes.md")}\\)`));
    const wrong = await quarry("search", "lamp", "--collection", "nope");
    assert.equal(wrong.code, 1);
    assert.match(wrong.err, /no document of the tenant "default" in the collection "nope"/);
    assert.equal((await quarry("search", "lamp", "--tenant", "nope")).code, 1);
    assert.equal((await quarry("search", "lamp", "--document", "00000000")).code, 1);
  });

  test("hints fit what was done", async () => {
    const again = await quarry("ingest", "docs", "--collection", "harbour");
    assert.match(again.out, /In line: 1 item\nWaiting for a worker: run `quarry up`, or add --wait/);
    const waited = await quarry("ingest", "docs", "--collection", "harbour", "--wait");
    assert.match(waited.out, /2 unchanged, 1 skipped, 1 failed\n.*\.env: hidden\n/);
    const metadata = ["--metadata", "year=2026", "--wait"];
    const changed = await quarry("ingest", "docs", "--collection", "harbour", ...metadata);
    assert.match(changed.out, /2 metadata changed/);
    const only = await quarry("ingest", "docs/empty.txt", "--collection", "harbour", "--wait");
    assert.equal(only.code, 1);
    assert.match(only.out, /Not everything could be read/);
    assert.doesNotMatch(only.out, /The rest can be searched/);
    const missing = await quarry("ingest", "nothing");
    assert.match(missing.out, /refused: nothing: no such file or folder/);
  });

  test("a tenant that cannot be is wrong usage, told once", async () => {
    const { code, err } = await quarry("ingest", "docs", "--tenant", "");
    assert.equal(code, 2);
    assert.equal(err.match(/tenant_id: use 1 to 100 letters/g)?.length, 1);
  });

  test("with --json errors are JSON as well", async () => {
    for (const [args, expected] of [
      [["documents", "show", "00000000", "--json"], "not_found"],
      [["documents", "show", "nonsense", "--json"], "invalid_input"],
      [["search", "x", "--json", "--what"], "invalid_input"],
    ] as const) {
      const { out, err } = await quarry(...args);
      assert.equal(out, "");
      const { error } = JSON.parse(err);
      assert.equal(error.code, expected);
      assert.ok(error.message.length > 0);
    }
  });
});
