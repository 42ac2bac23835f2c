import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, readFile, rename, rm, rmdir, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { isMountAway, orAway } from "../../mounts.ts";
import { checkedPath, type FileStore } from "../files.ts";

/** Copies of private files are nobody else's to read. */
const PRIVATE = 0o700;

/** Files in a folder of this machine, or of one that several machines share. */
export function openFolderFiles(root: string): FileStore {
  return new FolderFiles(root);
}

/** A file is written under a temporary name and gets its own when it is on the disk, so that a crash leaves no half. */
class FolderFiles implements FileStore {
  readonly place: string;
  readonly isRemote = false;

  constructor(root: string) {
    this.place = resolve(root);
  }

  async put(path: string, content: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
    await this.#reached(this.#put(this.#full(path), content));
  }

  async #put(full: string, content: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
    const folder = dirname(full);
    const temporary = join(folder, `.${randomBytes(8).toString("hex")}.part`);
    await mkdir(folder, { recursive: true, mode: PRIVATE });
    try {
      await write(temporary, content);
      await rename(temporary, full);
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => undefined);
      // Made for this file, if it was to be the first in there.
      await rmdir(folder).catch(() => undefined);
      throw error;
    }
    // The name is safe only when its folder is.
    const handle = await open(folder, constants.O_RDONLY);
    await handle.sync().finally(() => handle.close());
  }

  async read(path: string): Promise<Buffer | undefined> {
    return this.#reached(readFile(this.#full(path))).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return undefined;
      throw error;
    });
  }

  async has(path: string): Promise<boolean> {
    return this.#reached(stat(this.#full(path))).then(
      (info) => info.isFile(),
      (error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT" || error.code === "ENOTDIR") return false;
        throw error;
      },
    );
  }

  /** Readers say in words of their own what they met, so it is looked at once more here. */
  async withLocal<T>({ path }: { path: string }, use: (path: string) => Promise<T>): Promise<T> {
    const full = this.#full(path);
    return use(full).catch(async (error) => {
      throw (await whyAway(full)) ?? error;
    });
  }

  async removeFolder(path: string): Promise<void> {
    await this.#reached(rm(this.#full(path), { recursive: true, force: true }));
  }

  async close(): Promise<void> {}

  #reached<T>(work: Promise<T>): Promise<T> {
    return work.catch((error) => {
      throw orAway(error, this.place);
    });
  }

  #full(path: string): string {
    return join(this.place, checkedPath(path));
  }
}

async function whyAway(path: string): Promise<unknown> {
  try {
    const file = await open(path, constants.O_RDONLY);
    await file.read(Buffer.alloc(1), 0, 1, 0).finally(() => file.close());
    return undefined;
  } catch (error) {
    return isMountAway(error) ? orAway(error, path) : undefined;
  }
}

async function write(path: string, content: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
  const file = await open(path, "wx");
  try {
    if (content instanceof Uint8Array) await file.writeFile(content);
    else for await (const bytes of content) await file.appendFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
}
