import { createHash, randomBytes } from "node:crypto";
import { mkdir, open, readdir, rm, stat } from "node:fs/promises";
import { extname, join } from "node:path";
import type { Clock } from "../../clock.ts";
import { messageOf, QuarryError } from "../../errors.ts";
import { isRunning, MACHINE } from "../../processes.ts";
import type { StoredFile } from "../files.ts";

/** Gives bytes, from the start again whenever the way there was cut. */
type Fetch = (take: (bytes: AsyncIterable<Uint8Array>) => Promise<number>) => Promise<number>;

interface Copy {
  readonly path: string;
  readonly made: Promise<number>;
  users: number;
  bytes: number;
}

const PRIVATE = 0o700;
/** A process of another machine or container that has not touched its folder for this long was killed. */
const LEFT_AFTER_MS = 24 * 3_600_000;

/**
 * Copies of files that are kept elsewhere, for readers that want a path: one for all who read it at a time, kept for
 * the next until the room is needed. Each process has a folder of its own below the given one, so that none takes away
 * what another reads; it goes with the process, or by `removeLeftCopies`.
 */
export class LocalCopies {
  readonly #folder: string;
  readonly #bytesMax: number;
  /** Those used last come last. */
  readonly #copies = new Map<string, Copy>();

  constructor(options: { folder: string; bytesMax: number }) {
    this.#folder = join(options.folder, `${MACHINE}-${process.pid}-${randomBytes(6).toString("hex")}`);
    this.#bytesMax = options.bytesMax;
  }

  async use<T>(file: StoredFile, fetch: Fetch, work: (path: string) => Promise<T>): Promise<T> {
    const copy = this.#copyOf(file, fetch);
    copy.users++;
    try {
      copy.bytes = await copy.made;
      if (await isThere(copy.path)) return await work(copy.path);
      this.#forget(copy);
    } finally {
      copy.users--;
      await this.#makeRoom();
    }
    return this.use(file, fetch, work);
  }

  async close(): Promise<void> {
    this.#copies.clear();
    await rm(this.#folder, { recursive: true, force: true });
  }

  #copyOf(file: StoredFile, fetch: Fetch): Copy {
    const name = `${file.contentHash} ${file.path}`;
    const known = this.#copies.get(name);
    const copy = known ?? this.#begin(file, fetch);
    this.#copies.delete(name);
    this.#copies.set(name, copy);
    if (!known) copy.made.catch(() => this.#forget(copy));
    return copy;
  }

  #forget(copy: Copy): void {
    for (const [name, other] of this.#copies) if (other === copy) this.#copies.delete(name);
  }

  #begin(file: StoredFile, fetch: Fetch): Copy {
    const path = join(this.#folder, `${randomBytes(8).toString("hex")}${extname(file.path)}`);
    // Each time, as another process may have taken this one for dead.
    const made = mkdir(this.#folder, { recursive: true, mode: PRIVATE }).then(() =>
      fetch((bytes) => written(path, bytes, file)),
    );
    made.catch(() => rm(path, { force: true }));
    return { path, made, users: 0, bytes: 0 };
  }

  /** Those that nobody uses, the longest unused first. */
  async #makeRoom(): Promise<void> {
    let total = 0;
    for (const { bytes } of this.#copies.values()) total += bytes;
    for (const [name, copy] of this.#copies) {
      if (total <= this.#bytesMax) return;
      if (copy.users > 0) continue;
      this.#copies.delete(name);
      total -= copy.bytes;
      await rm(copy.path, { force: true });
    }
  }
}

/** What killed processes left: those of this machine at once, those of others, which cannot be seen, after a day. */
export async function removeLeftCopies(parent: string, clock: Clock): Promise<void> {
  for (const name of await readdir(parent).catch(() => [])) {
    const folder = join(parent, name);
    if (await isLeft(folder, name, clock.now()))
      await rm(folder, { recursive: true, force: true }).catch(() => undefined);
  }
}

async function isLeft(folder: string, name: string, now: number): Promise<boolean> {
  const [machine, pid] = name.split("-");
  if (machine === MACHINE) return !isRunning(Number(pid));
  const info = await stat(folder).catch(() => undefined);
  return info !== undefined && info.mtimeMs < now - LEFT_AFTER_MS;
}

async function written(
  path: string,
  content: AsyncIterable<Uint8Array>,
  { contentHash, path: name }: StoredFile,
) {
  const file = await open(path, "w").catch((error) => Promise.reject(unwritable(error)));
  const hash = createHash("sha256");
  let size = 0;
  try {
    for await (const bytes of content) {
      hash.update(bytes);
      size += bytes.length;
      await file.appendFile(bytes).catch((error) => Promise.reject(unwritable(error)));
    }
  } finally {
    await file.close();
  }
  if (hash.digest("hex") === contentHash) return size;
  throw new QuarryError(
    "store_failed",
    `${name} is not what was put there: somebody changed it in the files' store`,
  );
}

function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

function unwritable(error: NodeJS.ErrnoException): QuarryError {
  const isFull = error.code === "ENOSPC" || error.code === "EDQUOT";
  const said = `a copy cannot be written below QUARRY_DATA: ${messageOf(error)}`;
  return new QuarryError(isFull ? "disk_full" : "internal", isFull ? `${said}; make room` : said, {
    cause: error,
  });
}
