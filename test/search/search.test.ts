import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Embedder } from "../../src/adapters/embed.ts";
import type { EntityExtractor } from "../../src/adapters/entities.ts";
import { openSearch, type Search, type SearchParts, type SearchQuery } from "../../src/search/search.ts";
import { DATABASES } from "../support/databases.ts";
import { openShelf, type Shelf } from "../support/shelf.ts";

const DIMENSIONS = 64;

/** Texts with the same words are near each other. */
const embedder: Embedder = {
  model: "test",
  dimensions: DIMENSIONS,
  tokensMax: 1_000,
  tokenizer: { count: (text) => text.length },
  embed: async (texts) => ({ vectors: texts.map(vectorOf), tokens: 0 }),
  close: async () => undefined,
};

function vectorOf(text: string): Float32Array {
  const vector = new Float32Array(DIMENSIONS);
  for (const word of text.toLowerCase().match(/\p{L}+/gu) ?? ["none"])
    vector[[...word].reduce((sum, letter) => sum + letter.codePointAt(0)!, 0) % DIMENSIONS]! += 1;
  return vector;
}

/** Every word with a capital letter inside a sentence is a person. */
const entities: EntityExtractor = {
  model: "test",
  textsMax: 64,
  callsMax: 1,
  extract: async (texts) =>
    texts.map((text) => ({
      entities: [...text.matchAll(/(?<=[a-z] )[A-Z][a-z]+/g)].map((match) => ({
        name: match[0],
        type: "person",
        confidence: 0.9,
        start: match.index,
        end: match.index + match[0].length,
      })),
      relations: [],
    })),
  close: async () => undefined,
};

