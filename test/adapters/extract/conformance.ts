import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { ExtractorSettings } from "../../../src/adapters/extract/local.ts";
import type { Extractor } from "../../../src/adapters/extract.ts";
import { isQuarryError, type QuarryError } from "../../../src/errors.ts";
import { makeDocx } from "../../support/make-docx.ts";
import { LETTER, makePdf, type PdfPage, scan, text } from "../../support/make-pdf.ts";
import { type PdfBlock, typeset } from "../../support/typeset.ts";
import { extract, Files, signal } from "./files.ts";

const SENTENCE = "Rivers carry sediment from the hills to the plains, where it settles over many centuries. ";
const GRAY = {
  gray: new Uint8Array(40 * 50).map((_, position) => (position % 7) * 40),
  width: 40,
  height: 50,
};

/** What every extractor has to do, whatever it reads files with. */
export function testExtractor(name: string, open: (settings?: ExtractorSettings) => Extractor): void {
  describe(`${name} extracts`, { timeout: 60_000 }, () => {
    const files = new Files();
    let extractor: Extractor;
    before(() => {
      extractor = open();
    });
    after(async () => {
      await extractor.close();
      await files.remove();
    });
    const pdf = (pages: readonly PdfPage[], settings: { title?: string; password?: string } = {}) =>
      files.put("report.pdf", makePdf({ pages, ...settings }));
    const report = (pageCount: number) =>
      typeset(
        Array.from({ length: pageCount }, (_, page): PdfBlock[] => [
          { heading: `Chapter ${numberWords[page % numberWords.length]}` },
          { paragraph: `This is leaf ${page + 1}. ${SENTENCE.repeat(5)}` },
          { break: "page" },
        ])
          .flat()
          .slice(0, -1),
        {
          header: () => "ACME Corporation – Annual Report",
          footer: (page) => `Page ${page} of ${pageCount}`,
        },
      );

    test("a PDF has its pages, its title and its repeated lines", async () => {
      const file = await pdf(report(5), { title: "The Year at ACME" });
      const inspection = await extractor.inspect(file, signal);
      assert.equal(inspection.mediaType, "application/pdf");
      assert.equal(inspection.pageCount, 5);
      assert.equal(inspection.title, "The Year at ACME");
      assert.equal(inspection.furniture.length, 2, inspection.furniture.join("; "));
      assert.deepEqual(JSON.parse(JSON.stringify(inspection)), inspection);
    });

    test("a title that a program made up gives way to the first heading", async () => {
      for (const title of ["Microsoft Word - draft3.doc", "untitled", "", "report_final.indd"]) {
        const { title: found } = await extractor.inspect(await pdf(report(3), { title }), signal);
        assert.equal(found, "Chapter One", title);
      }
    });

    test("headers, footers and page numbers are left out, everything else is kept", async () => {
      const { pages } = await extract(extractor, await pdf(report(6)));
      for (const [position, page] of pages.entries()) {
        assert.doesNotMatch(page.markdown, /ACME|Page \d/);
        assert.match(page.markdown, new RegExp(`^#+ Chapter ${numberWords[position]}\n\n`));
        assert.match(page.markdown, new RegExp(`This is leaf ${position + 1}\\. Rivers carry`));
        assert.equal(page.needsOcr, false);
      }
    });

    test("a heading that repeats in the middle of pages is kept, and so is a title that appears once", async () => {
      const pages = [1, 2, 3, 4].map((page): PdfPage => {
        const title = page === 1 ? [text("A Single Title", { x: 72, y: 60, size: 20, font: "bold" })] : [];
        return {
          items: [
            ...title,
            text("Running Head", { x: 72, y: 30, size: 9 }),
            text(`${SENTENCE}(${page})`, { x: 72, y: 200 }),
            text("Summary", { x: 72, y: 400, size: 16, font: "bold" }),
            text(`It was a good day number ${page}.`, { x: 72, y: 430 }),
            text(`${page}`, { x: 300, y: LETTER.height - 30, size: 9 }),
          ],
        };
      });
      const { pages: read } = await extract(extractor, await pdf(pages));
      assert.match(read[0]!.markdown, /A Single Title/);
      for (const [position, page] of read.entries()) {
        assert.match(page.markdown, /#+ Summary/);
        assert.doesNotMatch(page.markdown, /Running Head/);
        assert.match(page.markdown, new RegExp(`day number ${position + 1}\\.$`));
      }
    });

    test("numbered headings at the top of pages are no page numbers", async () => {
      const pages = ["Exercise", "Article"].flatMap((word) =>
        [1, 2, 3, 4].map((page): PdfPage => {
          const number = word === "Exercise" ? page : page * page;
          const size = word === "Exercise" ? 18 : 11;
          return {
            items: [
              text(`${word} ${number}`, { x: 72, y: 72, size }),
              text(`Do the thing that ${word.toLowerCase()} ${number} asks for.`, { x: 72, y: 200 }),
              text(`Working Paper ${page} / 8`, { x: 72, y: LETTER.height - 30, size: 8 }),
              text("Confidential", { x: 400, y: LETTER.height - 30, size: 8 }),
            ],
          };
        }),
      );
      const { pages: read } = await extract(extractor, await pdf(pages));
      for (const [position, { markdown }] of read.entries()) {
        assert.match(markdown, position < 4 ? /^#+ Exercise \d\n/ : /^(#+ )?Article \d+\n/);
        assert.doesNotMatch(markdown, /Working|Confidential/);
      }
    });

    test("a page of which only header and footer are text is blank", async () => {
      const pages = [...report(4)];
      pages.splice(2, 0, {
        items: pages[2]!.items.filter((item) => item.kind === "text" && item.size === 9),
      });
      const { pages: read } = await extract(extractor, await pdf(pages));
      assert.deepEqual(read[2], { pageNumber: 3, markdown: "", needsOcr: false });
      assert.match(read[3]!.markdown, /leaf 3/);
    });

    test("only pages that show something without text need OCR", async () => {
      const letters = text(SENTENCE, { x: 72, y: 300, isHidden: true });
      const { pages } = await extract(
        extractor,
        await pdf([
          { items: [] },
          scan(GRAY),
          { items: [...scan(GRAY).items, letters] },
          { items: [...scan(GRAY).items, text("Seen 2024-05-01", { x: 72, y: 400 })] },
        ]),
      );
      assert.deepEqual(
        pages.map(({ needsOcr }) => needsOcr),
        [false, true, false, true],
      );
      assert.deepEqual(
        pages.map(({ markdown }) => markdown),
        ["", "", SENTENCE.trim(), "Seen 2024-05-01"],
      );
    });

    test("pages come as they are asked for, and by windows as all at once", async () => {
      const file = await pdf(report(20));
      const { inspection, pages } = await extract(extractor, file);
      const some = await extractor.read(file, { pages: [17, 3, 4], furniture: inspection.furniture }, signal);
      assert.deepEqual(some, [pages[16], pages[2], pages[3]]);
    });

    test("another process goes on where this one stopped", async () => {
      const file = await pdf(report(4));
      const { furniture } = await extractor.inspect(file, signal);
      const other = open();
      try {
        const request = { pages: [2], furniture: JSON.parse(JSON.stringify(furniture)) };
        assert.deepEqual(
          await other.read(file, request, signal),
          await extractor.read(file, request, signal),
        );
        assert.equal(other.version, extractor.version);
      } finally {
        await other.close();
      }
    });

    test("a page that is not there is refused", async () => {
      const file = await pdf(report(3));
      await fails(extractor.read(file, { pages: [4], furniture: [] }, signal), "invalid_input", /no page 4/);
    });

    test("a picture of a scanned page is a PNG or JPEG", async () => {
      const picture = await extractor.picture(await pdf([scan(GRAY)]), 1, signal);
      assert.match(Buffer.from(picture.subarray(0, 4)).toString("latin1"), /^(\x89PNG|\xff\xd8)/);
    });

    test("a PDF with a password is refused with advice; one that only restricts printing is read", async () => {
      const locked = await pdf(report(2), { password: "secret" });
      await fails(extractor.inspect(locked, signal), "file_encrypted", /^report\.pdf .*password.*save it/);
      const { text: words } = await extract(extractor, await pdf(report(2), { password: "" }));
      assert.match(words, /leaf 2/);
    });

    test("what a file is, its bytes tell and not its name", async () => {
      const cases: [string, Uint8Array | string, string][] = [
        ["report.docx", makePdf({ pages: report(1) }), "application/pdf"],
        ["report.pdf", makeDocx({ blocks: [{ paragraph: "hello" }] }), "application/vnd.openxmlformats"],
        ["page.txt", "<!DOCTYPE html><html><body><p>hello</p></body></html>", "text/html"],
        ["words.pdf", "Just some words, and no PDF at all.", "text/plain"],
        ["noname", "Just some words.", "text/plain"],
      ];
      for (const [filename, content, mediaType] of cases) {
        const inspection = await extractor.inspect(await files.put(filename, content), signal);
        assert.ok(inspection.mediaType.startsWith(mediaType), `${filename}: ${inspection.mediaType}`);
        assert.equal(inspection.pageCount, 1);
      }
    });

    test("an unknown file is refused with what is supported", async () => {
      const noise = Uint8Array.from({ length: 5000 }, (_, position) => (position * 7919) % 256);
      const file = await files.put("thing.bin", noise);
      await fails(extractor.inspect(file, signal), "file_unsupported", /^thing\.bin .*PDF, Word.*pictures/);
    });

    test("an empty, a broken and a missing file are told apart in plain words", async () => {
      await fails(
        extractor.inspect(await files.put("a.pdf", ""), signal),
        "file_unreadable",
        /^a\.pdf is empty/,
      );
      const broken = await files.put("b.pdf", makePdf({ pages: report(2) }).subarray(0, 1500));
      await fails(
        extractor.inspect(broken, signal),
        "file_unreadable",
        /^b\.pdf is not a readable PDF: .*save it again/,
      );
      const missing = { path: `${broken.path}-gone`, filename: "c.pdf" };
      await fails(extractor.inspect(missing, signal), "file_unreadable", /^c\.pdf .*not there/);
      await fails(
        extractor.read(missing, { pages: [1], furniture: [] }, signal),
        "file_unreadable",
        /not there/,
      );
    });

    test("too many pages and too many bytes are refused", async () => {
      const strict = open({ pagesMax: 3, fileMb: 1 });
      try {
        await fails(
          strict.inspect(await pdf(report(4)), signal),
          "file_too_large",
          /4 pages; at most 3 .*QUARRY_PAGES_MAX/,
        );
        const large = await files.put("large.txt", "word ".repeat(300_000));
        await fails(
          strict.inspect(large, signal),
          "file_too_large",
          /large\.txt has 2 MB; at most 1 MB .*QUARRY_FILE_MB_MAX/,
        );
      } finally {
        await strict.close();
      }
    });

    test("a call that is no longer wanted ends with the reason", async () => {
      const file = await pdf(report(3));
      const controller = new AbortController();
      const call = extractor.inspect(file, controller.signal);
      controller.abort(new Error("stopped"));
      await assert.rejects(call, /stopped/);
      assert.equal((await extractor.inspect(file, signal)).pageCount, 3);
    });

    test("a closed extractor says so", async () => {
      const closed = open();
      await closed.close();
      await fails(closed.inspect(await pdf(report(1)), signal), "shutting_down", /closed/);
    });

    /** Never a path in the message: it means nothing to the one who reads it. */
    async function fails(call: Promise<unknown>, code: QuarryError["code"], words: RegExp): Promise<void> {
      await assert.rejects(call, (error: unknown) => {
        assert.ok(isQuarryError(error, code), String(error));
        assert.match(error.message, words);
        assert.doesNotMatch(error.message, /upload-|quarry-/);
        return true;
      });
    }
  });
}

const numberWords = ["One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten"];
