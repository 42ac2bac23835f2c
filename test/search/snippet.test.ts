import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { Highlighter } from "../../src/search/highlight.ts";
import { namesIn } from "../../src/search/names.ts";
import { plainText, snippetOf } from "../../src/search/snippet.ts";

const highlighter = new Highlighter();

function shown(query: string, markdown: string) {
  const text = plainText(markdown);
  const { snippet, highlights } = snippetOf(text, highlighter.find(query, [text])[0]!);
  return { snippet, words: highlights.map(([start, end]) => snippet.slice(start, end)) };
}

const FILLER = "Lorem ipsum dolor sit amet, consectetur adipiscing elit. ".repeat(20);

describe("a snippet", () => {
  it("shows words in their other forms", () => {
    const { words } = shown("inspection of the quarries", "The Quarry was inspected; inspections help.");
    assert.deepEqual(words, ["Quarry", "inspected", "inspections"]);
  });

  it("shows the stretch where most of the words stand together, cut between words", () => {
    const { snippet, words } = shown(
      "boiler pressure gauge",
      `The boiler. ${FILLER} Read the pressure of the boiler on its gauge daily. ${FILLER}`,
    );
    assert.deepEqual(words, ["pressure", "boiler", "gauge"]);
    assert.ok(snippet.length <= 260);
    assert.match(snippet, /^… \w.*\w\W? …$/);
    for (const word of snippet.slice(2, -2).split(" "))
      assert.ok(`${FILLER} Read the pressure of the boiler on its gauge daily.`.includes(word), word);
  });

  it("begins at the beginning when no word is found", () => {
    const { snippet, words } = shown("nothing", FILLER);
    assert.deepEqual(words, []);
    assert.ok(snippet.startsWith("Lorem ipsum") && snippet.endsWith("…"));
  });

  it("is the whole text when that is short", () => {
    assert.equal(shown("x", "Short.").snippet, "Short.");
    assert.equal(shown("x", "").snippet, "");
  });

  it("leaves out the marks of Markdown and nothing else", () => {
    const markdown = [
      "# Care of *the* __boiler__",
      "",
      "> - **Check** `valve_a` and [the manual](http://example.org/a_b)",
      "```sh",
      "rm 2*3*4 snake_case_name",
      "```",
      "| part | price |",
      "| --- | ---: |",
      "| jaw | 5 \\* 2 |",
    ].join("\n");
    assert.equal(
      plainText(markdown),
      "Care of the boiler Check valve_a and the manual rm 2*3*4 snake_case_name part | price jaw | 5 * 2",
    );
  });

  it("shows code as it is, in blocks and in lines", () => {
    const block = [
      "/** Computes the *sum* of `a_b` and [c](d). */",
      "export const _sum_ = (a, b) => a ** b * 2;",
      "# no heading",
      "---",
    ];
    assert.equal(
      plainText(["**Before**", "```ts", ...block, "```", "_after_"].join("\n")),
      ["Before", ...block, "after"].join(" "),
    );
    assert.equal(plainText(["````md", "```", "*x*", "```", "````", "*y*"].join("\n")), "``` *x* ``` y");
    assert.equal(
      plainText("**Call `/** x */` or `f(_a_, [b](c))`** *now*"),
      "Call /** x */ or f(_a_, [b](c)) now",
    );
    assert.equal(plainText("| `a|b|` | **c** |"), "a|b| | c");
  });

  it("works in scripts without spaces and does not split characters", () => {
    const text = `${"山谷".repeat(200)}采石场在北部。${"石料".repeat(200)}`;
    const { snippet, words } = shown("采石场", text);
    assert.deepEqual(words, ["采石场"]);
    assert.ok(snippet.length <= 250);
    const emoji = "😀".repeat(500);
    assert.ok(shown("x", `${emoji} boiler ${emoji}`).snippet.isWellFormed());
    assert.ok(shown("boiler", `${emoji} boiler ${emoji}`).snippet.isWellFormed());
  });

  it("is not cut inside an emoji of several parts or between a letter and its accent", () => {
    for (const character of ["👨‍👩‍👧‍👦", "q\u0323\u0307"]) {
      for (let shift = 0; shift < character.length; shift++) {
        const { snippet } = shown("x", "a".repeat(shift) + character.repeat(120));
        assert.equal(snippet.replace(/^a*/, "").replaceAll(character, ""), " …", `${character} ${shift}`);
      }
    }
  });

  it("gives offsets, so that markup in the text stays text", () => {
    const { snippet, words } = shown("boiler", 'A <b onclick="x">boiler</b> & more');
    assert.equal(snippet, 'A <b onclick="x">boiler</b> & more');
    assert.deepEqual(words, ["boiler"]);
  });

  it("has its highlights inside, in order and apart, whatever the text and the query", () => {
    const words = fc.array(
      fc.constantFrom("stone", "stones", "a", "\n", "石", "*", "|", "\u200b", "\0", "😀", "é"),
      {
        maxLength: 400,
      },
    );
    const text = words.map((list) => list.join(" "));
    fc.assert(
      fc.property(
        fc.oneof(text, fc.string({ unit: "binary", maxLength: 400 })),
        fc.oneof(text, fc.string()),
        (markdown, query) => {
          const plain = plainText(markdown);
          const { snippet, highlights } = snippetOf(plain, highlighter.find(query, [plain])[0]!);
          assert.ok(snippet.length <= 250 && snippet.isWellFormed());
          let at = 0;
          for (const [start, end] of highlights) {
            assert.ok(start >= at && end > start && end <= snippet.length);
            at = end;
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  it("takes texts that are hard on patterns in a moment", () => {
    for (const piece of [" ", "\n", "*", "_", "[", "[a](", "|", "`", "a*", "\\", "- ", "> "])
      assert.ok(shown("stone", piece.repeat(50_000)).snippet.length <= 250);
  });
});

describe("names in a query", () => {
  it("are runs of words; a single word has to look like a name", () => {
    const names = namesIn("What did Cora Wilding do in the water?");
    for (const name of ["Cora", "Wilding", "Cora Wilding", "the water"])
      assert.ok(names.includes(name), name);
    for (const name of ["What", "water", "do"]) assert.ok(!names.includes(name), name);
  });

  it("may be written small when there is nothing else", () => {
    assert.deepEqual(namesIn("ada lovelace"), ["ada", "ada lovelace", "lovelace"]);
    assert.deepEqual(namesIn('"Ada"'), ["Ada"]);
    assert.deepEqual(namesIn("(O'Neill?)"), ["O'Neill"]);
    assert.deepEqual(namesIn("?! …"), []);
  });

  it("stay few however long the query is", () => {
    assert.ok(namesIn("Name ".repeat(4_000)).length <= 800);
    assert.equal(namesIn(`a${"!".repeat(19_998)}a`).length, 1);
  });
});
