import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, it } from "node:test";
import { openPostgresTexts } from "../../../src/adapters/fulltext/postgres.ts";
import type { TextIndex } from "../../../src/adapters/fulltext.ts";
import { openPostgres } from "../../../src/database/postgres.ts";
import { PASSAGE_QUESTIONS, PASSAGES } from "../../quality/corpus.ts";
import { freshPostgres } from "../../support/postgres.ts";
import { freshIndex } from "../index-file.ts";
import { testTextIndex } from "./conformance.ts";

async function freshTexts() {
  const { url, drop } = await freshPostgres();
  const database = openPostgres({ url });
  const index = await openPostgresTexts(database);
  const close = async () => {
    await database.close();
    await drop();
  };
  return { index, database, close };
}

testTextIndex("PostgreSQL", freshTexts);

const TENANT = "tenant";

describe("words in PostgreSQL beside words in a file", () => {
  it("are ranked alike, with scores that differ by a few in a hundred", async (t) => {
    const [{ index, close }, file] = await Promise.all([freshTexts(), freshIndex({ dimensions: 4 })]);
    t.after(() => Promise.all([close(), file.close()]));
    const entries = PASSAGES.map(({ id, text }) => ({
      ...{ chunkId: String(id), documentId: randomUUID(), tenant: TENANT, collection: "c" },
      context: text.split(" ").slice(0, 4).join(" "),
      content: text,
    }));
    for (const texts of [index, file.index.fulltext]) await texts.upsert(entries);
    const ask = (texts: TextIndex, query: string) =>
      texts.search(query, { limit: 5, filter: { tenant: TENANT } });
    let [first, same, total, apart] = [0, 0, 0, 0];
    for (const { question } of PASSAGE_QUESTIONS) {
      const [here, there] = [await ask(index, question), await ask(file.index.fulltext, question)];
      if (here[0]?.chunkId === there[0]?.chunkId) first++;
      for (const hit of there) {
        const twin = here.find(({ chunkId }) => chunkId === hit.chunkId);
        total++;
        if (!twin) continue;
        same++;
        apart += Math.abs(twin.score - hit.score);
      }
    }
    const shares = { first: first / PASSAGE_QUESTIONS.length, same: same / total, apart: apart / same };
    t.diagnostic(`${JSON.stringify(shares)} of ${PASSAGE_QUESTIONS.length} questions`);
    assert.ok(shares.first >= 0.9 && shares.same >= 0.9 && shares.apart <= 0.05, JSON.stringify(shares));
  });

  it("are found by the index of words, never by reading all of them", async (t) => {
    const { index, database, close } = await freshTexts();
    t.after(close);
    const entries = Array.from({ length: 1_000 }, (_none, number) => ({
      ...{ chunkId: String(number), documentId: randomUUID(), tenant: TENANT, collection: "c", context: "" },
      content:
        number === 7 ? "slate" : Array.from({ length: 60 }, (_no, at) => `filler${number + at}`).join(" "),
    }));
    await index.upsert(entries);
    await database.query("select gin_clean_pending_list('chunk_words_words')");
    await database.query("analyze chunk_words");
    const plan = await database.transaction(async (session) => {
      await session.query("set local enable_bitmapscan = on");
      const rows = await session.query(
        "explain select chunk_id from chunk_words where words @@ '''/tenant'' & ''slate'''::tsquery and tenant = 'tenant'",
      );
      return rows.map((row) => Object.values(row)[0]).join("\n");
    });
    assert.match(plan, /chunk_words_words/);
  });

  it("are made once by many who come at the same time", async (t) => {
    const { url, drop } = await freshPostgres();
    const databases = Array.from({ length: 4 }, () => openPostgres({ url }));
    t.after(async () => {
      for (const database of databases) await database.close();
      await drop();
    });
    const indexes = await Promise.all(databases.map((database) => openPostgresTexts(database)));
    const entry = { chunkId: "a", documentId: randomUUID(), tenant: TENANT, collection: "c", context: "" };
    await Promise.all(indexes.map((index) => index.upsert([{ ...entry, content: "slate" }])));
    assert.equal((await indexes[0]!.search("slate", { limit: 5, filter: { tenant: TENANT } })).length, 1);
  });
});
