import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Ocr } from "../../../src/adapters/ocr.ts";
import { isQuarryError } from "../../../src/errors.ts";
import { type Gray, toPng } from "../../support/png.ts";
import { drawPages, printedPage } from "../../support/scan.ts";

const LETTER_HOME = [
  "The ferry left at nine with forty passengers.",
  "Nobody had told the cook that the oven was broken, so dinner was cold.",
];
const NOTICE = ["Deliveries are accepted on Tuesdays only."];

export interface OcrPictures {
  readonly letter: Buffer;
  readonly notice: Buffer;
  readonly blank: Buffer;
}

export async function drawPictures(): Promise<OcrPictures> {
  const print = { font: "regular", size: 12 } as const;
  const pages = await drawPages([printedPage(LETTER_HOME, print), printedPage(NOTICE, print)], 150);
  const [letter, notice] = pages.map((page) => toPng(upperPart(page)));
  const blank = toPng({ width: 800, height: 600, pixels: new Uint8Array(800 * 600).fill(255) });
  return { letter: letter!, notice: notice!, blank };
}

/** The rest is empty, and looking at it takes time. */
function upperPart({ width, height, pixels }: Gray): Gray {
  const rows = Math.floor(height / 4);
  return { width, height: rows, pixels: pixels.subarray(0, width * rows) };
}

/** What every OCR engine has to do. `open` gives one that reads one picture at a time. */
export function testOcr(name: string, open: () => Promise<Ocr>): void {
  describe(`OCR by ${name}`, () => {
    let ocr: Ocr;
    let pictures: OcrPictures;
    before(async () => {
      pictures = await drawPictures();
      ocr = await open();
    });
    after(() => ocr.close());

    it("reads paragraphs, with their lines joined", async (t) => {
      const { markdown, confidence } = await ocr.recognise(pictures.letter, t.signal);
      assert.equal(markdown, LETTER_HOME.join("\n\n"));
      assert.ok(confidence > 0.8 && confidence <= 1, `the confidence is ${confidence}`);
    });

    it("finds nothing on a blank page", async (t) => {
      const { markdown, confidence } = await ocr.recognise(pictures.blank, t.signal);
      assert.equal(markdown, "");
      assert.ok(confidence >= 0 && confidence <= 1);
    });

    it("refuses what is no picture or a damaged one, and reads the next one", async (t) => {
      const damaged = Buffer.from(pictures.letter);
      damaged.fill(0x55, damaged.length / 2, damaged.length / 2 + 200);
      const broken = {
        text: Buffer.from("this is no picture at all"),
        nothing: Buffer.alloc(0),
        "a header alone": pictures.letter.subarray(0, 40),
        "half a PNG": pictures.letter.subarray(0, pictures.letter.length / 2),
        "a damaged PNG": damaged,
        "the start of a JPEG": Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 16, 0x4a, 0x46, 0x49, 0x46]),
      };
      for (const [what, bytes] of Object.entries(broken))
        await assert.rejects(
          ocr.recognise(bytes, t.signal),
          (error) => isQuarryError(error, "file_unreadable"),
          what,
        );
      assert.equal((await ocr.recognise(pictures.notice, t.signal)).markdown, NOTICE[0]);
    });

    it("refuses a picture that claims to be huge, without decoding it", async (t) => {
      const huge = Buffer.from(pictures.blank);
      huge.writeUInt32BE(60_000, 16);
      huge.writeUInt32BE(60_000, 20);
      await assert.rejects(ocr.recognise(huge, t.signal), (error) => isQuarryError(error, "file_too_large"));
    });

    it("gives the place of an aborted call to the next one", async (t) => {
      const abort = new AbortController();
      const aborted = ocr.recognise(pictures.letter, abort.signal);
      const waiting = ocr.recognise(pictures.notice, t.signal);
      await sleep(50);
      abort.abort(new Error("no longer wanted"));
      await assert.rejects(aborted, /no longer wanted/);
      assert.equal((await waiting).markdown, NOTICE[0]);
      await assert.rejects(ocr.recognise(pictures.letter, abort.signal), /no longer wanted/);
    });

    it("keeps two calls at once apart", async (t) => {
      const [first, second] = await Promise.all([
        ocr.recognise(pictures.letter, t.signal),
        ocr.recognise(pictures.notice, t.signal),
      ]);
      assert.equal(first.markdown, LETTER_HOME.join("\n\n"));
      assert.equal(second.markdown, NOTICE[0]);
    });

    it("takes no more calls once it is closed", async (t) => {
      const other = await open();
      await other.close();
      await assert.rejects(other.recognise(pictures.notice, t.signal), (error) =>
        isQuarryError(error, "shutting_down"),
      );
    });
  });
}
