import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Serving, serveForTest } from "./serving.ts";

interface Answer {
  readonly job_id: string;
  readonly verdict: string;
  readonly status: string;
  readonly submitted_by: string;
  readonly priority: string;
  readonly source_type: string;
  readonly next: string | null;
  readonly jobs: readonly { readonly job_id: string; readonly filename: string }[];
  readonly letters: readonly { readonly id: string; readonly reason: string; readonly message: string }[];
}

describe("RAG jobs over HTTP", () => {
  let folder: string;
  let incoming: string;
  let serving: Serving;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "quarry-rag-http-"));
    incoming = join(folder, "incoming");
    await mkdir(incoming);
    await writeFile(join(incoming, "a.txt"), "Some text.");
    await writeFile(join(folder, "outside.txt"), "secret");
    await symlink("/etc/passwd", join(incoming, "link.txt"));
    serving = await serveForTest({
      settings: {
        rags: { policies_rag: { sources: folder } },
        apiKey: "read=reader-key-0123456789,read+write=writer-key-0123456789",
      },
    });
  });
  after(async () => {
    await serving.close();
    await rm(folder, { recursive: true });
  });

  const ask = async (path: string, body?: object, key = "writer-key-0123456789") => {
    const response = await serving.ask(path, {
      method: body ? "POST" : "GET",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: response.status, answer: (await response.json()) as Answer };
  };
  const job = { rag_id: "policies_rag", source_path: "" };

  test("a job is created, read and listed; the same id again is the same job", async () => {
    const source_path = join(incoming, "a.txt");
    const options = { reindex: true };
    const made = await ask("/rag/jobs", { ...job, source_path, options, priority: "low" });
    assert.equal(made.status, 201);
    assert.match(made.answer.job_id, /^rag-policies_rag-\d+-[0-9a-f]{8}$/);
    const read = await ask(`/rag/jobs/${made.answer.job_id}`);
    assert.deepEqual(
      [read.answer.status, read.answer.submitted_by, read.answer.priority, read.answer.source_type],
      ["queued", "api", "low", "txt"],
    );
    const own = { ...job, source_path, job_id: "my-own.1", filename: "b.md", source_type: "md" };
    assert.equal((await ask("/rag/jobs", own)).answer.verdict, "queued");
    assert.equal((await ask("/rag/jobs", own)).answer.verdict, "known");
    const list = await ask("/rag/jobs?rag_id=policies_rag&status=queued&limit=1");
    assert.deepEqual(
      list.answer.jobs.map(({ filename }) => filename),
      ["b.md"],
    );
    const rest = await ask(`/rag/jobs?limit=1&after=${list.answer.next}`);
    assert.equal(rest.answer.jobs[0]!.job_id, made.answer.job_id);
  });

  test("paths that are not the RAG's are refused, and nothing is told of what is there", async () => {
    for (const [body, status] of [
      [{ ...job, source_path: join(folder, "..", "etc", "passwd") }, 400],
      [{ ...job, source_path: "/etc/passwd" }, 400],
      [{ ...job, source_path: join(incoming, "link.txt") }, 400],
      [{ ...job, source_path: "incoming/a.txt" }, 400],
      [{ ...job, source_path: join(incoming, "nope.txt") }, 404],
      [{ ...job, source_path: join(incoming, "a.txt"), rag_id: "nobodys" }, 404],
      [{ ...job, source_path: join(incoming, "a.txt"), filename: "../x.txt" }, 400],
      [{ ...job, source_path: join(incoming, "a.txt"), filename: "a.exe" }, 415],
      [{ ...job, source_path: join(incoming, "a.txt"), source_type: "exe" }, 400],
      [{ ...job, source_path: join(incoming, "a.txt"), job_id: "a:b" }, 400],
      [{ ...job, source_path: join(incoming, "a.txt"), colour: "red" }, 400],
    ] as const)
      assert.equal((await ask("/rag/jobs", body)).status, status, JSON.stringify(body));
    assert.equal((await ask("/rag/jobs/rag-nobody")).status, 404);
  });

  test("dead letters are listed, redriven and purged", async () => {
    await writeFile(join(incoming, "bad.pdf"), "no PDF");
    const { answer } = await ask("/rag/jobs", { ...job, source_path: join(incoming, "bad.pdf") });
    const { store } = serving.quarry.rag.queue;
    for (const claim of await store.claim({ worker: "w", limit: 10 }))
      await store.settle([{ claim, outcome: { kind: "failed", reason: "it is broken" } }]);
    const { answer: page } = await ask("/rag/dead-letters");
    const { letters } = page;
    const letter = letters.find(({ id }) => id === answer.job_id)!;
    assert.equal(letter.reason, "it is broken");
    assert.equal(JSON.parse(letter.message).filename, "bad.pdf");
    assert.deepEqual((await ask("/rag/dead-letters/redrive", { ids: [letter.id] })).answer, { count: 1 });
    assert.equal((await ask(`/rag/jobs/${letter.id}`)).answer.status, "queued");
    assert.equal((await ask("/rag/dead-letters/purge", {})).status, 400);
    const { answer: purged } = await ask("/rag/dead-letters/purge", { all: true });
    assert.deepEqual(purged, { count: letters.length - 1 });
  });

  test("reading needs a key that may read, everything else one that may write", async () => {
    const reader = "reader-key-0123456789";
    assert.equal((await ask("/rag/jobs", undefined, reader)).status, 200);
    assert.equal((await ask("/rag/dead-letters", undefined, reader)).status, 200);
    for (const path of ["/rag/jobs", "/rag/dead-letters/redrive", "/rag/dead-letters/purge"])
      assert.equal((await ask(path, { ...job, source_path: "/x" }, reader)).status, 403);
    assert.equal((await ask("/rag/jobs", undefined, "wrong-key-0123456789")).status, 401);
  });
});
