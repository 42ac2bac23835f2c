import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { openExtractor } from "../../../src/adapters/extract/local.ts";
import { cleanText } from "../../../src/adapters/extract/text.ts";
import type { Extractor } from "../../../src/adapters/extract.ts";
import { isQuarryError, type QuarryError } from "../../../src/errors.ts";
import { makeDocx } from "../../support/make-docx.ts";
import { makeZip } from "../../support/make-zip.ts";
import { extract, Files, signal } from "./files.ts";

describe("formats", { timeout: 60_000 }, () => {
  const files = new Files();
  let extractor: Extractor;
  before(() => {
    extractor = openExtractor({ processes: 1 });
  });
  after(async () => {
    await extractor.close();
    await files.remove();
  });
  const read = async (filename: string, content: Uint8Array | string) =>
    extract(extractor, await files.put(filename, content));
  const refuses = async (filename: string, content: Uint8Array, code: QuarryError["code"], words: RegExp) =>
    assert.rejects(read(filename, content), (error: unknown) => {
      assert.ok(isQuarryError(error, code), String(error));
      assert.match(error.message, words);
      return true;
    });

  describe("Markdown", () => {
    test("comes as it is, with the first heading as its title", async () => {
      const source = "Some words first.\n\n## Small\n\n# The *Real* [Title](http://x.org)\n\n- a\n- b";
      const { inspection, text } = await read("notes.md", source);
      assert.equal(inspection.mediaType, "text/markdown");
      assert.equal(inspection.title, "The Real Title");
      assert.equal(text, source);
    });

    test("front matter gives the title and stays as a block", async () => {
      const { inspection, text } = await read(
        "post.md",
        '---\ntitle: "On Rivers"\ntags: [a]\n---\n\n# Other\n\nText',
      );
      assert.equal(inspection.title, "On Rivers");
      assert.equal(text, '```yaml\ntitle: "On Rivers"\ntags: [a]\n```\n\n# Other\n\nText');
    });

    test("front matter may be all there is, and a rule at the start is none", async () => {
      assert.equal((await read("stub.md", "---\ntitle: On Rivers\n---")).inspection.title, "On Rivers");
      const ruled = "---\n\nWords between rules.\n\n---\n\nMore words.";
      assert.equal((await read("ruled.md", ruled)).text, ruled);
    });

    test("a heading inside a code block is no title", async () => {
      const { inspection } = await read("readme.md", "```sh\n# install\n```\n\n## Usage");
      assert.equal(inspection.title, "Usage");
    });
  });

  describe("text", () => {
    const words = "Größe: 5 µm – naïve café";

    test("is read in UTF-8, UTF-16 and Latin-1, with byte order mark and without", async () => {
      const encodings: Record<string, Buffer> = {
        "utf-8": Buffer.from(words),
        "utf-8 marked": Buffer.from(`\ufeff${words}`),
        "utf-16le marked": Buffer.from(`\ufeff${words}`, "utf16le"),
        "utf-16be marked": Buffer.from(`\ufeff${words}`, "utf16le").swap16(),
        "utf-16le": Buffer.from(words, "utf16le"),
        "windows-1252": Buffer.from(words.replace("–", "\x96"), "latin1"),
      };
      for (const [encoding, bytes] of Object.entries(encodings)) {
        const { text } = await read("words.txt", bytes);
        assert.equal(text, words, encoding);
      }
    });

    test("one broken byte does not spoil the other letters", async () => {
      const bytes = Buffer.concat([
        Buffer.from("Füße und Bäume "),
        Buffer.from([0xc3]),
        Buffer.from(" überall"),
      ]);
      assert.equal((await read("words.txt", bytes)).text, "Füße und Bäume \ufffd überall");
    });

    test("NUL, other control characters and lone surrogates are cleaned", async () => {
      const { text } = await read("odd.txt", "a\0b \x07 line one\r\nline two\rline three\tend\fnew");
      assert.equal(text, "ab  line one\nline two\nline three\tend\n\nnew");
      const lone = await read(
        "lone.txt",
        Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from("a\ud800b", "utf16le")]),
      );
      assert.equal(lone.text, "a\ufffdb");
      assert.equal(cleanText("a\ud800b"), "a\ufffdb");
    });

    test("words are written as people type them: accents in place, no ligatures, no soft hyphens", async () => {
      const { text } = await read("typeset.txt", "cafe\u0301 \ufb01nance o\ufb03ce co\u00adoperation x²");
      assert.equal(text, "café finance office cooperation x²");
    });

    test("that speaks of PDFs is text all the same", async () => {
      const words = "A PDF file starts with %PDF-1.7 and ends with %%EOF.";
      const { inspection, text } = await read("about.md", words);
      assert.equal(inspection.mediaType, "text/markdown");
      assert.equal(text, words);
    });

    test("code is fenced in its language, with a fence that it cannot close", async () => {
      const { inspection, text } = await read("tool.py", "def f():\n    return '''\n```\n'''\n");
      assert.equal(inspection.mediaType, "text/x-python");
      assert.equal(text, "````python\ndef f():\n    return '''\n```\n'''\n````");
      assert.match((await read("Dockerfile", "FROM scratch\n")).text, /^```dockerfile\n/);
      assert.match((await read("data.json", '{"a": 1}')).text, /^```json\n\{"a": 1\}\n```$/);
    });

    test("a CSV is a table when it is regular, else it stays as it is", async () => {
      const csv = 'name;note\r\n"Meyer; Anna";"says ""hi""\r\nand | bye"\r\nBo;\r\n';
      const { inspection, text } = await read("people.csv", csv);
      assert.equal(inspection.mediaType, "text/csv");
      assert.equal(
        text,
        '| name | note |\n| --- | --- |\n| Meyer; Anna | says "hi" and \\| bye |\n| Bo |  |',
      );
      assert.equal((await read("odd.csv", "a,b\n1,2,3\n")).text, "```csv\na,b\n1,2,3\n```");
    });
  });

  describe("HTML", () => {
    test("becomes Markdown without scripts, styles and navigation", async () => {
      const { inspection, text } = await read(
        "page.html",
        `<!doctype html><html><head><title>Rivers &amp; Lakes</title><style>p { color: red }</style>
         <script>document.write("<div><p>junk</p>")</script></head>
         <body><nav><a href="/">Home</a></nav><!-- <p>hidden</p> --><h1>Rivers</h1>
         <p>They <b>flow</b> into the <a href="https://sea.org/">sea</a>, my_river too.</p>
         <ul><li>Rhine<ul><li>Aare</li></ul></li><li>Elbe</li></ul><ol start="3"><li>x</li><li>y</li></ol>
         <table><thead><tr><th>River</th><th colspan="2">Length</th></tr></thead>
         <tbody><tr><td rowspan="2">Rhine</td><td>1233</td><td>km</td></tr><tr><td>766</td><td>mi | les</td></tr></tbody></table>
         <pre><code class="language-js">let a = "&lt;b&gt;";\n  b()</code></pre><img src="x.png" alt="A river at dawn"></body></html>`,
      );
      assert.equal(inspection.title, "Rivers & Lakes");
      assert.equal(
        text,
        [
          "# Rivers\n",
          "They **flow** into the [sea](https://sea.org/), my_river too.\n",
          "- Rhine\n  - Aare\n- Elbe\n",
          "3. x\n4. y\n",
          "| River | Length |  |\n| --- | --- | --- |\n| Rhine | 1233 | km |\n|  | 766 | mi \\| les |\n",
          '```js\nlet a = "<b>";\n  b()\n```\n',
          "A river at dawn",
        ].join("\n"),
      );
    });

    test("nested too deeply it keeps its words", async () => {
      const deep = `<html>${"<div>".repeat(5000)}<p>Deep &amp; d&auml;rk</p><p>w&#111;rds</p>${"</div>".repeat(5000)}`;
      assert.equal((await read("deep.html", deep)).text, "Deep & därk\n\nwords");
    });

    test("its declared charset counts", async () => {
      const { text } = await read(
        "page.htm",
        Buffer.concat([
          Buffer.from('<html><meta charset="shift_jis"><p>'),
          Buffer.from([0x93, 0xfa, 0x96, 0x7b]),
        ]),
      );
      assert.equal(text, "日本");
      const saved = '<html><meta charset="iso-8859-1"><p>Größe</p>';
      assert.equal((await read("saved.htm", saved)).text, "Größe");
      assert.equal((await read("old.htm", Buffer.from(saved, "latin1"))).text, "Größe");
      // Left over from before the page was converted: in UTF-16 nobody could have read it.
      const converted = '<html><meta charset="unicode"><title>1. Größe</title><p>Größe</p>';
      const { inspection, text: words } = await read("mail.htm", converted);
      assert.equal(words, "Größe");
      assert.equal(inspection.title, "1. Größe");
    });

    test("what its reader does not see is left out", async () => {
      const { text } = await read(
        "page.html",
        '<html><p>Seen</p><p style="color: red; display:none">one</p><p style="Visibility : hidden">two</p><p hidden>three</p><p style="display: block">too</p>',
      );
      assert.equal(text, "Seen\n\ntoo");
    });

    test("what can be folded away stands apart from what is around it", async () => {
      const { text } = await read(
        "page.html",
        "<html>One<details><summary>Two</summary>Three</details><fieldset><legend>Four</legend>Five</fieldset>",
      );
      assert.equal(text, "One\n\nTwo\n\nThree\n\nFour\n\nFive");
    });

    test("elements that somebody made up are read, whatever they are called", async () => {
      const { text } = await read(
        "page.html",
        "<html><p>One</p><style-guide><p>Two</p></style-guide><script-list>Three</script-list><style>p{}</style><p>Four</p>",
      );
      assert.equal(text.replaceAll(/\s+/g, " "), "One Two Three Four");
    });

    test("tables that only place things lose their frame, not their words", async () => {
      const { text } = await read(
        "old.html",
        "<html><table><tr><td><p>Left</p></td><td><table><tr><th>a</th><th>b</th></tr></table></td></tr></table></html>",
      );
      assert.equal(text, "Left\n\n| a | b |\n| --- | --- |");
    });
  });

  describe("DOCX", () => {
    test("keeps headings, lists, tables, footnotes and what pictures show", async () => {
      const { inspection, text } = await read(
        "paper.docx",
        makeDocx({
          title: "Sand & Silt",
          blocks: [
            { heading: "Introduction" },
            { paragraph: "Sand travels far.", footnote: "As measured by hand." },
            { heading: "Methods", level: 2 },
            { bullets: ["sieve", "scale"] },
            { numbers: ["collect", "dry"] },
            {
              table: [
                ["Site", "Grain"],
                ["A", "0.2"],
                ["B", "0.4"],
              ],
              headerMarks: "off",
            },
            { picture: "A heap of sand" },
          ],
        }),
      );
      assert.equal(inspection.title, "Sand & Silt");
      assert.equal(
        text,
        [
          "# Introduction\n",
          "Sand travels far.[^1]\n",
          "## Methods\n",
          "- sieve\n- scale\n",
          "1. collect\n2. dry\n",
          "| Site | Grain |\n| --- | --- |\n| A | 0.2 |\n| B | 0.4 |\n",
          "A heap of sand\n",
          "[^1]: As measured by hand.",
        ].join("\n"),
      );
    });

    test("keeps formulas, words with their reading above, and the gap of a page break", async () => {
      const run = (inside: string) => `<w:r>${inside}</w:r>`;
      const word = (words: string) => run(`<w:t>${words}</w:t>`);
      const ruby = run(
        `<w:ruby><w:rubyPr/><w:rt>${word("かん")}</w:rt><w:rubyBase>${word("漢")}</w:rubyBase></w:ruby>`,
      );
      const math = (words: string) => `<m:r><m:rPr><m:sty m:val="p"/></m:rPr><m:t>${words}</m:t></m:r>`;
      const half = `<m:f><m:fPr/><m:num>${math("1")}</m:num><m:den>${math("2")}</m:den></m:f>`;
      const namespace = "http://schemas.openxmlformats.org/officeDocument/2006/math";
      const bodyXml = [
        `${word("before")}${run('<w:br w:type="page"/>')}${word("after")}`,
        `${ruby}${word("字")}`,
        `<m:oMath xmlns:m="${namespace}">${math("x=")}${half}</m:oMath>`,
      ].map((paragraph) => `<w:p>${paragraph}</w:p>`);
      const { text } = await read("a.docx", makeDocx({ blocks: [], bodyXml: bodyXml.join("") }));
      assert.equal(text.replaceAll(/\s+/g, " "), "before after 漢字 x=1/2");
    });

    test("without a title the first heading is it", async () => {
      const { inspection } = await read("a.docx", makeDocx({ blocks: [{ heading: "On Clay", level: 2 }] }));
      assert.equal(inspection.title, "On Clay");
      const numbered = await read("b.docx", makeDocx({ blocks: [{ heading: "1. On *Clay*" }] }));
      assert.equal(numbered.inspection.title, "1. On Clay");
    });

    test("a title that never ends does not keep the reader", async (t) => {
      const impatient = openExtractor({ processes: 1, deadlineMs: 20_000 });
      t.after(() => impatient.close());
      const title = { name: "docProps/core.xml", content: "<dc:title".repeat(100_000) };
      const file = await files.put("c.docx", makeDocx({ blocks: [{ heading: "On Clay" }], more: [title] }));
      assert.equal((await extract(impatient, file)).inspection.title, "On Clay");
    });

    test("other Office files and archives are refused by what they are", async () => {
      const zip = (name: string) => makeZip([{ name, content: "x" }]);
      await refuses("a.xlsx", zip("xl/workbook.xml"), "file_unsupported", /Excel.*CSV/);
      await refuses("a.pptx", zip("ppt/presentation.xml"), "file_unsupported", /PowerPoint.*PDF/);
      await refuses("a.zip", zip("readme.txt"), "file_unsupported", /archive.*unpack/);
      const old = Buffer.concat([Buffer.from("d0cf11e0a1b11ae1", "hex"), Buffer.alloc(3000)]);
      await refuses("a.doc", old, "file_unsupported", /before 2007/);
      const locked = Buffer.concat([old, Buffer.from("EncryptedPackage", "utf16le")]);
      await refuses("a.docx", locked, "file_encrypted", /password/);
    });
  });

  test("long text is read by pages, each under the headings above it", async () => {
    const chapters = Array.from(
      { length: 6 },
      (_, chapter) =>
        `## Chapter ${chapter + 1}\n\n${`Sentence of chapter ${chapter + 1}. `.repeat(400)}\n\n`,
    );
    const { inspection, pages } = await read("book.md", `# The Book\n\n${chapters.join("")}`);
    assert.equal(inspection.pageCount, 6);
    for (const [position, page] of pages.entries()) {
      assert.match(page.markdown, new RegExp(`## Chapter ${position + 1}\n`));
      assert.deepEqual(page.headings, position === 0 ? [] : ["The Book", `Chapter ${position}`]);
    }
    await assert.rejects(
      extractor.read(await files.put("book.md", "x"), { pages: [2], furniture: [] }, signal),
      /book\.md has 1 pages; there is no page 2/,
    );
  });
});
