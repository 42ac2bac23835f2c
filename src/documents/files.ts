import { createHash } from "node:crypto";
import { createReadStream, type Stats } from "node:fs";
import { type FileHandle, readFile, stat } from "node:fs/promises";
import { extname, posix } from "node:path";
import type { FileStore, StoredFile } from "../adapters/files.ts";
import { isQuarryError, messageOf, QuarryError } from "../errors.ts";
import { Gate } from "../gate.ts";
import { isMountAway, orAway } from "../mounts.ts";

export interface Original extends StoredFile {
  readonly sizeBytes: number;
}

export interface Fingerprint {
  readonly contentHash: string;
  readonly sizeBytes: number;
}

/** A file to take in: what is open is read, and the path only names it. */
export interface SourceFile {
  readonly path: string;
  readonly opened?: FileHandle;
}

/** With more, the first would be there hardly before the last, and whoever works on them would wait. */
const COPIES_AT_ONCE = 4;

/**
 * The files of documents, wherever they are kept. Names are made here and never taken from a user.
 *
 *   documents/<id>/original.pdf         what was handed in
 *   documents/<id>/page_0001_nohf.md    what was read from a page, and page_0001.png, what it looks like
 */
export class DocumentFiles {
  readonly #store: FileStore;
  readonly #verify: () => Promise<boolean>;
  readonly #copying = new Gate(COPIES_AT_ONCE);
  #verified: Promise<void> | undefined;

  /**
   * `verify` is asked before the first file whether these are the files of the database, and again until it says that
   * the answer stays so.
   */
  constructor(store: FileStore, options: { verify?: () => Promise<boolean> } = {}) {
    this.#store = store;
    this.#verify = options.verify ?? (async () => true);
  }

  get isRemote(): boolean {
    return this.#store.isRemote;
  }

  /** Rejects when the files are those of another database, or when their store is away. */
  verified(): Promise<void> {
    this.#verified ??= this.#verify().then(
      (staysSo) => {
        if (!staysSo) this.#verified = undefined;
      },
      (error) => {
        this.#verified = undefined;
        throw error;
      },
    );
    return this.#verified;
  }

  /** Copies a file in, so that it may change or go away while it is being worked on. */
  async addOriginal(
    documentId: string,
    source: SourceFile,
    options: { bytesMax: number },
  ): Promise<Original> {
    const path = posix.join(folderOf(documentId), `original${safeExtension(source.path)}`);
    return this.#copying.through(async () => {
      const reading = await openSource(source, options.bytesMax);
      await this.#ready();
      await this.#store.put(path, reading.bytes());
      return { path, ...reading.fingerprint() };
    });
  }

  /** What a file's bytes are, without taking them in. */
  async fingerprint(source: SourceFile, options: { bytesMax: number }): Promise<Fingerprint> {
    const reading = await openSource(source, options.bytesMax);
    for await (const _ of reading.bytes());
    return reading.fingerprint();
  }

  /** The original as a file of this machine, for as long as `use` takes. */
  async withOriginal<T>(original: StoredFile, use: (path: string) => Promise<T>): Promise<T> {
    await this.#ready();
    return this.#store.withLocal(original, use);
  }

  async writePage(page: PageName, markdown: string): Promise<string> {
    return this.#write(textPath(page), Buffer.from(markdown));
  }

  async writePicture(page: PageName, picture: Uint8Array): Promise<string> {
    // JPEG files begin with ff d8.
    return this.#write(pagePath(page, picture[0] === 0xff ? ".jpg" : ".png"), picture);
  }

  async readText(path: string): Promise<string> {
    const text = await this.#read(path);
    if (text !== undefined) return text;
    throw new QuarryError(
      "file_unreadable",
      `the page's text (${path}) is gone from ${this.#store.place}: redo its OCR`,
    );
  }

  /** Undefined when the page was not read yet. */
  async pageText(page: PageName): Promise<string | undefined> {
    return this.#read(textPath(page));
  }

  async remove(documentId: string): Promise<void> {
    await this.#ready();
    await this.#store.removeFolder(folderOf(documentId));
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  async #read(path: string): Promise<string | undefined> {
    await this.#ready();
    return (await this.#store.read(path))?.toString("utf8");
  }

  async #write(path: string, bytes: Uint8Array): Promise<string> {
    await this.#ready();
    await this.#store.put(path, bytes);
    return path;
  }

  /** Files of another database are as good as away: work waits until somebody has set them right. */
  async #ready(): Promise<void> {
    await this.verified().catch((error) => {
      if (!isQuarryError(error, "invalid_input")) throw error;
      throw new QuarryError("store_unavailable", error.message, { cause: error });
    });
  }
}

/** A page that another system wrote; undefined when it is not there any more. */
export function readForeign(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch(() => undefined);
}

/** A file's bytes as they are read, and what they were. */
interface Reading {
  bytes(): AsyncGenerator<Buffer>;
  /** After the last of them. */
  fingerprint(): Fingerprint;
}

async function openSource({ path, opened }: SourceFile, bytesMax: number): Promise<Reading> {
  const info = await (opened ? opened.stat() : regularFile(path));
  if (info.size > bytesMax) throw tooLarge(path, info.size, bytesMax);
  const hash = createHash("sha256");
  let sizeBytes = 0;
  return {
    async *bytes() {
      const stream = opened?.createReadStream({ start: 0, autoClose: false }) ?? createReadStream(path);
      try {
        for await (const chunk of stream as AsyncIterable<Buffer>) {
          sizeBytes += chunk.length;
          // It may grow while it is read.
          if (sizeBytes > bytesMax) throw tooLarge(path, sizeBytes, bytesMax);
          hash.update(chunk);
          yield chunk;
        }
      } catch (error) {
        throw orAway(error, path);
      }
    },
    fingerprint: () => ({ contentHash: hash.digest("hex"), sizeBytes }),
  };
}

async function regularFile(path: string): Promise<Stats> {
  const info = await stat(path).catch((cause) => {
    if (isMountAway(cause)) throw orAway(cause, path);
    const why = cause.code === "ENOENT" ? "no such file" : `it cannot be opened: ${messageOf(cause)}`;
    throw new QuarryError("not_found", `${path}: ${why}`, { cause });
  });
  if (!info.isFile()) throw new QuarryError("invalid_input", `${path} is not a file`);
  return info;
}

export interface PageName {
  readonly documentId: string;
  readonly pageNumber: number;
}

function textPath(page: PageName): string {
  return pagePath(page, "_nohf.md");
}

function pagePath({ documentId, pageNumber }: PageName, ending: string): string {
  return posix.join(folderOf(documentId), `page_${String(pageNumber).padStart(4, "0")}${ending}`);
}

function folderOf(id: string): string {
  if (/^[0-9a-f-]{36}$/i.test(id)) return posix.join("documents", id.toLowerCase());
  throw new QuarryError("invalid_input", `${JSON.stringify(id)} is not a document's id`);
}

/** Only a hint for people who look into the folder; what a file is, its bytes say. */
function safeExtension(path: string): string {
  const extension = extname(path).toLowerCase();
  return /^\.[a-z0-9]{1,10}$/.test(extension) ? extension : "";
}

function tooLarge(path: string, size: number, max: number): QuarryError {
  const mb = (bytes: number) => Math.ceil(bytes / 1_048_576);
  return new QuarryError(
    "file_too_large",
    `${path} has ${mb(size)} MB, more than the ${mb(max)} MB that are taken: raise QUARRY_FILE_MB_MAX or split it`,
  );
}
