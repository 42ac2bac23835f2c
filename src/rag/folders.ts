import type { BigIntStats } from "node:fs";
import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readlink, realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, normalize, relative, sep } from "node:path";
import { RagError } from "./errors.ts";
import type { Rag } from "./settings.ts";

/** A file of a RAG that was looked at while it was open: it is the one that its path names. */
export interface OpenedSource {
  readonly handle: FileHandle;
  /** Without links. */
  readonly path: string;
  /** What it is called within its RAG, wherever it lies: the same in incoming, processed and failed. */
  readonly name: string;
  readonly stats: BigIntStats;
}

/** Opening a pipe for reading would wait for somebody who writes. */
const READ = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/**
 * Opens a file that a message names. Only a regular file inside the RAG's folders, reached without links; what is
 * swapped for a link meanwhile is noticed, for it is the open file that is looked at.
 */
export async function openSource(rag: Rag, path: string): Promise<OpenedSource> {
  const { expected, name } = await placeOf(rag, path);
  const handle = await open(expected, READ).catch((error) => {
    throw whyNotOpened(error, path);
  });
  try {
    const stats = await handle.stat({ bigint: true });
    if (!stats.isFile()) throw refused(path, "it is not a regular file");
    if (!(await isOpenedFrom(expected, handle, stats)))
      throw refused(path, "it is reached through a link, or was moved while it was opened");
    return { handle, path: expected, name, stats };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Where the system tells which path an open file has, that counts: paths that are looked up later may be others by then. */
async function isOpenedFrom(path: string, handle: FileHandle, stats: BigIntStats): Promise<boolean> {
  const opened = await readlink(`/proc/self/fd/${handle.fd}`).catch(() => undefined);
  if (opened !== undefined) return opened === path;
  if ((await realpath(path).catch(() => undefined)) !== path) return false;
  const there = await lstat(path, { bigint: true }).catch(() => undefined);
  return there !== undefined && isSameFile(there, stats);
}

export function isSameFile(one: BigIntStats, other: BigIntStats): boolean {
  return one.dev === other.dev && one.ino === other.ino;
}

/** Where the path must lead to, and what the file is called within the RAG. */
async function placeOf(rag: Rag, path: string): Promise<{ expected: string; name: string }> {
  if (!isAbsolute(path) || path.includes("\0")) throw refused(path, "it is not an absolute path");
  const { sources, incoming, processed, failed } = rag.folders;
  for (const root of [incoming, processed, failed, sources]) {
    const real = await realpath(root).catch(() => undefined);
    for (const start of [root, ...(real === undefined ? [] : [real])]) {
      const name = relative(start, normalize(path));
      if (name === "" || name === ".." || name.startsWith(`..${sep}`) || isAbsolute(name)) continue;
      return { expected: join(await ownFolder(rag, root), name), name };
    }
  }
  throw refused(path, `it is not inside ${sources}, the folder of ${rag.id}`);
}

/**
 * The real path of one of the RAG's folders. The settings may name a link, but below the folder of the RAG, where others
 * write, none is followed.
 */
async function ownFolder({ folders }: Rag, root: string): Promise<string> {
  const isBelow = dirname(root) === folders.sources;
  const real = await realpath(isBelow ? folders.sources : root).catch((error) => {
    throw whyNotOpened(error, root);
  });
  return isBelow ? join(real, basename(root)) : real;
}

/** A folder that files are moved into, made if it is missing. */
export async function targetFolder(rag: Rag, which: "incoming" | "processed" | "failed"): Promise<string> {
  const folder = rag.folders[which];
  await mkdir(folder, { recursive: true });
  const real = await ownFolder(rag, folder);
  if ((await realpath(folder)) !== real)
    throw refused(folder, "it is a link, which may lead anywhere; make it a folder");
  return real;
}

function whyNotOpened(error: NodeJS.ErrnoException, path: string): RagError {
  switch (error.code) {
    case "ENOENT":
    case "ENOTDIR":
      return new RagError("ERR_FILE_NOT_FOUND", `${path}: no such file`, { cause: error });
    case "ELOOP":
    case "EMLINK":
      return refused(path, "it is a link");
    case "EACCES":
    case "EPERM":
      return new RagError("ERR_FILE_UNREADABLE", `${path} may not be read: its permissions do not allow it`, {
        cause: error,
      });
    default:
      return new RagError("ERR_FILE_UNREADABLE", `${path} cannot be opened: ${error.message}`, {
        cause: error,
      });
  }
}

function refused(path: string, why: string): RagError {
  return new RagError("ERR_PATH_NOT_ALLOWED", `${JSON.stringify(path)} is not taken: ${why}`);
}
