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
import { markdownPage, prose, type Table, tablePage } from "./markdown.ts";

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
    it("hold all of its text, once but for headers and fences, and never more tokens than the window", () => {
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

    it("an introduction that could stand alone stays with the first item too", () => {
      const introduction = `${prose(100, 1).slice(0, -1)}:`;
      const items = Array.from({ length: 8 }, (_, index) => `- ${prose(20, index)}`);
      const chunks = contents(cut(`${introduction}\n\n${items.join("\n")}`).chunks);
      assert.equal(chunks.length, 2);
      assert.ok(chunks[0]!.startsWith(`${introduction}\n\n${items[0]}`));
    });

    it("code is cut at blank lines, and each part stands between fences", () => {
      const functions = Array.from(
        { length: 30 },
        (_, index) => `function f${index}() {\n  const a = ${index};\n  return a * ${index};\n}`,
      );
      for (const fence of ["```", "~~~~"]) {
        const page = `${fence}js title="f"\n${functions.join("\n\n")}\n${fence}`;
        const chunks = contents(cut(page).chunks);
        assert.ok(chunks.length > 2);
        const first = new RegExp(`^${fence}js title="f"\nfunction[^]*}\n${fence}$`);
        const later = new RegExp(`^${fence}js\nfunction[^]*}\n${fence}$`);
        for (const [index, content] of chunks.entries()) assert.match(content, index === 0 ? first : later);
      }
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

  describe("of a table that is too large for one", () => {
    const stock = (count: number): Table => ({
      header: "| sku | name | price | stock |\n| --- | :-- | --- | --- |",
      rows: Array.from(
        { length: count },
        (_, index) => `| ZX-${index} | Widget ${index} | ${index * 3}.50 | ${index % 17} |`,
      ),
    });
    const pageOf = ({ header, rows }: Table) => [header, ...rows].join("\n");

    it("begin with its header and hold whole rows", () => {
      const table = stock(400);
      const { chunks } = cut(pageOf(table), { title: "Stock" });
      for (const { content, overlap } of chunks) {
        assert.ok(content.startsWith(`${table.header}\n| ZX-`), content);
        assert.equal(overlap, "");
      }
      assert.deepEqual(
        chunks.flatMap(({ content }) => content.split("\n").slice(2)),
        table.rows,
      );
    });

    it("are filled: a seventh more than there must be at most, and none is small", () => {
      const bare = {
        header: "name | place\n--- | ---",
        rows: stock(400).rows.map((_, index) => `${prose(2, index)} | ${prose(1, index)}`),
      };
      const tables = tokenizers.flatMap((tokenizer) =>
        [stock(400), bare].map((table) => ({ tokenizer, table })),
      );
      for (const { tokenizer, table } of tables) {
        const countTokens = (text: string) => tokenizer.count(text);
        const { chunks } = cut(pageOf(table), { countTokens });
        const needed = chunksNeeded(table, { countTokens, tokensMax: TOKENS_MAX });
        assert.ok(chunks.length <= (needed * 8) / 7, `${chunks.length}, needed are ${needed}`);
        for (const { tokenCount } of chunks) assert.ok(tokenCount >= TOKENS_MAX / 2);
      }
    });

    it("cut no row that has room in one, whatever the table", () => {
      fc.assert(
        fc.property(tablePage, fc.constantFrom(...tokenizers), (table, tokenizer) => {
          const countTokens = (text: string) => tokenizer.count(text);
          // A word that the tokenizer cannot read is one token, however long.
          const sizeOf = (text: string) => Math.max(countTokens(text), text.length / 8);
          const page = pageOf(table);
          const { chunks } = cut(page, { countTokens });
          assertCovers(page, chunks);
          const ends = new Set(chunks.map(({ end }) => end));
          let start = table.header.length + 1;
          for (const row of table.rows) {
            const inside = [...ends].filter((end) => end > start && end < start + row.length);
            if (sizeOf(row) <= TOKENS_MAX) assert.deepEqual(inside, [], row);
            start += row.length + 1;
          }
          const isSmall = sizeOf(table.header) <= TOKENS_MAX / 4;
          for (const chunk of chunks) {
            assert.ok(chunk.tokenCount <= TOKENS_MAX);
            const hasRows = page.slice(chunk.start, chunk.end).includes("\n");
            if (isSmall && hasRows) assert.ok(chunk.content.startsWith(table.header), chunk.content);
          }
        }),
        { numRuns: 150 },
      );
    });

    const rows = (cells: number) => `|${" 12 |".repeat(cells)}\n`.repeat(90);
    it("a header that takes too much of them is shortened", () => {
      const names = Array.from({ length: 6 }, (_, index) => `Column ${index} of ${prose(20, index)}`);
      const page = `| ${names.join(" | ")} |\n|${" ------------ |".repeat(6)}\n${rows(6)}`;
      const [first, ...later] = contents(cut(page).chunks);
      assert.ok(first!.startsWith("| Column 0 of"));
      assert.ok(later.length > 1);
      for (const content of later)
        assert.ok(
          content.startsWith(
            `|${names.map((name) => `${name.slice(0, 11)}…`).join("|")}|\n|-|-|-|-|-|-|\n| 12 |`,
          ),
          content,
        );
    });

    it("a ruler that is longer than it must be is shortened first, its alignment kept", () => {
      const page = `| one | two |\n|:${"-".repeat(60)}|${"-".repeat(60)}:|\n${rows(2)}`;
      const [, ...later] = contents(cut(page).chunks);
      assert.ok(later.length > 1);
      for (const content of later) assert.ok(content.startsWith("|one|two|\n|:-|-:|\n| 12 |"), content);
    });

    it("a header that takes more than half of them even so is not repeated", () => {
      const page = `|${" name |".repeat(60)}\n|${" --- |".repeat(60)}\n${rows(60)}`;
      const later = contents(cut(page).chunks).filter((content) => !/name|---/.test(content));
      assert.ok(later.length > 1);
      assert.ok(rows(60).trimEnd().endsWith(later.join("\n")));
    });

    it("a row that has room only without the header is shown without it", () => {
      const { header, rows: few } = stock(3);
      const wide = `| ZX-9 | ${prose(220, 1)} | 1.50 | 4 |`;
      const chunks = contents(cut([header, ...few, wide, ...few].join("\n")).chunks);
      assert.ok(chunks.includes(wide));
    });

    it("a row that is too large for one is cut, and each part has the header", () => {
      const { header, rows: few } = stock(3);
      const page = [header, ...few, `| ZX-9 | ${prose(600, 1)} | 1.50 | 4 |`, ...few].join("\n");
      const { chunks } = cut(page);
      assertCovers(page, chunks);
      assert.ok(chunks.length >= 3);
      for (const { content } of chunks) assert.ok(content.startsWith(header));
    });

    it("stay when a row is edited, and most of them when one is added or removed", () => {
      const idsOf = (table: Table) => chunkIds("source", cut(pageOf(table)).chunks);
      const table = stock(400);
      const known = new Set(idsOf(table));
      const changes = { edit: 0, add: 0, remove: 0 };
      for (let at = 0; at < 400; at += 8) {
        const edits = {
          edit: table.rows.with(at, table.rows[at]!.replace(".50", ".75")),
          add: table.rows.toSpliced(at, 0, `| ZX-${at}-B | Widget, blue | 1.50 | 4 |`),
          remove: table.rows.toSpliced(at, 1),
        };
        for (const how of ["edit", "add", "remove"] as const) {
          const fresh = idsOf({ ...table, rows: edits[how] }).filter((id) => !known.has(id));
          assert.ok(fresh.length <= 12, `${how} at ${at} changed ${fresh.length} of ${known.size} ids`);
          changes[how] += fresh.length / 50;
        }
      }
      assert.ok(changes.edit < 1.5, `${changes.edit} ids changed by an edit`);
      assert.ok(Math.max(changes.add, changes.remove) < 4, JSON.stringify(changes));
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
    assert.notEqual(content.trim(), "");
    assertShows(content, { slice: markdown.slice(start, end), before: markdown.slice(0, start) });
    position = end;
  }
  assert.equal(markdown.slice(position).trim(), "");
}

/** The slice itself; else what is before it is the header or fence that it stands under, and behind it is a fence. */
function assertShows(content: string, { slice, before }: { slice: string; before: string }): void {
  const foot = content.endsWith(slice) ? "" : (/\n(?:`{3,}|~{3,})$/.exec(content)?.[0] ?? "");
  assert.ok(content.endsWith(slice + foot));
  const head = content.slice(0, content.length - slice.length - foot.length);
  if (head === "") return;
  const isHeader = /^[^\n]+\n[|:\- ]+\n$/.test(head);
  const isFence = /^(?:`{3,}|~{3,})[^\n]*\n$/.test(head);
  assert.ok(isHeader || isFence, head);
  // A header may have lost padding and ends of its cells.
  const cells = head.split(/[\n|]/).map((cell) => cell.replace(/…$/, "").trim());
  for (const cell of cells) assert.ok(before.includes(cell), cell);
}

/** By filling each as far as it goes. */
function chunksNeeded(
  { header, rows }: Table,
  { countTokens, tokensMax }: { countTokens: (text: string) => number; tokensMax: number },
): number {
  let count = 0;
  let content = "";
  for (const row of rows) {
    const longer = `${content}\n${row}`;
    const isRoom = count > 0 && countTokens(longer) <= tokensMax;
    if (!isRoom) count += 1;
    content = isRoom ? longer : `${header}\n${row}`;
  }
  return count;
}
