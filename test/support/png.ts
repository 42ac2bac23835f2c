import { inflateSync } from "node:zlib";
import { encodePng } from "../../src/adapters/extract/png.ts";

/** A picture in shades of gray, one byte a pixel from black to white. */
export interface Gray {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint8Array;
}

const SIGNATURE_BYTES = 8;
/** Bytes a pixel, by PNG's colour type: gray, RGB, gray with alpha, RGB with alpha. */
const CHANNELS: Record<number, number> = { 0: 1, 2: 3, 4: 2, 6: 4 };

export function toPng({ width, height, pixels }: Gray): Buffer {
  return Buffer.from(encodePng({ width, height, channels: 1, data: pixels }));
}

/** For pictures of eight bits a channel, not interlaced: what page renderers write. */
export function decodePng(png: Buffer): Gray {
  let header: Buffer | undefined;
  const data: Buffer[] = [];
  for (let position = SIGNATURE_BYTES; position < png.length; ) {
    const length = png.readUInt32BE(position);
    const type = png.toString("latin1", position + 4, position + 8);
    const body = png.subarray(position + 8, position + 8 + length);
    if (type === "IHDR") header = body;
    if (type === "IDAT") data.push(body);
    position += 12 + length;
  }
  const channels = CHANNELS[header?.[9] ?? -1];
  if (!header || !channels || header[8] !== 8 || header[12] !== 0)
    throw new Error("this PNG is of a kind that tests do not read");
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const rows = unfilter(inflateSync(Buffer.concat(data)), { stride: width * channels, height, channels });
  return { width, height, pixels: toGray(rows, { count: width * height, channels }) };
}

/** Each row starts with how its bytes were predicted from those to the left and above. */
function unfilter(
  data: Buffer,
  { stride, height, channels }: { stride: number; height: number; channels: number },
): Uint8Array {
  const rows = new Uint8Array(stride * height);
  for (let y = 0; y < height; y++) {
    const filter = data[y * (stride + 1)]!;
    for (let x = 0; x < stride; x++) {
      const at = y * stride + x;
      const left = x >= channels ? rows[at - channels]! : 0;
      const above = y > 0 ? rows[at - stride]! : 0;
      const corner = x >= channels && y > 0 ? rows[at - stride - channels]! : 0;
      rows[at] = data[y * (stride + 1) + 1 + x]! + predict(filter, { left, above, corner });
    }
  }
  return rows;
}

function predict(
  filter: number,
  { left, above, corner }: { left: number; above: number; corner: number },
): number {
  if (filter === 0) return 0;
  if (filter === 1) return left;
  if (filter === 2) return above;
  if (filter === 3) return (left + above) >> 1;
  const guess = left + above - corner;
  const [toLeft, toAbove, toCorner] = [
    Math.abs(guess - left),
    Math.abs(guess - above),
    Math.abs(guess - corner),
  ];
  if (toLeft <= toAbove && toLeft <= toCorner) return left;
  return toAbove <= toCorner ? above : corner;
}

function toGray(rows: Uint8Array, { count, channels }: { count: number; channels: number }): Uint8Array {
  if (channels === 1) return rows;
  const pixels = new Uint8Array(count);
  const isColoured = channels > 2;
  for (let pixel = 0; pixel < count; pixel++) {
    const at = pixel * channels;
    pixels[pixel] = isColoured
      ? 0.299 * rows[at]! + 0.587 * rows[at + 1]! + 0.114 * rows[at + 2]!
      : rows[at]!;
  }
  return pixels;
}