for (const { name, open } of DATABASES) {
  describe(`search on ${name}`, () => {
    let shelf: Shelf;
    let parts: SearchParts;
    let search: Search;
    before(async () => {
      shelf = await openShelf(await open(), { embedder, entities });
      parts = { ...shelf, ...shelf.index, embedder };
      search = openSearch(parts);
    });
    after(() => shelf.close());

    const ids = async (query: SearchQuery) =>
      (await search.search(query)).results.map(({ chunkId }) => chunkId);

    it("shows passages with where they stand and why they were found", async () => {
      const tenant = "whole";
      const documentId = await shelf.add({
        tenant,
        filename: "boilers.pdf",
        title: "Boilers",
        chunks: [
          { id: "b1", content: "Coal is kept dry.", headings: ["Fuel"] },
          { id: "b2", content: "The boiler was **inspected** by Lovelace.", headings: ["Care", "Yearly"] },
        ],
      });
      const { results, warnings, tookMs } = await search.search({
        tenant,
        query: "Did Lovelace inspect the boiler?",
      });
      assert.deepEqual(warnings, []);
      assert.ok(tookMs >= 0);
      const { score, source, ...first } = results[0]!;
      assert.ok(source.length > 0);
      assert.ok(score > results[1]!.score);
      assert.deepEqual(first, {
        chunkId: "b2",
        documentId,
        filename: "boilers.pdf",
        seenOn: null,
        title: "Boilers",
        collection: "default",
        metadata: {},
        pageNumber: 2,
        headingPath: ["Care", "Yearly"],
        content: "The boiler was **inspected** by Lovelace.",
        snippet: "The boiler was inspected by Lovelace.",
        highlights: [
          [4, 10],
          [15, 24],
          [28, 36],
        ],
        signals: { vector: 1, keyword: 1, graph: 1 },
      });
    });

    it("asks only the signal of its mode", async () => {
      const tenant = "modes";
      await shelf.add({
        tenant,
        filename: "a.md",
        chunks: [
          { id: "a", content: "the stone of Babbage" },
          { id: "b", content: "slate roofs" },
        ],
      });
      const query = "what of Babbage and stone";
      assert.deepEqual((await ids({ tenant, query, mode: "vector" })).sort(), ["a", "b"]);
      for (const mode of ["keyword", "graph"] as const) {
        const { results } = await search.search({ tenant, query, mode });
        assert.deepEqual(
          results.map(({ chunkId, signals }) => [chunkId, signals]),
          [["a", { [mode]: 1 }]],
        );
      }
      assert.deepEqual(await ids({ tenant, query: "nobody", mode: "graph" }), []);
    });

    it("filters by collection, document and metadata", async () => {
      const tenant = "filters";
      const add = (id: string, collection: string, metadata: Record<string, unknown>) =>
        shelf.add({
          tenant,
          collection,
          metadata,
          filename: `${id}.md`,
          chunks: [{ id, content: `stone ${id}` }],
        });
      const first = await add("one", "papers", {
        year: 2020,
        kind: "report",
        isFinal: true,
        'odd"key.$': "x",
      });
      const second = await add("two", "papers", { year: 2020, kind: "letter", note: null });
      await add("three", "letters", { year: "2020", kind: "letter", nested: { a: 1 } });
      const found = async (more: Partial<SearchQuery>) =>
        (await ids({ tenant, query: "stone", ...more })).sort();
      assert.deepEqual(await found({}), ["one", "three", "two"]);
      assert.deepEqual(await found({ collection: "letters" }), ["three"]);
      assert.deepEqual(await found({ documentIds: [first, second] }), ["one", "two"]);
      assert.deepEqual(await found({ documentIds: [] }), []);
      assert.deepEqual(await found({ documentIds: ["no id", second], mode: "graph" }), []);
      assert.deepEqual(await found({ documentIds: ["no id", second] }), ["two"]);
      assert.deepEqual(await found({ metadata: {} }), ["one", "three", "two"]);
      assert.deepEqual(await found({ metadata: { year: 2020 } }), ["one", "two"]);
      assert.deepEqual(await found({ metadata: { year: "2020" } }), ["three"]);
      assert.deepEqual(await found({ metadata: { year: 2020, kind: "letter" } }), ["two"]);
      assert.deepEqual(await found({ metadata: { isFinal: true } }), ["one"]);
      assert.deepEqual(await found({ metadata: { isFinal: 1 } }), []);
      assert.deepEqual(await found({ metadata: { note: null } }), ["two"]);
      assert.deepEqual(await found({ metadata: { 'odd"key.$': "x" } }), ["one"]);
      assert.deepEqual(await found({ metadata: { kind: "letter" }, collection: "papers" }), ["two"]);
      assert.deepEqual(await found({ metadata: { kind: "letter" }, documentIds: [first] }), []);
      await assert.rejects(found({ metadata: { nested: { a: 1 } } }), { code: "invalid_input" });
    });

    it("shows a tenant nothing of another, even if the index says so", async () => {
      await shelf.add({ tenant: "mine", filename: "m.md", chunks: [{ id: "m", content: "stone of mine" }] });
      const documentId = await shelf.add({
        tenant: "theirs",
        filename: "t.md",
        chunks: [{ id: "t", content: "stone of theirs" }],
      });
      assert.deepEqual(await ids({ tenant: "mine", query: "stone" }), ["m"]);
      const stray = { chunkId: "t", documentId, tenant: "mine", collection: "default" };
      await shelf.index.vectors.upsert([{ ...stray, vector: vectorOf("stone") }]);
      await shelf.index.fulltext.upsert([{ ...stray, context: "", content: "stone stone" }]);
      assert.deepEqual(await ids({ tenant: "mine", query: "stone" }), ["m"]);
      assert.deepEqual(await ids({ tenant: "mine", query: "stone", documentIds: [documentId] }), []);
    });

    it("looks further when what it found has been deleted", async () => {
      const tenant = "deleted";
      const gone = Array.from({ length: 80 }, (_none, number) => ({
        id: `gone ${number}`,
        content: `stone ${"a".repeat(number)}`,
      }));
      const documentId = await shelf.add({ tenant, filename: "gone.md", chunks: gone });
      const left = ["x", "y", "z"].map((id) => ({ id, content: `stone among many other words, and ${id}` }));
      await shelf.add({ tenant, filename: "left.md", chunks: left });
      const sql = `delete from documents where ${shelf.database.dialect.isOneOf("id", 1, "uuid")}`;
      await shelf.database.query(sql, [shelf.database.dialect.keys([documentId])]);
      for (const mode of ["vector", "keyword", "hybrid"] as const)
        assert.deepEqual(
          (await ids({ tenant, query: "stone", limit: 3, mode })).sort(),
          ["x", "y", "z"],
          mode,
        );
    });

    it("shows the same text once", async () => {
      const tenant = "twice";
      for (const number of [1, 2, 3])
        await shelf.add({
          tenant,
          filename: `${number}.md`,
          chunks: [
            { id: `same ${number}`, content: number === 2 ? "Stone  is\nhard." : "Stone is hard." },
            { id: `own ${number}`, content: `Stone number ${number} is soft.` },
          ],
        });
      const found = await ids({ tenant, query: "hard stone" });
      assert.equal(found.filter((id) => id.startsWith("same")).length, 1);
      assert.equal(found.length, 4);
    });

    it("goes on without the signals that are down, and says so", async () => {
      const tenant = "down";
      await shelf.add({ tenant, filename: "d.md", chunks: [{ id: "d", content: "stone" }] });
      const broken = { ...embedder, embed: () => Promise.reject(new Error("no model here")) };
      const halved = openSearch({ ...parts, embedder: broken });
      const { results, warnings } = await halved.search({ tenant, query: "stone" });
      assert.deepEqual(
        results.map(({ chunkId, signals }) => [chunkId, signals]),
        [["d", { keyword: 1 }]],
      );
      assert.deepEqual(warnings, ["vector search is not available: no model here"]);
      await assert.rejects(halved.search({ tenant, query: "stone", mode: "vector" }), /no model here/);

      const refuse = () => Promise.reject(new Error("is down"));
      const nothing = openSearch({
        ...parts,
        embedder: broken,
        fulltext: { ...parts.fulltext, search: refuse },
        graph: { ...parts.graph, find: refuse },
      });
      await assert.rejects(nothing.search({ tenant, query: "stone" }), { code: "model_failed" });
    });

    it("refuses what cannot be searched", async () => {
      const tenant = "refused";
      const wrong = [
        { query: "" },
        { query: " \n " },
        { query: "x".repeat(20_001) },
        { query: "stone", limit: 0 },
        { query: "stone", limit: 101 },
        { query: "stone", limit: 1.5 },
        { query: "stone", mode: "guess" as never },
      ];
      for (const query of wrong)
        await assert.rejects(search.search({ tenant, ...query }), { code: "invalid_input" });
      assert.deepEqual(await ids({ tenant, query: "🪨 \0 '\"* AND", limit: 100 }), []);
    });

    it("stops when it is no longer wanted", async () => {
      const waiting = openSearch({
        ...parts,
        embedder: {
          ...embedder,
          embed: (_texts, signal) =>
            new Promise((_resolve, reject) => {
              signal.addEventListener("abort", () => reject(signal.reason));
            }),
        },
      });
      const over = new AbortController();
      const asked = waiting.search({ tenant: "any", query: "stone" }, over.signal);
      over.abort();
      await assert.rejects(asked, { name: "AbortError" });
    });
  });
}
