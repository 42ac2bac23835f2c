import { createInflateRaw } from "node:zlib";

export interface Inflated {
  /** As much as was to be kept. */
  readonly data: Buffer;
  /** Data that no program can unpack to its end. */
  readonly isDamaged: boolean;
}

/** More is not unpacked: what is sound so far is taken for sound. */
const BYTES_MAX = 1024 * 2 ** 20;
const HEADER_BYTES = 2;
const DEFLATE = 8;
/** A writer that was flushed and never finished leaves this; everything that it was given is there. */
const FLUSHED = Buffer.from([0, 0, 0xff, 0xff]);
const FLUSHED_WITHIN_BYTES = 8;

/**
 * Unpacks a stream of the Flate filter. The checksum at its end is not looked at: writers get it wrong, and no reader
 * minds.
 */
export async function inflate(packed: Buffer, keptBytesMax: number): Promise<Inflated> {
  const [method = 0, flags = 0] = packed;
  const hasHeader = (method & 15) === DEFLATE && (method * 256 + flags) % 31 === 0;
  if (!hasHeader) return { data: Buffer.alloc(0), isDamaged: true };
  const kept: Buffer[] = [];
  let bytes = 0;
  const stream = createInflateRaw();
  stream.end(packed.subarray(HEADER_BYTES));
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      if (bytes < keptBytesMax) kept.push(chunk.subarray(0, keptBytesMax - bytes));
      bytes += chunk.length;
      if (bytes > BYTES_MAX) break;
    }
    return { data: Buffer.concat(kept), isDamaged: false };
  } catch (error) {
    const isUnfinished = (error as NodeJS.ErrnoException).code === "Z_BUF_ERROR";
    const isFlushed = packed.subarray(-FLUSHED_WITHIN_BYTES).includes(FLUSHED);
    return { data: Buffer.concat(kept), isDamaged: !(isUnfinished && isFlushed) };
  }
}
