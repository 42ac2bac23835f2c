import { randomBytes } from "node:crypto";
import { constants, createReadStream } from "node:fs";
import { link, open, rm, stat } from "node:fs/promises";
import { basename, extname, join, resolve } from "node:path";
import { RagError } from "./errors.ts";
import { freeName } from "./filenames.ts";
import { openSource, targetFolder } from "./folders.ts";
import { SOURCE_TYPES, type SourceType } from "./message.ts";
import { syncFolder } from "./moves.ts";
import type { Rag } from "./settings.ts";

export interface TakenFile {
  readonly path: string;
  readonly filename: string;
  /** Whether it was copied, and is ours to remove if nothing comes of it. */
  readonly isCopied: boolean;
}

/** A file in the RAG's folder is taken as it is; any other is copied into incoming first. */
export async function takeFile(rag: Rag, given: string): Promise<TakenFile> {
  const path = resolve(given);
  try {
    const source = await openSource(rag, path);
    await source.handle.close();
    return { path: source.path, filename: basename(path), isCopied: false };
  } catch (error) {
    const isElsewhere = error instanceof RagError && error.errorCode === "ERR_PATH_NOT_ALLOWED";
    if (!isElsewhere || isBelow(rag.folders.sources, path)) throw error;
  }
  return { path: await copyIn(rag, path), filename: basename(path), isCopied: true };
}

/** By the file's extension. */
export function sourceTypeOf(filename: string): SourceType {
  const extension = extname(filename).slice(1).toLowerCase();
  const type = SOURCE_TYPES.find((known) => known === (extension === "markdown" ? "md" : extension));
  if (type) return type;
  throw new RagError(
    "ERR_UNSUPPORTED_TYPE",
    `${filename} is not one of ${SOURCE_TYPES.join(", ")}; say what it is with --type`,
  );
}

/** It appears in incoming when it is whole and on the disk. */
async function copyIn(rag: Rag, path: string): Promise<string> {
  const info = await stat(path).catch((cause: NodeJS.ErrnoException) => {
    const isMissing = cause.code === "ENOENT" || cause.code === "ENOTDIR";
    throw isMissing
      ? new RagError("ERR_FILE_NOT_FOUND", `${path}: no such file`, { cause })
      : new RagError("ERR_FILE_UNREADABLE", `${path} cannot be opened: ${cause.message}`, { cause });
  });
  if (!info.isFile()) throw new RagError("ERR_PATH_NOT_ALLOWED", `${path} is not a file`);
  const folder = await targetFolder(rag, "incoming");
  const temporary = join(folder, `.${randomBytes(8).toString("hex")}.part`);
  try {
    const target = await open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
    try {
      for await (const bytes of createReadStream(path)) await target.appendFile(bytes);
      await target.sync();
    } finally {
      await target.close();
    }
    return await named(temporary, folder, basename(path));
  } finally {
    await rm(temporary, { force: true });
  }
}

async function named(temporary: string, folder: string, wanted: string): Promise<string> {
  for (;;) {
    const path = join(folder, await freeName(folder, wanted));
    try {
      await link(temporary, path);
      await syncFolder(folder);
      return path;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
}

function isBelow(folder: string, path: string): boolean {
  return path.startsWith(folder.endsWith("/") ? folder : `${folder}/`);
}
