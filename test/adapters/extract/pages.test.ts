import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { cutPages } from "../../../src/adapters/extract/pages.ts";

const texts = (markdown: string, charactersMax?: number) =>
  cutPages(markdown, charactersMax).map((page) => page.markdown);

test("a small document is one page, and nothing is one empty page", () => {
  assert.deepEqual(texts("# A\n\nwords\n"), ["# A\n\nwords\n"]);
  assert.deepEqual(texts(""), [""]);
});

test("pages are cut at the highest heading of their second half", () => {
  const section = (level: number, name: string) =>
    `${"#".repeat(level)} ${name}\n\n${"word ".repeat(60)}\n\n`;
  const pages = texts(section(1, "A") + section(2, "a") + section(1, "B") + section(2, "b"), 1200);
  assert.deepEqual(
    pages.map((page) => page.split("\n", 1)[0]),
    ["# A", "# B"],
  );
});

test("a heading at the end of a full page goes with its text", () => {
  const pages = texts(`${"word ".repeat(180)}\n\n## Next\n\n${"more ".repeat(40)}\n`, 1000);
  assert.match(pages[1]!, /^## Next\n\nmore/);
});

test("a table or a code block that fits on a page is not cut", () => {
  const table = `| a | b |\n| --- | --- |\n${"| 1 | 2 |\n".repeat(50)}`;
  const code = `\`\`\`js\n${"line();\n\n".repeat(50)}\`\`\`\n`;
  for (const block of [table, code]) {
    const pages = texts(`${"word ".repeat(100)}\n\n${block}\n${"word ".repeat(100)}\n`, 800);
    assert.ok(
      pages.some((page) => page.includes(block)),
      block,
    );
  }
});

test("a table and a code block that are too long keep their frame on each page", () => {
  const table = `| a | b |\n| --- | --- |\n${"| 1 | 2 |\n".repeat(200)}`;
  for (const page of texts(table, 500))
    assert.match(page, /^\| a \| b \|\n\| --- \| --- \|\n(\| 1 \| 2 \|\n)+$/);
  const code = `~~~js\n${"line();\n".repeat(200)}~~~\n`;
  for (const page of texts(code, 500)) assert.match(page, /^~~~js\n(line\(\);\n)+~~~\n$/);
});

test("a fence that nobody closes, and one line without an end, are cut all the same", () => {
  const open = texts(`\`\`\`\n${"x\n".repeat(2000)}`, 500);
  assert.ok(open.length > 4 && open.every((page) => page.length <= 500));
  const long = texts("😀".repeat(1000), 333);
  assert.equal(long.join(""), "😀".repeat(1000));
  assert.ok(long.every((page) => page.isWellFormed()));
});

test("headings that stay open are handed on by level", () => {
  const body = `${"word ".repeat(30)}\n\n`;
  const pages = cutPages(`# One\n\n${body}### Deep\n\n${body}## Two\n\n${body}`, 200);
  assert.deepEqual(
    pages.map(({ headings }) => headings),
    [[], ["One"], ["One", "", "Deep"]],
  );
});

test("whatever the text, pages are bounded, repeatable, and together lose nothing", () => {
  const line = fc.oneof(
    fc.constantFrom(
      "",
      "",
      "# Head",
      "### Sub",
      "Title",
      "=====",
      "-----",
      "```js",
      "```",
      "~~~",
      "| a | b |",
      "|---|---|",
      "- item",
      "> quote",
    ),
    fc.string({ maxLength: 60 }),
    fc.string({ unit: "binary", maxLength: 40 }).map((text) => text.replaceAll("\n", " ")),
    fc.constant("long words ".repeat(30)),
  );
  const bare = (text: string) => text.replaceAll(/\s+/g, "");
  fc.assert(
    fc.property(
      fc.array(line, { maxLength: 120 }),
      fc.integer({ min: 120, max: 2000 }),
      (lines, charactersMax) => {
        const source = lines.join("\n");
        const pages = texts(source, charactersMax);
        assert.deepEqual(texts(source, charactersMax), pages);
        assert.ok(pages.every((page) => page.length <= charactersMax));
        // A frame that is repeated only adds; all words of the source are there, in their order.
        let position = 0;
        const joined = bare(pages.join(""));
        for (const letter of bare(source)) {
          position = joined.indexOf(letter, position) + 1;
          if (position === 0) return false;
        }
        return true;
      },
    ),
    { numRuns: 500, seed: 20_240_501 },
  );
});

test("time grows with the text, not with its square", () => {
  for (const hostile of ["> ", "[", "`", "#", "| ", "- ", "*", "\n", "```\n", "|-|\n"])
    assert.ok(texts(hostile.repeat(300_000)).length >= 1);
});
