import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { openQuarry, type Quarry } from "../../src/index.ts";
import { SAMPLE_QUESTIONS, saysPassage } from "../quality/questions.ts";
import { freshPostgres } from "../support/postgres.ts";

const SAMPLES = join(import.meta.dirname, "../../samples");
const TENANT = "default";
const MODES = ["vector", "keyword", "hybrid"] as const;

const DATABASES = {
  SQLite: async () => ({ url: undefined, drop: async () => undefined }),
  PostgreSQL: freshPostgres,
};

describe("the sample documents, from files to answers", () => {
  for (const [name, open] of Object.entries(DATABASES)) {
    test(`on ${name}: all phases completed, the right passages found`, { timeout: 280_000 }, async (t) => {
      const folder = await mkdtemp(join(tmpdir(), "quarry-e2e-"));
      const { url, drop } = await open();
      const quarry = await openQuarry({
        dataFolder: folder,
        logLevel: "silent",
        ...(url !== undefined && { databaseUrl: url }),
      });
      t.after(async () => {
        await quarry.close();
        await drop();
        await rm(folder, { recursive: true, force: true });
      });
      const crew = await quarry.work();
      const { items } = await quarry.ingest([SAMPLES]);
      const { documentIds: ids, failed } = await quarry.queue.finished(items.map((item) => item.queue_id));
      assert.deepEqual([ids.length, failed], [9, 0]);
      while ((await quarry.documents.progress(ids)).open > 0)
        await new Promise((resolve) => setTimeout(resolve, 200));
      await crew.stop();

      for (const id of ids) {
        const document = await quarry.documents.show(id);
        const { ocrStatus, vectorStatus, graphragStatus, filename } = document;
        assert.deepEqual(
          [ocrStatus, vectorStatus, graphragStatus],
          ["completed", "completed", "completed"],
          filename,
        );
        assert.ok(document.chunks > 0, filename);
      }
      const recall = await recallOf(quarry);
      t.diagnostic(`recall@5 of ${SAMPLE_QUESTIONS.length} questions: ${JSON.stringify(recall)}`);
      assert.ok(recall.hybrid >= 0.9, `hybrid finds ${recall.hybrid}`);
      assert.ok(
        recall.hybrid >= Math.max(recall.vector, recall.keyword),
        "hybrid is at least as good as its better half",
      );
    });
  }
});

async function recallOf(quarry: Quarry): Promise<Record<(typeof MODES)[number], number>> {
  const found = { vector: 0, keyword: 0, hybrid: 0 };
  for (const { question, expect } of SAMPLE_QUESTIONS) {
    for (const mode of MODES) {
      const { results } = await quarry.search.search({ query: question, tenant: TENANT, limit: 5, mode });
      const isFound = results.some(
        (result) => expect.file.endsWith(result.filename) && saysPassage(result.content, expect.passage),
      );
      if (isFound) found[mode]++;
    }
  }
  const share = (count: number) => Math.round((count / SAMPLE_QUESTIONS.length) * 1000) / 1000;
  return { vector: share(found.vector), keyword: share(found.keyword), hybrid: share(found.hybrid) };
}
