import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { openLocalEntities } from "../../../src/adapters/entities/local.ts";
import { normaliseName } from "../../../src/adapters/entities/normalise.ts";
import type { EntityExtractor, Extraction } from "../../../src/adapters/entities.ts";
import { namesOf, testEntities } from "./conformance.ts";
import { type Labelled, SEEN, UNSEEN } from "./labelled.ts";

testEntities("rules and lists", () => openLocalEntities());

describe("the local extractor", () => {
  let extractor: EntityExtractor;
  before(async () => {
    extractor = await openLocalEntities();
  });
  after(() => extractor.close());

  async function read(text: string): Promise<Extraction> {
    return (await extractor.extract([text], new AbortController().signal))[0]!;
  }

  async function relationsOf(text: string): Promise<string[]> {
    const { entities, relations } = await read(text);
    return relations.map(({ source, target, type }) => {
      return `${entities[source]!.name} ${type} ${entities[target]!.name}`;
    });
  }

  for (const [name, labelled, least] of [
    ["the sentences its rules were tuned on", SEEN, { precision: 0.95, recall: 0.95, types: 0.8 }],
    ["sentences kept apart from the tuning", UNSEEN, { precision: 0.85, recall: 0.85, types: 0.75 }],
  ] as const) {
    it(`finds the names in ${name}`, async (test) => {
      const found = await extractor.extract(
        labelled.map(({ text }) => text),
        new AbortController().signal,
      );
      const quality = qualityOf(labelled, found);
      test.diagnostic(JSON.stringify(quality));
      assert.ok(quality.precision >= least.precision, JSON.stringify(quality));
      assert.ok(quality.recall >= least.recall, JSON.stringify(quality));
      assert.ok(quality.types >= least.types, JSON.stringify(quality));
    });
  }

  it("takes no name from code, addresses and comments", async () => {
    const text =
      "Call `Marie.Curie()` or see https://Berlin.example/Paris.\n\n```js\nconst a = new Angela(Merkel);\n```\n<!-- Tim Cook\nwas here -->\n![](Rome.png)";
    assert.deepEqual(namesOf(await read(text)), []);
  });

  it("does not cut names at letters that English does not have", async () => {
    const text = "In Kraków, Lech Wałęsa met Recep Erdoğan, Nguyễn Văn Trỗi and the firm Škoda Auto.";
    const { entities } = await read(text);
    const names = ["Kraków", "Lech Wałęsa", "Recep Erdoğan", "Nguyễn Văn Trỗi", "Škoda Auto"];
    assert.deepEqual(
      entities.map(({ name }) => name),
      names,
    );
    assert.deepEqual(
      entities.map(({ start, end }) => text.slice(start, end)),
      names,
    );
  });

  it("takes no name from code that lost its fence", async () => {
    const text =
      'const session = new Session({ url: Config.url });\nif (session.isOpen) { Logger.info("Open", session); }\nreturn Session.from(Config, { retries: 3 });\n```';
    assert.deepEqual(namesOf(await read(text)), []);
  });

  it("keeps marks out of names", async () => {
    const text =
      "- **Ada Lovelace**\n- [Charles Babbage](https://x.test)\n> _Alan Turing_ was born in\n> London.\n\n| Grace Hopper | New York |\n";
    assert.deepEqual(namesOf(await read(text)), [
      "Ada Lovelace",
      "Charles Babbage",
      "Alan Turing",
      "London",
      "Grace Hopper",
      "New York",
    ]);
  });

  it("does not take the capitals of headings and of the start of sentences for names", async () => {
    const text =
      "# Terms And Conditions Of Use\n\nPrices may change. However, Customers are told.\n\n## NOTES\n\nNone.";
    assert.deepEqual(
      namesOf(await read(text)).filter((name) => name !== "Customers"),
      [],
    );
  });

  it("the verb says how two names belong together", async () => {
    assert.deepEqual(await relationsOf("Microsoft acquired GitHub."), ["Microsoft acquire GitHub"]);
    assert.deepEqual(await relationsOf("Kubernetes was designed by Google."), ["Google design Kubernetes"]);
    assert.deepEqual(await relationsOf("Tim Cook became chief executive of Apple."), [
      "Tim Cook executive_of Apple",
    ]);
    assert.deepEqual(await relationsOf("Mozart composed the opera in Prague."), ["Mozart compose_in Prague"]);
  });

  it("a verb belongs to the subject, not to the name next to it", async () => {
    assert.deepEqual(
      await relationsOf("Marie Curie was born in Warsaw and studied at the University of Paris."),
      ["Marie Curie born_in Warsaw", "Marie Curie study_at University of Paris"],
    );
    assert.deepEqual(
      await relationsOf("Spotify, founded by Daniel Ek and Martin Lorentzon, is based in Stockholm."),
      ["Daniel Ek founded Spotify", "Martin Lorentzon founded Spotify", "Spotify base_in Stockholm"],
    );
  });

  it("names that only stand together are related, with little confidence", async () => {
    const { relations } = await read("The talks between Angela Merkel and Emmanuel Macron were long.");
    assert.deepEqual(
      relations.map(({ type, confidence }) => [type, confidence < 0.5]),
      [["related_to", true]],
    );
    assert.deepEqual(await relationsOf("Angela Merkel left. Emmanuel Macron stayed."), []);
  });
});

function qualityOf(labelled: readonly Labelled[], found: readonly Extraction[]) {
  let [right, wrong, missed, typed] = [0, 0, 0, 0];
  for (const [index, { names }] of labelled.entries()) {
    const wanted = new Map(Object.entries(names).map(([name, type]) => [normaliseName(name), type]));
    const got = new Map(found[index]!.entities.map(({ name, type }) => [normaliseName(name), type]));
    const hits = [...wanted].filter(([name]) => got.has(name));
    right += hits.length;
    missed += wanted.size - hits.length;
    wrong += got.size - hits.length;
    typed += hits.filter(([name, type]) => got.get(name) === type).length;
  }
  return { precision: right / (right + wrong), recall: right / (right + missed), types: typed / right };
}
