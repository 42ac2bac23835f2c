import { crc32, deflateRawSync } from "node:zlib";

export interface ZipContent {
  readonly name: string;
  readonly content: Uint8Array | string;
  /** What the archive says about the size, when that is a lie. */
  readonly claimedBytes?: number;
  readonly isStored?: boolean;
}

/** Writes archives, also such as nobody should trust. */
export function makeZip(entries: readonly ZipContent[]): Buffer {
  const files: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const entry of entries) {
    const content = Buffer.from(entry.content as string);
    const packed = entry.isStored ? content : deflateRawSync(content);
    const name = Buffer.from(entry.name);
    const facts = Buffer.alloc(26);
    facts.writeUInt16LE(20, 0);
    facts.writeUInt16LE(entry.isStored ? 0 : 8, 4);
    facts.writeUInt32LE(crc32(content), 10);
    facts.writeUInt32LE(packed.length, 14);
    facts.writeUInt32LE(entry.claimedBytes ?? content.length, 18);
    facts.writeUInt16LE(name.length, 22);
    const file = Buffer.concat([Buffer.from("PK\x03\x04"), facts, name, packed]);
    const place = Buffer.alloc(14);
    place.writeUInt32LE(offset, 10);
    directory.push(Buffer.concat([Buffer.from("PK\x01\x02\x14\0"), facts, place, name]));
    files.push(file);
    offset += file.length;
  }
  const list = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", "latin1");
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(list.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...files, list, end]);
}
