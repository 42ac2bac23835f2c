import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, beforeEach, describe, it } from "node:test";
import type { ChunkGraph, GraphStore } from "../../../src/adapters/graph.ts";

/** What every graph store must do. `open` gives an empty one. */
export function testGraphStore(
  name: string,
  open: () => Promise<{ graph: GraphStore; close: () => Promise<void> }>,
): void {
  describe(`a graph in ${name}`, () => {
    let graph: GraphStore;
    let close: () => Promise<void>;
    /** Each test has tenants of its own. */
    let tenant: string;
    before(async () => {
      ({ graph, close } = await open());
    });
    after(() => close());
    beforeEach(() => {
      tenant = `tenant ${randomUUID()}`;
    });

    const chunk = (text: string, more: Partial<ChunkGraph> = {}): ChunkGraph => ({
      chunkKey: randomUUID(),
      chunkId: randomUUID(),
      documentId: randomUUID(),
      tenant,
      collection: "papers",
      extraction: extractionOf(text),
      ...more,
    });
    const one = async (name: string) => {
      const found = await graph.find([name], { tenant });
      assert.equal(found.length, 1, `${name} is found once`);
      return found[0]!;
    };
    const listed = async () =>
      (await graph.list({ limit: 100, filter: { tenant } })).map(
        ({ name, mentions }) => `${name} ${mentions}`,
      );

    it("merges entities by normalised name and type, and counts the chunks that mention them", async () => {
      await graph.put([chunk("person:Ada_Lovelace person:ada_lovelace place:London")]);
      await graph.put([chunk("person:ADA_LOVELACE")]);
      const ada = await one("Ada Lovelace");
      assert.deepEqual([ada.name, ada.type, ada.mentions], ["Ada Lovelace", "person", 2]);
      await graph.put([chunk("place:Ada_Lovelace")]);
      assert.equal((await graph.find(["ada lovelace"], { tenant })).length, 2, "a place is no person");
      assert.deepEqual(await listed(), ["Ada Lovelace 2", "Ada Lovelace 1", "London 1"]);
    });

    it("says the same however often a chunk is written", async () => {
      const written = chunk("person:Ada person:Babbage Ada-knew>Babbage");
      for (let round = 0; round < 3; round++) await graph.put([written, written]);
      assert.deepEqual(await listed(), ["Ada 1", "Babbage 1"]);
      const [relation, ...others] = await graph.relationsOf((await one("Ada")).id, { tenant });
      assert.equal(others.length, 0);
      assert.equal(relation!.mentions, 1);
    });

    it("replaces what a chunk said before", async () => {
      const written = chunk("person:Ada person:Babbage Ada-knew>Babbage");
      await graph.put([written, chunk("person:Ada")]);
      await graph.put([
        { ...written, extraction: extractionOf("person:Ada person:Byron Ada-child_of>Byron") },
      ]);
      assert.deepEqual(await listed(), ["Ada 2", "Byron 1"]);
      const relations = await graph.relationsOf((await one("Ada")).id, { tenant });
      assert.deepEqual(
        relations.map((relation) => [relation.source.name, relation.type, relation.target.name]),
        [["Ada", "child_of", "Byron"]],
      );
      await graph.put([{ ...written, extraction: extractionOf("") }]);
      assert.deepEqual(await listed(), ["Ada 1"]);
    });

    it("lets entities go with the last chunk that mentions them", async () => {
      const documentId = randomUUID();
      const chunks = [chunk("person:Ada place:London", { documentId }), chunk("person:Ada", { documentId })];
      await graph.put([...chunks, chunk("place:London")]);
      await graph.remove({ documentId, chunkKeys: [chunks[0]!.chunkKey] });
      assert.deepEqual(await listed(), ["Ada 1", "London 1"]);
      for (let round = 0; round < 2; round++) {
        await graph.remove({ documentId });
        assert.deepEqual(await listed(), ["London 1"]);
      }
    });

    it("removes a chunk only for the document that it belongs to", async () => {
      const mine = chunk("person:Ada");
      await graph.put([mine]);
      await graph.remove({ documentId: randomUUID(), chunkKeys: [mine.chunkKey] });
      await graph.remove({ documentId: mine.documentId, chunkKeys: [] });
      assert.deepEqual(await listed(), ["Ada 1"]);
    });

    it("grows surer of a relation the more chunks say so", async () => {
      await graph.put([chunk("person:Ada person:Babbage Ada-knew>Babbage")]);
      const ada = await one("Ada");
      const [once] = await graph.relationsOf(ada.id, { tenant });
      await graph.put([chunk("person:Ada person:Babbage Ada-knew>Babbage")]);
      const [twice] = await graph.relationsOf((await one("Babbage")).id, { tenant });
      assert.equal(twice!.mentions, 2);
      assert.ok(Math.abs(once!.confidence - 0.5) < 0.001, String(once!.confidence));
      assert.ok(Math.abs(twice!.confidence - 0.75) < 0.001, String(twice!.confidence));
      assert.deepEqual([twice!.source.name, twice!.target.name], ["Ada", "Babbage"]);
    });

    it("does not relate two spellings of one entity", async () => {
      await graph.put([chunk("person:Ada person:ADA Ada-knew>ADA")]);
      assert.deepEqual(await graph.relationsOf((await one("Ada")).id, { tenant }), []);
    });

    it("finds chunks that mention an entity before those that mention a neighbour", async () => {
      const both = chunk("person:Ada person:Babbage Ada-knew>Babbage");
      const neighbour = chunk("person:Babbage");
      const stranger = chunk("person:Byron");
      await graph.put([neighbour, stranger, both]);
      const near = await graph.chunksNear([(await one("Ada")).id], { limit: 10, filter: { tenant } });
      assert.deepEqual(
        near.map((hit) => [hit.chunkId, hit.documentId]),
        [both, neighbour].map(({ chunkId, documentId }) => [chunkId, documentId]),
      );
      assert.ok(near[0]!.score > near[1]!.score);
    });

    it("prefers chunks that mention more of the entities, and rare ones to common ones", async () => {
      const crowd = Array.from({ length: 30 }, () => chunk("place:London"));
      const rare = chunk("person:Ada");
      const both = chunk("person:Ada place:London");
      await graph.put([...crowd, rare, both]);
      const ids = [(await one("London")).id, (await one("Ada")).id];
      const near = await graph.chunksNear(ids, { limit: 3, filter: { tenant } });
      assert.deepEqual(
        near.slice(0, 2).map((hit) => hit.chunkId),
        [both.chunkId, rare.chunkId],
      );
      assert.equal(near.length, 3);
    });

    it("filters by collection and by document, before the limit", async () => {
      const crowd = Array.from({ length: 20 }, () => chunk("person:Ada"));
      const letter = chunk("person:Ada", { collection: "letters" });
      await graph.put([...crowd, letter]);
      const filter = { tenant, collection: "letters" };
      const [inLetters, ...others] = await graph.find(["Ada"], filter);
      assert.equal(others.length, 0);
      const ids = (await graph.find(["Ada"], { tenant })).map(({ id }) => id);
      const near = await graph.chunksNear(ids, { limit: 1, filter });
      assert.deepEqual(
        near.map((hit) => hit.chunkId),
        [letter.chunkId],
      );
      const documentIds = [crowd[7]!.documentId];
      const inDocument = await graph.chunksNear(ids, { limit: 5, filter: { tenant, documentIds } });
      assert.deepEqual(
        inDocument.map((hit) => hit.documentId),
        documentIds,
      );
      assert.deepEqual(await graph.find(["Ada"], { ...filter, documentIds }), []);
      assert.deepEqual(await graph.list({ limit: 5, filter: { tenant, documentIds: [] } }), []);
      assert.equal((await graph.list({ limit: 5, filter })).length, 1);
      assert.deepEqual(await graph.relationsOf(inLetters!.id, filter), []);
    });

    it("shows a tenant nothing of the others", async () => {
      const theirs = `${tenant} of others`;
      const relation = "person:Ada person:Babbage Ada-knew>Babbage";
      await graph.put([chunk(relation, { tenant: theirs }), chunk("person:Ada")]);
      const [foreign] = await graph.find(["Ada"], { tenant: theirs });
      assert.deepEqual(await listed(), ["Ada 1"]);
      assert.notEqual((await one("Ada")).id, foreign!.id);
      assert.deepEqual(await graph.chunksNear([foreign!.id], { limit: 5, filter: { tenant } }), []);
      assert.deepEqual(await graph.relationsOf(foreign!.id, { tenant }), []);
      assert.deepEqual(await graph.find(["Babbage"], { tenant }), []);
    });

    it("lists by type and by part of a name, the most mentioned first", async () => {
      await graph.put([
        chunk("person:Ada place:London person:Ada_Byron"),
        chunk("place:London place:50%_Hill"),
      ]);
      const list = async (more: { type?: string; name?: string }, limit = 10) =>
        (await graph.list({ limit, filter: { tenant }, ...more })).map(({ name }) => name);
      assert.deepEqual(await list({}, 1), ["London"]);
      assert.deepEqual(await list({ type: "person" }), ["Ada", "Ada Byron"]);
      assert.deepEqual(await list({ name: "BYRON" }), ["Ada Byron"]);
      assert.deepEqual(await list({ type: "place", name: "50%" }), ["50% Hill"]);
      assert.deepEqual(await list({ name: "_" }), await list({}), "nothing is left of such a name");
    });

    it("takes names that databases do not like", async () => {
      const names = ["\0", "Ada\0Lovelace", "half \ud800 pair", "😀", "…", "n".repeat(5_000), "%_\\'\""];
      const entities = names.map((name) => ({ name, type: "person", confidence: 2, start: 0, end: 1 }));
      const relations = [{ source: 1, target: 0, type: "knew", confidence: 1, start: 0, end: 9 }];
      await graph.put([chunk("", { extraction: { entities, relations } })]);
      assert.equal((await graph.find(["adalovelace"], { tenant })).length, 1);
      await graph.find(names, { tenant });
      await graph.put([]);
    });

    it("is written by many at once without a lost or doubled entity", async () => {
      const names = Array.from({ length: 12 }, (_none, number) => `Name${number}`);
      const shuffled = (seed: number) =>
        names.toSorted((a, b) => hash(`${a} ${seed}`) - hash(`${b} ${seed}`));
      const writers = Array.from({ length: 16 }, (_none, seed) => {
        const order = shuffled(seed);
        const relations = order.slice(1).map((name, index) => `${order[index]}-knew>${name}`);
        return chunk([...order.map((name) => `person:${name}`), ...relations].join(" "));
      });
      await Promise.all(writers.map((written) => graph.put([written])));
      assert.deepEqual((await listed()).sort(), names.map((name) => `${name} 16`).sort());

      // Half of them go while the other half is written again with fewer names.
      await Promise.all(
        writers.map((written, index) =>
          index % 2
            ? graph.remove({ documentId: written.documentId })
            : graph.put([{ ...written, extraction: extractionOf("person:Name3 person:Name4") }]),
        ),
      );
      assert.deepEqual(await listed(), ["Name3 8", "Name4 8"]);
      await Promise.all(writers.map(({ documentId }) => graph.remove({ documentId })));
      assert.deepEqual(await listed(), []);
    });

    it("survives the same chunk written by two workers at once", async () => {
      const written = chunk("person:Ada person:Babbage Ada-knew>Babbage");
      const versions = ["person:Ada", "person:Babbage", "person:Ada person:Byron Ada-knew>Byron"].map(
        (text) => ({
          ...written,
          extraction: extractionOf(text),
        }),
      );
      for (let round = 0; round < 5; round++)
        await Promise.all(versions.map((version) => graph.put([version])));
      await graph.put([written]);
      assert.deepEqual(await listed(), ["Ada 1", "Babbage 1"]);
    });
  });
}

/** "person:Ada_Lovelace place:London Ada_Lovelace-lived_in>London" */
function extractionOf(text: string): ChunkGraph["extraction"] {
  const words = text.split(" ").filter(Boolean);
  const place = (index: number) => ({ confidence: 0.5, start: index * 10, end: index * 10 + 9 });
  const entities = words
    .filter((word) => word.includes(":"))
    .map((word, index) => {
      const [type, name] = word.split(":");
      return { type: type!, name: name!.replaceAll("_", " "), ...place(index) };
    });
  const positionOf = (name: string) =>
    entities.findIndex((entity) => entity.name === name.replaceAll("_", " "));
  const relations = words
    .filter((word) => word.includes(">"))
    .map((word, index) => {
      const [, source, type, target] = /^(\w+)-(\w+)>(\w+)$/.exec(word)!;
      return { source: positionOf(source!), target: positionOf(target!), type: type!, ...place(index) };
    });
  return { entities, relations };
}

function hash(text: string): number {
  return [...text].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 1_000_003, 7);
}
