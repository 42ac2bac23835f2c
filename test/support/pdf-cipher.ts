import { createHash } from "node:crypto";

/** The oldest encryption of PDF (RC4, 40 bits): every reader knows it, and it fits on a page. */
export interface PdfCipher {
  /** What the trailer of the file has to say. */
  readonly trailer: string;
  encrypt(objectId: number, content: Uint8Array): Buffer;
}

const PADDING = Buffer.from("28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a", "hex");
const PERMISSIONS = -4;
const KEY_BYTES = 5;

export function pdfCipher(password: string): PdfCipher {
  const fileId = Buffer.alloc(16, 7);
  const padded = Buffer.concat([Buffer.from(password, "latin1"), PADDING]).subarray(0, 32);
  const owner = rc4(md5(padded).subarray(0, KEY_BYTES), padded);
  const permissions = Buffer.alloc(4);
  permissions.writeInt32LE(PERMISSIONS);
  const key = md5(Buffer.concat([padded, owner, permissions, fileId])).subarray(0, KEY_BYTES);
  const user = rc4(key, PADDING);
  const id = fileId.toString("hex");
  return {
    trailer:
      `/ID [<${id}> <${id}>] /Encrypt << /Filter /Standard /V 1 /R 2 /P ${PERMISSIONS} ` +
      `/O <${owner.toString("hex")}> /U <${user.toString("hex")}> >>`,
    encrypt: (objectId, content) => {
      const object = Buffer.from([objectId & 255, (objectId >> 8) & 255, (objectId >> 16) & 255, 0, 0]);
      return rc4(md5(Buffer.concat([key, object])).subarray(0, KEY_BYTES + 5), content);
    },
  };
}

function md5(bytes: Uint8Array): Buffer {
  return createHash("md5").update(bytes).digest();
}

function rc4(key: Uint8Array, content: Uint8Array): Buffer {
  const state = Uint8Array.from({ length: 256 }, (_, position) => position);
  const swap = (a: number, b: number) => {
    const kept = state[a]!;
    state[a] = state[b]!;
    state[b] = kept;
  };
  for (let i = 0, j = 0; i < 256; i++) {
    j = (j + state[i]! + key[i % key.length]!) & 255;
    swap(i, j);
  }
  let i = 0;
  let j = 0;
  return Buffer.from(content).map((byte) => {
    i = (i + 1) & 255;
    j = (j + state[i]!) & 255;
    swap(i, j);
    return byte ^ state[(state[i]! + state[j]!) & 255]!;
  }) as Buffer;
}
