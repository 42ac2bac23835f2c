import { QuarryError } from "../../errors.ts";
import type { Pixels } from "./png.ts";

/** Windows bitmaps as scanners and screenshots write them: uncompressed, 1, 4, 8, 24 or 32 bits a pixel. */
export function decodeBmp(bytes: Buffer): Pixels {
  const offset = bytes.readUInt32LE(10);
  const headerBytes = bytes.readUInt32LE(14);
  const width = bytes.readInt32LE(18);
  const signedHeight = bytes.readInt32LE(22);
  const height = Math.abs(signedHeight);
  const bits = bytes.readUInt16LE(28);
  const compression = bytes.readUInt32LE(30);
  if (headerBytes < 40 || ![1, 4, 8, 24, 32].includes(bits) || (compression !== 0 && compression !== 3))
    throw new QuarryError("file_unsupported", "is a bitmap of a rare kind; save it as PNG");
  const rowBytes = Math.ceil((width * bits) / 32) * 4;
  if (offset + rowBytes * height > bytes.length)
    throw new QuarryError("file_unreadable", "is a damaged bitmap: a part of the picture is missing");
  const palette = bytes.subarray(14 + headerBytes);
  const data = Buffer.alloc(width * height * 3);
  for (let y = 0; y < height; y++) {
    const row = bytes.subarray(offset + (signedHeight < 0 ? y : height - 1 - y) * rowBytes);
    for (let x = 0; x < width; x++) {
      const [color, at] = bits >= 24 ? [row, (x * bits) / 8] : [palette, paletteIndex(row, { x, bits }) * 4];
      const target = (y * width + x) * 3;
      data[target] = color[at + 2] ?? 0;
      data[target + 1] = color[at + 1] ?? 0;
      data[target + 2] = color[at] ?? 0;
    }
  }
  return { width, height, channels: 3, data };
}

function paletteIndex(row: Uint8Array, { x, bits }: { x: number; bits: number }): number {
  const perByte = 8 / bits;
  const shift = 8 - bits * ((x % perByte) + 1);
  return (row[Math.floor(x / perByte)]! >> shift) & (2 ** bits - 1);
}
