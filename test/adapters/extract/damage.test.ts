import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { constants, deflateSync } from "node:zlib";
import sharp from "sharp";
import { openExtractor } from "../../../src/adapters/extract/local.ts";
import type { Extractor, SourceFile } from "../../../src/adapters/extract.ts";
import { isQuarryError } from "../../../src/errors.ts";
import { makePdf, scan, text } from "../../support/make-pdf.ts";
import { Files, signal } from "./files.ts";
import { flate, packedPdf, type SmallObjects, smallPdf, stream } from "./small-pdf.ts";

const WORDS = [
  "One is about granite.",
  "Two is about basalt.",
  "Three is about slate.",
  "Four is about chalk.",
];
const FILLER = Array.from({ length: 40 }, (_, line) => `0 -14 Td (Line ${line} of ${line * line}.) Tj`).join(
  " ",
);
const PAGE_OBJECTS = [11, 12, 13, 14];
const CONTENTS = [21, 22, 23, 24];

/** What a page says, in the words of PDF. */
function operators(words: string): string {
  return `BT /F0 11 Tf 72 700 Td (${words}) Tj ${FILLER} ET`;
}

/** Four pages, of which some objects may be others. */
function objects(changes: SmallObjects = {}): SmallObjects {
  const page = (_: string, index: number) =>
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents ${CONTENTS[index]} 0 R ` +
    "/Resources << /Font << /F0 3 0 R >> >> >>";
  return {
    1: "<< /Type /Catalog /Pages 2 0 R >>",
    2: `<< /Type /Pages /Count 4 /Kids [${PAGE_OBJECTS.map((object) => `${object} 0 R`).join(" ")}] >>`,
    3: "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ...Object.fromEntries(WORDS.map((words, index) => [PAGE_OBJECTS[index]!, page(words, index)])),
    ...Object.fromEntries(WORDS.map((words, index) => [CONTENTS[index]!, flate(operators(words))])),
    ...changes,
  };
}

/** Overwrites a stretch of what stands between two words behind a third. */
function overwritten(
  pdf: Buffer,
  where: { behind: string; from: string; to: string; share?: readonly [number, number] },
  byte: (position: number) => number = noise,
): Buffer {
  const start = pdf.indexOf(where.from, pdf.indexOf(where.behind)) + where.from.length;
  const length = pdf.indexOf(where.to, start) - start;
  const [first, last] = where.share ?? [0, 1];
  const changed = Buffer.from(pdf);
  for (let at = Math.floor(length * first); at < Math.floor(length * last); at++)
    changed[start + at] = byte(at);
  return changed;
}

function noise(position: number): number {
  return (Math.imul(position + 7, 0x9e3779b1) >>> 13) & 255;
}

for (const pdfEngine of ["liteparse", "unpdf"] as const)
  describe(`a damaged PDF, read with ${pdfEngine}`, { timeout: 60_000 }, () => {
    const files = new Files();
    let extractor: Extractor;
    before(() => {
      extractor = openExtractor({ processes: 1, pdfEngine });
    });
    after(async () => {
      await extractor.close();
      await files.remove();
    });

    const read = (file: SourceFile, pages: readonly number[]) =>
      extractor.read(file, { pages, furniture: [] }, signal);

    /** The page fails with its reason, and all others say what they always said. */
    async function loses(pdf: Buffer, page: number, reason: RegExp): Promise<void> {
      const file = await files.put("quarry.pdf", pdf);
      assert.equal((await extractor.inspect(file, signal)).pageCount, 4);
      const others = [1, 2, 3, 4].filter((number) => number !== page);
      const found = await read(file, [1, 2, 3, 4]);
      assert.deepEqual(
        found.map(({ pageNumber }) => pageNumber),
        others,
      );
      for (const { pageNumber, markdown } of found)
        assert.ok(markdown.startsWith(WORDS[pageNumber - 1]!), `${pageNumber}: ${markdown}`);
      await assert.rejects(read(file, [page]), refused(page, reason));
      await assert.rejects(extractor.picture(file, page, signal), refused(page, reason));
    }

    function refused(page: number, reason: RegExp) {
      return (error: unknown) => {
        assert.ok(isQuarryError(error, "file_unreadable"), String(error));
        assert.match(error.message, new RegExp(`^quarry\\.pdf is damaged on page ${page}: .*another copy`));
        assert.match(error.message, reason);
        return true;
      };
    }

    const CONTENT = { behind: "\n22 0 obj", from: "stream\n", to: "\nendstream" };

    test("loses the page whose packed content was overwritten, wherever that begins", async () => {
      for (const share of [
        [0, 1],
        [0.4, 1],
        [0.5, 0.6],
      ] as const)
        await loses(
          overwritten(smallPdf(objects()), { ...CONTENT, share }),
          2,
          /its content cannot be decoded/,
        );
    });

    test("loses the page of which the content is zeros", async () => {
      const zeros = overwritten(smallPdf(objects()), { ...CONTENT, share: [0.5, 1] }, () => 0);
      await loses(zeros, 2, /content cannot be decoded/);
    });

    test("loses the page when only one of several streams is damaged, or a form that it uses", async () => {
      const page = (more: string) =>
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] ${more} /Resources << /Font << /F0 3 0 R >> ` +
        "/XObject << /Form 26 0 R >> >> >>";
      const broken = overwritten(
        smallPdf(objects({ 12: page("/Contents [25 0 R 22 0 R]"), 25: flate("q Q") })),
        CONTENT,
      );
      await loses(broken, 2, /content/);
      const form = stream(
        "/Type /XObject /Subtype /Form /BBox [0 0 612 792] /Filter /FlateDecode",
        noisy(400),
      );
      await loses(
        smallPdf(objects({ 12: page("/Contents 25 0 R"), 25: flate("/Form Do"), 26: form })),
        2,
        /content/,
      );
    });

    test("loses the page whose content is text that means nothing", async () => {
      const file = await files.put("quarry.pdf", smallPdf(objects({ 22: stream("", noisy(3000)) })));
      const found = await read(file, [1, 2, 3, 4]);
      assert.deepEqual(
        found.map(({ pageNumber }) => pageNumber),
        [1, 3, 4],
      );
      await assert.rejects(read(file, [2]), refused(2, /its content cannot be decoded/));
    });

    test("loses damaged pages of files that pack their objects together, too", async () => {
      const { 1: catalog, 2: tree, 3: font, 11: one, 12: two, 13: three, 14: four, ...streams } = objects();
      const packed = { 1: catalog, 2: tree, 3: font, 11: one, 12: two, 13: three, 14: four };
      const pdf = packedPdf(streams, packed as Record<number, string>);
      const file = await files.put("quarry.pdf", pdf);
      assert.equal((await read(file, [1, 2, 3, 4])).length, 4);
      await loses(overwritten(pdf, CONTENT), 2, /content cannot be decoded/);
    });

    if (pdfEngine === "liteparse")
      test("does not give one page as another when the object of a page was overwritten", async () => {
        const pdf = smallPdf(objects());
        const object = { behind: "\n13 0 obj", from: "0 obj\n", to: "\nendobj" };
        const letters = (position: number) => "abc def "[position % 8]!.charCodeAt(0);
        const reason = /the page itself was overwritten/;
        await loses(overwritten(pdf, object), 3, reason);
        await loses(
          overwritten(pdf, object, () => 0),
          3,
          reason,
        );
        await loses(overwritten(pdf, object, letters), 3, reason);
        // With its end overwritten, the page seems to go on into the next one and to have the text of that.
        await loses(overwritten(pdf, { ...object, from: "0 obj\n<<", to: "14 0 obj" }, letters), 3, reason);
        await loses(overwritten(pdf, { ...object, behind: "\n14 0 obj" }), 4, reason);
      });

    test("fails a scan whose picture cannot be decoded, and no other page", async () => {
      const gray = new Uint8Array(300 * 400).map((_, at) => (at * at) % 251);
      const pixels = { gray, width: 300, height: 400 };
      const sound = makePdf({ pages: [scan(pixels), scan(pixels)] });
      const picture = { behind: "/Subtype /Image", from: "stream\n", to: "\nendstream" };
      for (const share of [
        [0, 1],
        [0.5, 1],
      ] as const) {
        const broken = overwritten(sound, { ...picture, share }, share[0] === 0 ? noise : () => 0);
        const file = await files.put("quarry.pdf", broken);
        for (const page of await read(file, [1, 2])) assert.equal(page.needsOcr, true);
        await assert.rejects(extractor.picture(file, 1, signal), refused(1, /its picture cannot be decoded/));
        assert.ok((await extractor.picture(file, 2, signal)).length > 0);
      }
      const jpeg = await sharp({ create: { width: 200, height: 200, channels: 3, background: "#a04020" } })
        .jpeg()
        .toBuffer();
      const photo = makePdf({ pages: [scan({ jpeg, width: 200, height: 200 })] });
      const file = await files.put(
        "quarry.pdf",
        overwritten(photo, picture, () => 1),
      );
      await assert.rejects(extractor.picture(file, 1, signal), refused(1, /its picture cannot be decoded/));
      assert.ok((await extractor.picture(await files.put("p.pdf", photo), 1, signal)).length > 0);
    });

    test("reads a page of text on which only a picture is damaged", async () => {
      const gray = { gray: new Uint8Array(200 * 200), width: 200, height: 200 };
      const items = [
        text("Basalt is dark, dense and hard, and it splits into columns of six sides when it cools.", {
          x: 72,
          y: 90,
        }),
        { kind: "picture" as const, x: 72, y: 200, width: 100, height: 100, pixels: gray },
      ];
      const pdf = overwritten(makePdf({ pages: [{ items }] }), {
        behind: "/Subtype /Image",
        from: "stream\n",
        to: "\nendstream",
      });
      const [page] = await read(await files.put("quarry.pdf", pdf), [1]);
      assert.match(page!.markdown, /six sides/);
    });

    test("is not what a blank page is called", async () => {
      const page = (contents: string) =>
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] ${contents} /Resources << >> >>`;
      const blank: Record<string, SmallObjects> = {
        "no content": { 12: page("") },
        "no streams": { 12: page("/Contents []") },
        "a stream that was deleted": { 12: page("/Contents 99 0 R") },
        "an empty stream": { 22: stream("", "") },
        "an empty packed stream": { 22: flate("") },
        "white space": { 22: stream("", "\n \r\n") },
        "nothing painted": { 22: flate("q 1 0 0 1 72 72 cm /Artifact BMC 0 0 10 10 re W n EMC Q") },
        "spaces in a strange font": { 22: stream("", "BT /F0 9 Tf (\0\x03\0\x03\x80\x81) Tj <0003> Tj ET") },
      };
      for (const [name, changes] of Object.entries(blank)) {
        const file = await files.put("blank.pdf", smallPdf(objects(changes)));
        assert.equal((await extractor.inspect(file, signal)).pageCount, 4, name);
        assert.equal((await read(file, [1, 2, 3, 4])).length, 4, name);
        const [page] = await read(file, [2]);
        assert.doesNotMatch(page!.markdown, /\p{L}/u, name);
      }
    });

    test("is not what an odd file is called that can be read all the same", async () => {
      const content = operators(WORDS[1]!);
      const packed = deflateSync(content);
      const hex = `${Buffer.from(content).toString("hex")}>`;
      const odd: Record<string, SmallObjects> = {
        "a wrong checksum": {
          22: stream("/Filter /FlateDecode", Buffer.concat([packed.subarray(0, -4), Buffer.alloc(4)])),
        },
        "no checksum": { 22: stream("/Filter /FlateDecode", packed.subarray(0, -4)) },
        "never finished": {
          22: stream("/Filter /FlateDecode", deflateSync(content, { finishFlush: constants.Z_SYNC_FLUSH })),
        },
        "more behind its end": {
          22: stream("/Filter /FlateDecode", Buffer.concat([packed, Buffer.from("\r\n\r\n")])),
        },
        "a wrong length": {
          22: Buffer.from(
            flate(content)
              .toString("latin1")
              .replace(/\/Length \d+/, "/Length 9"),
            "latin1",
          ),
        },
        "a length elsewhere": {
          22: Buffer.from(
            flate(content)
              .toString("latin1")
              .replace(/\/Length \d+/, "/Length 25 0 R"),
            "latin1",
          ),
          25: `${packed.length}`,
        },
        "other filters": { 22: stream("/Filter /ASCIIHexDecode", hex) },
        "filters in a row": {
          22: stream("/Filter [/ASCIIHexDecode /FlateDecode]", `${packed.toString("hex")}>`),
        },
        "a short name": { 22: stream("/Filter [/Fl]", packed) },
        "a name with an escape": { 22: stream("/Filter /Flate#44ecode", packed) },
        "remarks between values": { 12: `% (\n${objects()[12]}` },
      };
      for (const [name, changes] of Object.entries(odd)) {
        const file = await files.put("odd.pdf", smallPdf(objects(changes)));
        const found = await read(file, [1, 2, 3, 4]);
        assert.equal(found.length, 4, name);
        assert.ok(found[1]!.markdown.startsWith(WORDS[1]!), `${name}: ${found[1]!.markdown}`);
      }
    });

    test("is not judged when it is encrypted, or when its tables are broken", async () => {
      const locked = makePdf({
        pages: [{ items: [text("Still to be read.", { x: 72, y: 90 })] }],
        password: "",
      });
      const [page] = await read(await files.put("locked.pdf", locked), [1]);
      assert.match(page!.markdown, /Still/);
      const tables = Buffer.from(
        smallPdf(objects())
          .toString("latin1")
          .replace(/startxref\n\d+/, "startxref\n77"),
        "latin1",
      );
      assert.equal((await read(await files.put("tables.pdf", tables), [1, 2, 3, 4])).length, 4);
    });
  });

function noisy(bytes: number): Buffer {
  return Buffer.from(Uint8Array.from({ length: bytes }, (_, position) => noise(position)));
}
