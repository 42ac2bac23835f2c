import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import sharp from "sharp";
import { imagePages } from "../../../src/adapters/extract/image-header.ts";
import { openExtractor } from "../../../src/adapters/extract/local.ts";
import type { Extractor } from "../../../src/adapters/extract.ts";
import { isQuarryError } from "../../../src/errors.ts";
import { extract, Files, signal } from "./files.ts";

describe("pictures", { timeout: 60_000 }, () => {
  const files = new Files();
  let extractor: Extractor;
  before(() => {
    extractor = openExtractor({ processes: 1 });
  });
  after(async () => {
    await extractor.close();
    await files.remove();
  });
  /** White, with a red corner at the top left. */
  const drawing = () =>
    sharp({ create: { width: 30, height: 20, channels: 3, background: "white" } }).composite([
      { input: { create: { width: 10, height: 10, channels: 3, background: "red" } }, left: 0, top: 0 },
    ]);

  test("each is one page that needs OCR", async () => {
    for (const format of ["png", "jpeg", "webp", "gif", "tiff"] as const) {
      const file = await files.put("photo.dat", await drawing().toFormat(format).toBuffer());
      const { inspection, pages } = await extract(extractor, file);
      assert.equal(inspection.mediaType, `image/${format}`);
      assert.deepEqual(pages, [{ pageNumber: 1, markdown: "", needsOcr: true }]);
    }
  });

  test("PNG and JPEG are handed on as they are, others as PNG", async () => {
    for (const format of ["png", "jpeg"] as const) {
      const bytes = await drawing().toFormat(format).toBuffer();
      const picture = await extractor.picture(await files.put("photo", bytes), 1, signal);
      assert.deepEqual(Buffer.from(picture), bytes);
    }
    for (const format of ["webp", "gif", "tiff"] as const) {
      const bytes = await drawing().toFormat(format).toBuffer();
      await isDrawing(await extractor.picture(await files.put("photo", bytes), 1, signal));
    }
  });

  test("bitmaps are converted too", async () => {
    const { data } = await drawing().removeAlpha().raw().toBuffer({ resolveWithObject: true });
    await isDrawing(await extractor.picture(await files.put("old.bmp", bitmap(data, 30, 20)), 1, signal));
  });

  test("a photo that lies on its side is set upright", async () => {
    const lying = await drawing().rotate(90).jpeg().withMetadata({ orientation: 8 }).toBuffer();
    const picture = await extractor.picture(await files.put("photo.jpg", lying), 1, signal);
    const { width, height, orientation } = await sharp(picture).metadata();
    assert.deepEqual([width, height, orientation ?? 1], [30, 20, 1]);
  });

  test("a broken thumbnail does not hide how the photo lies", () => {
    const exif = Buffer.from(
      "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\xff\xff\xff\xff",
      "latin1",
    );
    const jpeg = Buffer.concat([
      Buffer.from([0xff, 0xd8, 0xff, 0xe1, 0, exif.length + 2]),
      exif,
      Buffer.from([0xff, 0xc0, 0, 11, 8, 0, 20, 0, 30, 1, 1, 0x11, 0]),
    ]);
    assert.deepEqual(imagePages(jpeg, "jpeg"), [{ width: 30, height: 20, orientation: 6 }]);
  });

  test("a TIFF of several pages has as many", async () => {
    const tiff = twoPageTiff();
    const file = await files.put("fax.tif", tiff);
    assert.equal((await extractor.inspect(file, signal)).pageCount, 2);
    const shades = [];
    for (const page of [1, 2]) {
      const { data } = await sharp(await extractor.picture(file, page, signal))
        .greyscale()
        .raw()
        .toBuffer({ resolveWithObject: true });
      shades.push(data[0]);
    }
    assert.deepEqual(shades, [0, 255]);
  });

  test("a picture that would fill the memory is refused by its header", async () => {
    const png = Buffer.from(await drawing().png().toBuffer());
    png.writeUInt32BE(60_000, 16);
    png.writeUInt32BE(60_000, 20);
    const file = await files.put("bomb.png", png);
    const calls = [() => extractor.inspect(file, signal), () => extractor.picture(file, 1, signal)];
    for (const call of calls)
      await assert.rejects(call, (error: unknown) => {
        assert.ok(isQuarryError(error, "file_too_large"), String(error));
        assert.match(error.message, /^bomb\.png is a picture of 60000 × 60000 pixels; at most 50 million/);
        return true;
      });
  });

  async function isDrawing(picture: Uint8Array): Promise<void> {
    const { data, info } = await sharp(picture).removeAlpha().raw().toBuffer({ resolveWithObject: true });
    assert.deepEqual([info.width, info.height], [30, 20]);
    const pixel = (x: number, y: number) => [...data.subarray((y * 30 + x) * 3, (y * 30 + x) * 3 + 3)];
    const [red, white] = [pixel(3, 3), pixel(25, 15)];
    assert.ok(red[0]! > 200 && red[1]! < 60, `${red}`);
    assert.ok(Math.min(...white) > 240, `${white}`);
  }
});

/** Three bytes a pixel, bottom row first, rows padded to four bytes. */
function bitmap(rgb: Uint8Array, width: number, height: number): Buffer {
  const rowBytes = Math.ceil((width * 3) / 4) * 4;
  const bytes = Buffer.alloc(54 + rowBytes * height);
  bytes.write("BM");
  bytes.writeUInt32LE(bytes.length, 2);
  bytes.writeUInt32LE(54, 10);
  bytes.writeUInt32LE(40, 14);
  bytes.writeInt32LE(width, 18);
  bytes.writeInt32LE(height, 22);
  bytes.writeUInt16LE(1, 26);
  bytes.writeUInt16LE(24, 28);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const [r, g, b] = rgb.subarray((y * width + x) * 3);
      bytes.set([b!, g!, r!], 54 + (height - 1 - y) * rowBytes + x * 3);
    }
  return bytes;
}

/** Two pages of 2 × 2 gray pixels: one black, one white. */
function twoPageTiff(): Buffer {
  const bytes = Buffer.alloc(8 + 2 * (2 + 9 * 12 + 4) + 8);
  bytes.write("II*\0", "latin1");
  bytes.writeUInt32LE(8, 4);
  const pageBytes = 2 + 9 * 12 + 4;
  for (const page of [0, 1]) {
    const start = 8 + page * pageBytes;
    const pixels = 8 + 2 * pageBytes + page * 4;
    bytes.fill(page * 255, pixels, pixels + 4);
    const tags: [tag: number, value: number][] = [
      [256, 2],
      [257, 2],
      [258, 8],
      [259, 1],
      [262, 1],
      [273, pixels],
      [277, 1],
      [278, 2],
      [279, 4],
    ];
    bytes.writeUInt16LE(tags.length, start);
    for (const [position, [tag, value]] of tags.entries()) {
      const at = start + 2 + position * 12;
      bytes.writeUInt16LE(tag, at);
      bytes.writeUInt16LE(4, at + 2);
      bytes.writeUInt32LE(1, at + 4);
      bytes.writeUInt32LE(value, at + 8);
    }
    bytes.writeUInt32LE(page === 0 ? start + pageBytes : 0, start + 2 + tags.length * 12);
  }
  return bytes;
}
