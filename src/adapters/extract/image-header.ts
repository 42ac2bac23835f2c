import { QuarryError } from "../../errors.ts";
import type { ImageFormat } from "./formats.ts";

export interface ImagePage {
  readonly width: number;
  readonly height: number;
  /** As cameras and scanners note it: 1 is upright. */
  readonly orientation: number;
}

/** Sizes of the pictures in a file, from its headers alone: nothing is decoded before its size is known to be sane. */
export function imagePages(bytes: Buffer, format: ImageFormat): ImagePage[] {
  try {
    const pages = format === "tiff" ? tiffPages(bytes) : [{ orientation: 1, ...READERS[format](bytes) }];
    if (pages.length > 0 && pages.every(({ width, height }) => width > 0 && height > 0)) return pages;
  } catch (error) {
    if (error instanceof QuarryError) throw error;
    // Anything else is a read beyond the end.
  }
  throw new QuarryError(
    "file_unreadable",
    `is a damaged picture: its ${format.toUpperCase()} header is not complete`,
  );
}

type Size = { readonly width: number; readonly height: number; readonly orientation?: number };

const READERS: Readonly<Record<Exclude<ImageFormat, "tiff">, (bytes: Buffer) => Size>> = {
  png: (bytes) => ({ width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }),
  jpeg: jpegSize,
  gif: (bytes) => ({ width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) }),
  bmp: (bytes) => ({ width: bytes.readInt32LE(18), height: Math.abs(bytes.readInt32LE(22)) }),
  webp: webpSize,
};

function jpegSize(bytes: Buffer): Size {
  let orientation = 1;
  let offset = 2;
  for (;;) {
    // Any number of fill bytes may stand before a marker.
    while (bytes.readUInt8(offset) === 0xff && bytes.readUInt8(offset + 1) === 0xff) offset++;
    if (bytes.readUInt8(offset) !== 0xff) throw new RangeError("no marker");
    const marker = bytes.readUInt8(offset + 1);
    const length = bytes.readUInt16BE(offset + 2);
    if (marker === 0xe1)
      orientation = exifOrientation(bytes.subarray(offset + 4, offset + 2 + length)) ?? orientation;
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame)
      return { height: bytes.readUInt16BE(offset + 5), width: bytes.readUInt16BE(offset + 7), orientation };
    offset += 2 + length;
  }
}

function exifOrientation(segment: Buffer): number | undefined {
  if (segment.subarray(0, 6).toString("latin1") !== "Exif\0\0") return undefined;
  try {
    return tiffPages(segment.subarray(6), 1)[0]?.orientation;
  } catch {
    return undefined;
  }
}

function webpSize(bytes: Buffer): Size {
  switch (bytes.toString("latin1", 12, 16)) {
    case "VP8 ":
      return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
    case "VP8L": {
      const bits = bytes.readUInt32LE(21);
      return { width: (bits & 0x3fff) + 1, height: ((bits >> 14) & 0x3fff) + 1 };
    }
    default:
      return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
  }
}

const TIFF_PAGES_MAX = 10_000;
const TIFF_TAGS = { width: 256, height: 257, orientation: 274 } as const;

function tiffPages(bytes: Buffer, pagesMax = TIFF_PAGES_MAX): ImagePage[] {
  const isLittle = bytes.toString("latin1", 0, 2) === "II";
  const read16 = (at: number) => (isLittle ? bytes.readUInt16LE(at) : bytes.readUInt16BE(at));
  const read32 = (at: number) => (isLittle ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at));
  const pages: ImagePage[] = [];
  const seen = new Set<number>();
  let directory = read32(4);
  while (directory !== 0 && !seen.has(directory) && pages.length < pagesMax) {
    seen.add(directory);
    const count = read16(directory);
    const values = new Map<number, number>();
    for (let entry = 0; entry < count; entry++) {
      const at = directory + 2 + entry * 12;
      const SHORT = 3;
      values.set(read16(at), read16(at + 2) === SHORT ? read16(at + 8) : read32(at + 8));
    }
    pages.push({
      width: values.get(TIFF_TAGS.width) ?? 0,
      height: values.get(TIFF_TAGS.height) ?? 0,
      orientation: values.get(TIFF_TAGS.orientation) ?? 1,
    });
    directory = read32(directory + 2 + count * 12);
  }
  return pages;
}
