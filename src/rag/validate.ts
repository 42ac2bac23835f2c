import { HEAD_BYTES, isPdf } from "../adapters/extract/formats.ts";
import { looksLikeText } from "../adapters/extract/text.ts";
import { invalidCode, RagError } from "./errors.ts";
import type { OpenedSource } from "./folders.ts";
import type { SourceType } from "./message.ts";

/** An Office file from before 2007, and the wrapping of newer ones that have a password. */
const OLE = Buffer.from([0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1]);
const ENCRYPTED = Buffer.from("EncryptedPackage", "utf16le");
const ZIP = Buffer.from("PK\x03\x04", "latin1");

/** Whether a file can be what its message says. What is wrong deeper inside, the pipeline finds. */
export async function validate(
  { handle, stats, path }: OpenedSource,
  { type, bytesMax }: { type: SourceType; bytesMax: number },
): Promise<void> {
  if (stats.size === 0n) throw new RagError("ERR_FILE_EMPTY", `${path} is empty (0 bytes)`);
  if (stats.size > BigInt(bytesMax)) {
    const mb = (bytes: number) => Math.ceil(bytes / 1_048_576);
    throw new RagError(
      "ERR_FILE_TOO_LARGE",
      `${path} has ${mb(Number(stats.size))} MB, more than the ${mb(bytesMax)} MB that are taken`,
    );
  }
  const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(HEAD_BYTES), position: 0 });
  const why = whyNot(type, buffer.subarray(0, bytesRead));
  if (why !== undefined) throw why;
}

function whyNot(type: SourceType, head: Buffer): RagError | undefined {
  const starts = (signature: Buffer) => head.subarray(0, signature.length).equals(signature);
  switch (type) {
    case "pdf":
      return isPdf(head) ? undefined : invalid(type, "PDF header corrupted or invalid");
    case "docx":
      if (starts(ZIP)) return undefined;
      if (starts(OLE) && head.includes(ENCRYPTED))
        return new RagError("ERR_FILE_ENCRYPTED", "the document is protected by a password");
      return invalid(
        type,
        starts(OLE)
          ? "it is an Office file from before 2007; save it as DOCX"
          : "DOCX header corrupted or invalid",
      );
    case "txt":
    case "md":
      if (head.subarray(0, 5).toString("latin1") === "%PDF-") return invalid(type, "it is a PDF, not a text");
      return !starts(ZIP) && looksLikeText(head) ? undefined : invalid(type, "it is not a text");
    default:
      return type satisfies never;
  }
}

function invalid(type: SourceType, message: string): RagError {
  return new RagError(invalidCode(type), message);
}
