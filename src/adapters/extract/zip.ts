import { once } from "node:events";
import { crc32, createInflateRaw } from "node:zlib";
import { QuarryError } from "../../errors.ts";

/**
 * Just enough of ZIP to look at a file before a library trusts it: names and sizes from the central directory, and
 * contents that are unpacked under limits, whatever sizes the archive claims.
 */
export interface ZipEntry {
  readonly name: string;
  readonly method: number;
  readonly packedBytes: number;
  /** As the archive says, which may be a lie. */
  readonly claimedBytes: number;
  readonly headerOffset: number;
  readonly isEncrypted: boolean;
}

export interface ZipLimits {
  readonly entriesMax: number;
  readonly unpackedBytesMax: number;
  /** Unpacked to packed. Small files are free to have any. */
  readonly ratioMax: number;
}

const RATIO_COUNTS_FROM_BYTES = 8 * 1024 * 1024;
const ENTRIES_READ_MAX = 65_535;
const END_OF_DIRECTORY = 0x06054b50;
const DIRECTORY_ENTRY = 0x02014b50;
const LOCAL_HEADER = 0x04034b50;
const END_BYTES = 22;
const COMMENT_BYTES_MAX = 65_535;

export function listZip(bytes: Buffer): ZipEntry[] {
  const end = endOfDirectory(bytes);
  const count = bytes.readUInt16LE(end + 10);
  const entries: ZipEntry[] = [];
  let offset = bytes.readUInt32LE(end + 16);
  for (let position = 0; position < Math.min(count, ENTRIES_READ_MAX); position++) {
    if (offset + 46 > bytes.length || bytes.readUInt32LE(offset) !== DIRECTORY_ENTRY)
      throw broken("its list of contents is damaged");
    const nameBytes = bytes.readUInt16LE(offset + 28);
    entries.push({
      name: bytes.toString("utf8", offset + 46, offset + 46 + nameBytes),
      isEncrypted: (bytes.readUInt16LE(offset + 8) & 1) === 1,
      method: bytes.readUInt16LE(offset + 10),
      packedBytes: bytes.readUInt32LE(offset + 20),
      claimedBytes: bytes.readUInt32LE(offset + 24),
      headerOffset: bytes.readUInt32LE(offset + 42),
    });
    offset += 46 + nameBytes + bytes.readUInt16LE(offset + 30) + bytes.readUInt16LE(offset + 32);
  }
  return entries;
}

/** Contents of the entries that `wants`, by name. Entries nobody wants are never unpacked. */
export async function unpackZip(
  bytes: Buffer,
  wants: (name: string) => boolean,
  limits: ZipLimits,
): Promise<Map<string, Buffer>> {
  const entries = listZip(bytes);
  if (entries.length > limits.entriesMax)
    throw bomb(`it has ${entries.length} entries, more than ${limits.entriesMax}`);
  const claimed = entries.reduce((sum, entry) => sum + entry.claimedBytes, 0);
  if (claimed > limits.unpackedBytesMax) throw tooLarge(limits);
  const contents = new Map<string, Buffer>();
  let left = limits.unpackedBytesMax;
  for (const entry of entries) {
    if (!wants(entry.name)) continue;
    if (entry.isEncrypted) throw new QuarryError("file_encrypted", "is an encrypted archive");
    const content = await unpack(entry, packedContent(bytes, entry), { limits, left });
    left -= content.length;
    contents.set(entry.name, content);
  }
  return contents;
}

/** The same contents, packed by nobody: a library that reads this sees exactly the bytes that were checked. */
export function storedZip(contents: ReadonlyMap<string, Uint8Array>): Buffer {
  const locals: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const [name, content] of contents) {
    const nameBytes = Buffer.from(name);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(0x0800, 2);
    common.writeUInt32LE(crc32(content), 10);
    common.writeUInt32LE(content.length, 14);
    common.writeUInt32LE(content.length, 18);
    common.writeUInt16LE(nameBytes.length, 22);
    const local = Buffer.concat([uint32(LOCAL_HEADER), common, nameBytes, content]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(offset, 10);
    directory.push(Buffer.concat([uint32(DIRECTORY_ENTRY), Buffer.from([20, 0]), common, tail, nameBytes]));
    locals.push(local);
    offset += local.length;
  }
  const list = Buffer.concat(directory);
  const end = Buffer.alloc(END_BYTES);
  end.writeUInt32LE(END_OF_DIRECTORY, 0);
  end.writeUInt16LE(contents.size, 8);
  end.writeUInt16LE(contents.size, 10);
  end.writeUInt32LE(list.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...locals, list, end]);
}

function endOfDirectory(bytes: Buffer): number {
  const lowest = Math.max(0, bytes.length - END_BYTES - COMMENT_BYTES_MAX);
  for (let offset = bytes.length - END_BYTES; offset >= lowest; offset--)
    if (bytes.readUInt32LE(offset) === END_OF_DIRECTORY) return offset;
  throw broken("its end is missing, as after an interrupted download");
}

function packedContent(bytes: Buffer, entry: ZipEntry): Buffer {
  const { headerOffset } = entry;
  if (headerOffset + 30 > bytes.length || bytes.readUInt32LE(headerOffset) !== LOCAL_HEADER)
    throw broken(`${entry.name} is not where its list of contents says`);
  const start =
    headerOffset + 30 + bytes.readUInt16LE(headerOffset + 26) + bytes.readUInt16LE(headerOffset + 28);
  return bytes.subarray(start, start + entry.packedBytes);
}

async function unpack(
  entry: ZipEntry,
  packed: Buffer,
  { limits, left }: { limits: ZipLimits; left: number },
): Promise<Buffer> {
  if (entry.method === 0) return packed;
  if (entry.method !== 8) throw broken(`${entry.name} is packed in a way that nobody uses`);
  const inflate = createInflateRaw();
  const parts: Buffer[] = [];
  let size = 0;
  inflate.on("data", (part: Buffer) => {
    parts.push(part);
    size += part.length;
    if (size > left) inflate.destroy(tooLarge(limits));
    else if (size > RATIO_COUNTS_FROM_BYTES && size > packed.length * limits.ratioMax)
      inflate.destroy(bomb(`${entry.name} unpacks to more than ${limits.ratioMax} times its size`));
  });
  inflate.end(packed);
  try {
    await once(inflate, "end");
  } catch (error) {
    if (error instanceof QuarryError) throw error;
    throw broken(`${entry.name} cannot be unpacked`);
  }
  return Buffer.concat(parts);
}

function tooLarge(limits: ZipLimits): QuarryError {
  return bomb(`it unpacks to more than ${Math.round(limits.unpackedBytesMax / 2 ** 20)} MB`);
}

function bomb(what: string): QuarryError {
  return new QuarryError("file_too_large", `looks like a zip bomb: ${what}`);
}

function broken(what: string): QuarryError {
  return new QuarryError("file_unreadable", `is a damaged archive: ${what}`);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
