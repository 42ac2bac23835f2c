import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { EntityExtractor, Extraction } from "../../../src/adapters/entities.ts";

/** What every extractor owes its callers, however well it reads. */
export function testEntities(name: string, open: () => Promise<EntityExtractor>): void {
  describe(`entities with ${name}`, () => {
    let extractor: EntityExtractor;
    const { signal } = new AbortController();
    before(async () => {
      extractor = await open();
    });
    after(() => extractor.close());

    it("each text gets its own answer, in the order asked", async () => {
      const texts = [
        "Marie Curie lived in Paris.",
        "",
        "Nothing is named here.",
        "Angela Merkel met Tim Cook.",
      ];
      const found = await extractor.extract(texts, signal);
      assert.equal(found.length, texts.length);
      assert.deepEqual(namesOf(found[0]!), ["Marie Curie", "Paris"]);
      for (const { entities, relations } of found.slice(1, 3))
        assert.deepEqual([entities, relations], [[], []]);
      assert.deepEqual(namesOf(found[3]!), ["Angela Merkel", "Tim Cook"]);
      assert.deepEqual(await extractor.extract([], signal), []);
    });

    it("says where each entity stands, of what type it is and how sure that is", async () => {
      const text = "# Report\n\nThe **Hartley Stone Company** sold\nits quarry in Berlin to *Siemens*.";
      const [{ entities }] = (await extractor.extract([text], signal)) as [Extraction];
      assert.ok(entities.length >= 3);
      for (const { name: entity, type, confidence, start, end } of entities) {
        assert.ok(text.slice(start, end).includes(entity.split(" ")[0]!));
        assert.match(type, /^[a-z_]+$/);
        assert.ok(confidence > 0 && confidence <= 1);
      }
      assert.deepEqual(
        entities.map(({ start }) => start),
        entities.map(({ start }) => start).toSorted((a, b) => a - b),
      );
    });

    it("says how entities belong together, and which words say so", async () => {
      const text = "Wangari Maathai founded the Green Belt Movement.";
      const [{ entities, relations }] = (await extractor.extract([text], signal)) as [Extraction];
      assert.equal(relations.length, 1);
      const { source, target, type, confidence, start, end } = relations[0]!;
      assert.equal(entities[source]!.name, "Wangari Maathai");
      assert.equal(entities[target]!.name, "Green Belt Movement");
      assert.match(type, /^[a-z_]+$/);
      assert.ok(confidence > 0 && confidence <= 1);
      assert.match(text.slice(start, end), /founded/);
    });

    it("nothing in a text can break it, nor make the answer grow without end", async () => {
      const texts = [
        "\ud83d\u0000\u001e",
        "A".repeat(50_000),
        "Anna Berg met Carl Dahl. ".repeat(2_000),
        "| ".repeat(5_000),
        "```\nAnna Berg",
        "[".repeat(5_000),
        "<".repeat(5_000),
        "日本語の文章。",
      ];
      for (const [index, { entities, relations }] of (await extractor.extract(texts, signal)).entries()) {
        assert.ok(entities.length <= 500 && relations.length <= 500, texts[index]!.slice(0, 20));
        for (const { start, end } of entities) assert.ok(start < end && end <= texts[index]!.length);
        for (const { source, target } of relations) assert.ok(entities[source] && entities[target]);
      }
    });

    it("a call that is aborted ends at once and leaves the next one alone", async () => {
      const controller = new AbortController();
      const call = extractor.extract(["Marie Curie lived in Paris."], controller.signal);
      controller.abort(new Error("not wanted any more"));
      await assert.rejects(call, /not wanted any more/);
      assert.equal((await extractor.extract(["x"], signal)).length, 1);
    });

    it("a closed one refuses", async () => {
      const other = await open();
      await other.close();
      await assert.rejects(other.extract(["x"], signal), { code: "shutting_down" });
    });
  });
}

export function namesOf({ entities }: Extraction): string[] {
  return entities.map(({ name }) => name);
}
