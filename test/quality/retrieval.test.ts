import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { openLocalEmbedder } from "../../src/adapters/embed/local.ts";
import { openLocalEntities } from "../../src/adapters/entities/local.ts";
import { openSearch, type Search } from "../../src/search/search.ts";
import { DATABASES } from "../support/databases.ts";
import { measureRecall, type Question } from "../support/recall.ts";
import { openShelf, type Shelf } from "../support/shelf.ts";
import { PASSAGE_QUESTIONS, PASSAGES } from "./corpus.ts";

const TENANT = "default";
const LIMIT = 5;

const QUESTIONS: readonly Question[] = PASSAGE_QUESTIONS.map(({ question, passageId }) => ({
  question,
  isAnsweredBy: (result) => result.chunkId === passageId,
}));

/** The first words of passages, and three long words from their end, as people look for what they remember. */
const FRAGMENTS: readonly Question[] = PASSAGES.flatMap(({ id, text }) => {
  const words = text.split(/\s+/);
  const longWords = words.filter((word) => word.length > 6);
  return [words.slice(0, 8), longWords.slice(-3)].map((some) => ({
    question: some.join(" "),
    isAnsweredBy: (result) => result.chunkId === id,
  }));
});

describe("finding passages with the embedder that comes along", () => {
  let shelf: Shelf;
  let search: Search;
  const closing: (() => Promise<unknown>)[] = [];
  before(async () => {
    const embedder = await openLocalEmbedder();
    const entities = await openLocalEntities();
    shelf = await openShelf(await DATABASES[0]!.open(), { embedder, entities });
    closing.push(
      () => shelf.close(),
      () => embedder.close(),
      () => entities.close(),
    );
    const topics = Map.groupBy(PASSAGES, ({ id }) => id.split("/")[0]!);
    for (const [topic, passages] of topics)
      await shelf.add({
        filename: `${topic}.md`,
        chunks: passages.map(({ id, text }) => ({ id, content: text })),
      });
    search = openSearch({ ...shelf, ...shelf.index, embedder });
  });
  after(async () => {
    for (const close of closing) await close();
  });

  const sets = { "questions in other words": QUESTIONS, "words out of passages": FRAGMENTS };
  for (const [name, questions] of Object.entries(sets)) {
    it(`${name}: all signals together find at least what the better of them finds alone`, async (t) => {
      const measure = (mode: "vector" | "keyword" | "hybrid") =>
        measureRecall(search, questions, { tenant: TENANT, mode, limit: LIMIT });
      const recall = {
        vector: await measure("vector"),
        keyword: await measure("keyword"),
        hybrid: await measure("hybrid"),
      };
      for (const [mode, { found, first }] of Object.entries(recall))
        t.diagnostic(`${mode}: recall@${LIMIT} ${found.toFixed(3)}, first ${first.toFixed(3)}`);
      assert.ok(recall.hybrid.found >= Math.max(recall.vector.found, recall.keyword.found));
      assert.ok(recall.hybrid.found >= 0.9);
    });
  }
});
