import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Documents } from "../../src/documents/documents.ts";
import { SearchableDocuments } from "../../src/documents/searchable.ts";
import { createLog } from "../../src/log.ts";
import { handleJob, type RagParts } from "../../src/rag/handle.ts";
import type { JobMessage } from "../../src/rag/message.ts";
import { readRags } from "../../src/rag/settings.ts";
import { aMessage, type Place } from "./places.ts";

const RAG = "policies_rag";

/** The real handler on a queue whose clock is moved by hand; what it needs fails as it is told to. */
export interface Trial {
  readonly message: JobMessage;
  /** Takes what is in line through the handler. Returns how many that were. */
  work(): Promise<number>;
  /** What was logged, line by line, without times. */
  readonly logged: readonly Record<string, unknown>[];
  files(which: "incoming" | "failed"): Promise<string[]>;
  close(): Promise<void>;
}

export async function openTrial(
  place: Place,
  { error, file = "a.txt", ...more }: { error: Error; file?: string } & Partial<JobMessage>,
): Promise<Trial> {
  const folder = await mkdtemp(join(tmpdir(), "quarry-trial-"));
  const rags = readRags({ [RAG]: {} }, { folder, where: "the test", model: "test" });
  const { folders } = rags.get(RAG)!;
  await mkdir(folders.incoming, { recursive: true });
  await writeFile(join(folders.incoming, "a.txt"), "Some text.");
  const logged: Record<string, unknown>[] = [];
  const write = (line: string) => {
    const { time: _, ...fields } = JSON.parse(line) as Record<string, unknown>;
    logged.push(fields);
  };
  const parts: RagParts = {
    ...{ database: place.database, queue: place.queue, rags, fileBytesMax: 1_000_000, clock: place.clock },
    documents: { add: () => Promise.reject(error) } as unknown as Documents,
    searchable: new SearchableDocuments(place.database),
    log: createLog({ level: "info", destination: { write } }),
  };
  const message = aMessage(place, {
    ...{ source_path: join(folders.incoming, file), source_type: "txt", filename: "a.txt" },
    ...more,
  });
  await place.queue.submit(message);
  return {
    message,
    logged,
    work: async () => {
      const { store } = place.queue;
      await store.promoteDelayed();
      const claims = await store.claim({ worker: "w1", limit: 10 });
      for (const claim of claims) {
        const outcome = await handleJob(parts, { ...claim, signal: new AbortController().signal });
        await store.settle([{ claim, outcome }]);
      }
      return claims.length;
    },
    files: async (which) => (await readdir(folders[which]).catch(() => [])).toSorted(),
    close: () => rm(folder, { recursive: true }),
  };
}

/** A service that stays away: three waits, each exactly as long as the contract says, and then no more. */
export async function checkRetries(place: Place, error: Error): Promise<Trial["logged"]> {
  const trial = await openTrial(place, { error, max_retries: 4 });
  try {
    assert.equal(await trial.work(), 1);
    for (const [index, waitMs] of [5_000, 10_000, 30_000].entries()) {
      const { status, retry_count, error: reason } = (await place.queue.read(trial.message.job_id))!;
      assert.deepEqual([status, retry_count, reason], ["queued", index + 1, error.message]);
      place.clock.advance(waitMs - 1);
      assert.equal(await trial.work(), 0, `it came back before ${waitMs} ms were over`);
      assert.deepEqual(await trial.files("incoming"), ["a.txt"]);
      place.clock.advance(1);
      assert.equal(await trial.work(), 1, `it did not come back after ${waitMs} ms`);
    }
    const { status, retry_count } = (await place.queue.read(trial.message.job_id))!;
    assert.deepEqual([status, retry_count], ["failed", 4]);
    assert.deepEqual(
      [await trial.files("incoming"), await trial.files("failed")],
      [[], ["a.txt", "a.txt.error.json"]],
    );
    place.clock.advance(3_600_000);
    assert.equal(await trial.work(), 0);
    return trial.logged;
  } finally {
    await trial.close();
  }
}
