import { randomBytes } from "node:crypto";
import { QuarryError } from "../errors.ts";

/** A file that must be the one that was put there. */
export interface StoredFile {
  readonly path: string;
  /** SHA-256 of its bytes, in hexadecimal. */
  readonly contentHash: string;
}

/**
 * Keeps originals, texts and pictures of pages, under paths such as documents/<id>/page_0001.png. A file appears under
 * its path with all its bytes or not at all, replaces the one before, and is safe when `put` comes back. Every write
 * may be repeated. A store that is away says `store_unavailable`.
 */
export interface FileStore {
  /** Where that is, for people. */
  readonly place: string;
  /** Not on this machine: what is forgotten there is seen by nobody, and paid for. */
  readonly isRemote: boolean;
  put(path: string, content: Uint8Array | AsyncIterable<Uint8Array>): Promise<void>;
  /** Undefined when there is no such file. */
  read(path: string): Promise<Buffer | undefined>;
  has(path: string): Promise<boolean>;
  /** As a file of this machine, which stays there for as long as `use` takes. */
  withLocal<T>(file: StoredFile, use: (path: string) => Promise<T>): Promise<T>;
  /** Everything below a folder. */
  removeFolder(path: string): Promise<void>;
  /** Ends what is under way. */
  close(): Promise<void>;
}

const PATH_CHARS_MAX = 500;

/** Names are made by the program: what looks otherwise comes from somewhere else and may lead anywhere. */
export function checkedPath(path: string): string {
  if (path.length <= PATH_CHARS_MAX && /^\w[\w.-]*(\/\w[\w.-]*)*$/.test(path)) return path;
  throw new QuarryError(
    "invalid_input",
    `${JSON.stringify(path)} is not the path of a file that was kept here`,
  );
}

/** Writes a small file, reads it and takes it away again. */
export async function checkFiles(files: FileStore): Promise<void> {
  const folder = `probe-${randomBytes(8).toString("hex")}`;
  const path = `${folder}/file`;
  try {
    await files.put(path, Buffer.from(path));
    const found = await files.read(path);
    if (found?.toString() !== path)
      throw new QuarryError("store_failed", `${files.place} gives back other bytes than were written`);
  } finally {
    await files.removeFolder(folder);
  }
}
