import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import fc from "fast-check";
import { openTokenizer } from "../../src/adapters/embed/tokenizer.ts";
import type { Tokenizer } from "../../src/adapters/embed.ts";
import {
  type Chunk,
  type ChunkingOptions,
  chunkIds,
  chunkPage,
  contentHash,
  embeddedText,
} from "../../src/documents/chunker.ts";
import { markdownPage, prose } from "./markdown.ts";

const TOKENS_MAX = 254;

describe("chunks of a page", () => {
  let tokenizers: Tokenizer[];
  let wordPieces: Tokenizer;
  before(async () => {
    tokenizers = await Promise.all(["all-MiniLM-L6-v2-q8", "text-embedding-3-small"].map(openTokenizer));
    wordPieces = tokenizers[0]!;
  });

  const cut = (markdown: string, options: Partial<ChunkingOptions> = {}) =>
    chunkPage(markdown, {
      tokensMax: TOKENS_MAX,
      overlapTokens: 24,
      countTokens: (text) => wordPieces.count(text),
      ...options,
    });
  const contents = (chunks: readonly Chunk[]) => chunks.map(({ content }) => content);

  describe("whatever the page", () => {
    it("hold all of its text once and never more tokens than the window", () => {
      fc.assert(
        fc.property(
          markdownPage,
          fc.string({ maxLength: 200, unit: "grapheme" }),
          fc.constantFrom(...tokenizers),
          fc.constantFrom(TOKENS_MAX, 400),
          fc.constantFrom(undefined, 200),
          (markdown, title, tokenizer, tokensMax, tokensTarget) => {
            const countTokens = (text: string) => tokenizer.count(text);
            const targets = tokensTarget === undefined ? {} : { tokensTarget };
            const { chunks } = cut(markdown, { title, tokensMax, countTokens, ...targets });
            assertCovers(markdown, chunks);
            for (const chunk of chunks) {
              assert.equal(chunk.tokenCount, countTokens(embeddedText({ title, ...chunk })));
              assert.ok(chunk.tokenCount <= tokensMax, `${chunk.tokenCount} tokens`);
            }
          },
        ),
        { numRuns: 150 },
      );
    });

    const hostile: Record<string, string> = {
      nothing: "",
      "white space": " \n\t\n  ",
      "a fence without end": `\`\`\`js\n${"let a = 1;\n".repeat(300)}`,
      "one endless word": "a".repeat(100_000),
      "text without spaces": "日本語の文章".repeat(2_000),
      "one character with endless accents": `a${"\u0301".repeat(20_000)}`,
      "lone surrogates": "\ud83d".repeat(5_000),
      "a heading as long as a page": `# ${"word ".repeat(2_000)}\n\ntext`,
      "headings only": "# a\n## b\n".repeat(500),
      "quotations in quotations": `${">".repeat(20_000)} a`,
      "lists in lists": `${"- ".repeat(20_000)}a`,
      "lazy quotations": "> a\nb\n".repeat(20_000),
      "a table of one row too wide": `|${"cell|".repeat(2_000)}\n|${"-|".repeat(2_000)}\n|${"x|".repeat(2_000)}`,
      zeros: "\0".repeat(1_000),
    };
    for (const [what, markdown] of Object.entries(hostile)) {
      it(`survive ${what}`, () => {
        const { chunks } = cut(markdown, { title: "emoji 👩‍👩‍👧‍👧 ".repeat(30) });
        assertCovers(markdown, chunks);
        for (const { tokenCount, content } of chunks) {
          assert.ok(tokenCount <= TOKENS_MAX);
          assert.ok(content.length <= TOKENS_MAX * 8);
        }
      });
    }

    it("cut no character in two", () => {
      const family = "👩‍👩‍👧‍👧";
      const { chunks } = cut(family.repeat(2_000));
      assert.ok(chunks.length > 1);
      for (const { content } of chunks) assert.equal(content.replaceAll(family, ""), "");
    });

    it("have the offsets of a page with CRLF", () => {
      const page = `# One\r\n\r\n${prose(120, 1)}\r\n\r\n| a | b |\r\n|---|---|\r\n| 1 | 2 |\r\n\r\n# Two\r\n\r\n${prose(120, 2)}\r\n`;
      const { chunks, headingsAfter } = cut(page);
      assert.deepEqual(
        chunks.map(({ headingPath }) => headingPath),
        [["One"], ["Two"]],
      );
      assert.deepEqual(headingsAfter, ["Two"]);
      assertCovers(page, chunks);
    });
  });

  describe("follow the structure", () => {
    it("small neighbours share a chunk", () => {
      const page = "# Title\n\nOne.\n\nTwo.\n\n- three\n- four\n\n## Small\n\nFive.";
      assert.deepEqual(contents(cut(page).chunks), [page]);
    });

    it("sections that can stand alone do not share one", () => {
      const sections = ["One", "Two"].map((name, index) => `## ${name}\n\n${prose(80, index)}`);
      const { chunks } = cut(sections.join("\n\n"));
      assert.deepEqual(contents(chunks), sections);
    });

    it("a heading goes with what it heads", () => {
      const page = Array.from({ length: 40 }, (_, index) => `## Part ${index}\n\n${prose(70, index)}`).join(
        "\n\n",
      );
      for (const content of contents(cut(page).chunks)) assert.doesNotMatch(content, /## Part \d+\s*$/);
    });

    it("a heading stays with the start of a paragraph that is too long", () => {
      const [first, ...rest] = contents(cut(`# Title\n\n${prose(600, 1)}`).chunks);
      assert.match(first!, /^# Title\n\n\w+/);
      assert.ok(rest.length >= 2);
    });

    it("long paragraphs are cut between sentences", () => {
      const { chunks } = cut(prose(1_500, 3));
      for (const { content } of chunks) assert.match(content, /\.$/);
    });

    it("lists are cut between items, and a lead-in stays with the first", () => {
      const items = Array.from({ length: 30 }, (_, index) => `- ${prose(20, index)}`);
      const chunks = contents(cut(`The reasons are these:\n\n${items.join("\n")}`).chunks);
      assert.ok(chunks.length > 1);
      assert.match(chunks[0]!, /^The reasons are these:\n\n- /);
      for (const content of chunks.slice(1)) assert.match(content, /^- /);
    });

    it("tables are cut between rows, and what is embedded has the header each time", () => {
      const header = "| name | amount |\n|------|--------|";
      const rows = Array.from({ length: 120 }, (_, index) => `| item ${index} | ${index * 7} |`);
      const { chunks } = cut([header, ...rows].join("\n"));
      assert.ok(chunks.length > 2);
      for (const [index, chunk] of chunks.entries()) {
        assert.match(chunk.content, index === 0 ? /^\| name/ : /^\| item \d+ \|/);
        assert.ok(embeddedText(chunk).includes(header));
        assert.ok(chunk.content.endsWith("|"));
      }
    });

    it("code is cut at blank lines", () => {
      const functions = Array.from(
        { length: 30 },
        (_, index) => `function f${index}() {\n  const a = ${index};\n  return a * ${index};\n}`,
      );
      const chunks = contents(cut(`\`\`\`js\n${functions.join("\n\n")}\n\`\`\``).chunks);
      assert.ok(chunks.length > 2);
      for (const content of chunks.slice(1)) assert.match(content, /^function/);
      assert.match(chunks.at(-1)!, /}\n```$/);
    });

    it("code keeps the indentation of its first line", () => {
      const lines = Array.from({ length: 200 }, (_, index) => `    call(${index});`);
      for (const content of contents(cut(lines.join("\n")).chunks)) assert.match(content, /^ {4}call/);
    });

    it("a larger window is filled to the target, but a block that fits it stays whole", () => {
      const table = `| a | b |\n|---|---|\n${"| one | two |\n".repeat(60)}`.trimEnd();
      const page = [...Array.from({ length: 20 }, (_, index) => prose(50, index)), table].join("\n\n");
      const { chunks } = cut(page, { tokensMax: 2_000, tokensTarget: 200 });
      assert.ok(contents(chunks).includes(table));
      for (const chunk of chunks)
        if (chunk.content !== table) assert.ok(wordPieces.count(chunk.content) <= 200);
    });
  });

  describe("know where they stand", () => {
    it("the heading path has what is above all of a chunk, as one reads it", () => {
      const page = `# The *Book*\n\n${prose(80, 1)}\n\n## Using \`fetch\`, [again](https://x.test)\n\n${prose(80, 2)}\n\n# Next\n\n${prose(80, 3)}`;
      assert.deepEqual(
        cut(page).chunks.map(({ headingPath }) => headingPath),
        [["The Book"], ["The Book", "Using fetch, again"], ["Next"]],
      );
    });

    it("headings of the page before count until one of their level comes", () => {
      const first = cut(`# Book\n\n### Deep\n\n${prose(80, 1)}`);
      assert.deepEqual(first.headingsAfter, ["Book", "", "Deep"]);
      const next = cut(`${prose(80, 2)}\n\n### Deeper\n\n${prose(80, 3)}\n\n## Chapter\n\n${prose(80, 4)}`, {
        headingsBefore: first.headingsAfter,
      });
      assert.deepEqual(
        next.chunks.map(({ headingPath }) => headingPath),
        [
          ["Book", "Deep"],
          ["Book", "Deeper"],
          ["Book", "Chapter"],
        ],
      );
      assert.deepEqual(next.headingsAfter, ["Book", "Chapter"]);
    });

    it("title and headings are embedded but not shown", () => {
      const [chunk] = cut("# Engine\n\nIt runs.", { title: "Manual" }).chunks;
      assert.equal(chunk!.content, "# Engine\n\nIt runs.");
      assert.equal(embeddedText({ title: "Manual", ...chunk! }), "Manual > Engine\n# Engine\n\nIt runs.");
      assert.equal(embeddedText({ title: null, ...chunk! }), "Engine\n# Engine\n\nIt runs.");
    });

    it("the end of the text before is embedded too, in the same section only", () => {
      const { chunks } = cut(`# One\n\n${prose(600, 1)}\n\n# Two\n\n${prose(100, 2)}`);
      const inOne = chunks.filter(({ headingPath }) => headingPath[0] === "One");
      assert.equal(inOne[0]!.overlap, "");
      for (const [index, { overlap }] of inOne.slice(1).entries()) {
        assert.ok(wordPieces.count(overlap) <= 24);
        assert.ok(inOne[index]!.content.endsWith(overlap));
      }
      assert.ok(inOne.some(({ overlap }) => overlap));
      assert.equal(chunks.find(({ headingPath }) => headingPath[0] === "Two")!.overlap, "");
    });

    it("a window too small to be of use is refused", () => {
      assert.throws(() => cut("text", { tokensMax: 16 }), { code: "invalid_input" });
    });
  });

  describe("ids", () => {
    it("are 64 hexadecimal digits, other ones for another source, path or content", () => {
      const chunk = { headingPath: ["a"], content: "text" };
      const ids = [
        ...chunkIds("one", [chunk, chunk]),
        ...chunkIds("two", [chunk]),
        ...chunkIds("one", [{ ...chunk, headingPath: ["b"] }]),
        ...chunkIds("one", [{ ...chunk, content: "texts" }]),
      ];
      assert.equal(new Set(ids).size, 5);
      for (const id of ids) assert.match(id, /^[0-9a-f]{64}$/);
      assert.deepEqual(chunkIds("one", [chunk, chunk]), ids.slice(0, 2));
    });

    it("stay when another paragraph of the page is edited, added or removed", () => {
      const idsOf = (paragraphs: readonly string[]) =>
        chunkIds("source", cut(paragraphs.join("\n\n"), { title: "Page" }).chunks);
      let edits = 0;
      let changed = 0;
      fc.assert(
        fc.property(
          fc.nat(),
          fc.constantFrom(20, 60, 120, 300),
          fc.nat({ max: 49 }),
          fc.constantFrom("edit", "add", "remove"),
          (seed, wordsMax, at, how) => {
            const page = Array.from({ length: 50 }, (_, index) => {
              const words = 3 + ((seed * 31 + index * 7919) % wordsMax);
              return prose(words, seed + index);
            });
            const edited = page.toSpliced(
              at,
              how === "add" ? 0 : 1,
              ...(how === "edit" ? [`${page[at]} More of it.`] : how === "add" ? [prose(40, seed + 99)] : []),
            );
            const known = new Set(idsOf(page));
            const fresh = idsOf(edited).filter((id) => !known.has(id));
            assert.ok(fresh.length <= 4, `${fresh.length} of ${known.size} ids changed`);
            edits += 1;
            changed += fresh.length;
          },
        ),
        { numRuns: 300, seed: 7310 },
      );
      assert.ok(changed / edits < 1.5, `${changed / edits} ids changed by an edit`);
    });
  });

  it("the hash of a content is its SHA-256", () => {
    assert.equal(contentHash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  });
});

/** In order, and nothing but white space between them. */
function assertCovers(markdown: string, chunks: readonly Chunk[]): void {
  let position = 0;
  for (const { start, end, content } of chunks) {
    assert.ok(start >= position && end > start);
    assert.equal(markdown.slice(position, start).trim(), "");
    assert.equal(content, markdown.slice(start, end));
    assert.notEqual(content.trim(), "");
    position = end;
  }
  assert.equal(markdown.slice(position).trim(), "");
}
