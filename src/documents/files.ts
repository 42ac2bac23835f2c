import { createHash, randomBytes } from "node:crypto";
import { constants, createReadStream, type Stats } from "node:fs";
import { type FileHandle, mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname, extname, join, resolve, sep } from "node:path";
import { pipeline } from "node:stream/promises";
import { messageOf, QuarryError } from "../errors.ts";

export interface Original {
  /** Below the data folder. */
  readonly path: string;
  readonly contentHash: string;
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

/**
 * The files of the data folder. Names are made here and never taken from a user; a file appears under its name when
 * it is whole and on the disk, so that a crash leaves at most a temporary one.
 *
 *   documents/<id>/original.pdf         what was handed in
 *   documents/<id>/page_0001_nohf.md    what was read from a page, and page_0001.png, what it looks like
 */
export class DataFolder {
  readonly root: string;

  constructor(root: string) {
    this.root = resolve(root);
  }

  absolute(path: string): string {
    const full = resolve(this.root, path);
    if (full === this.root || full.startsWith(this.root + sep)) return full;
    throw new QuarryError("invalid_input", `${JSON.stringify(path)} is not below the data folder`);
  }

  /** Copies a file in, so that it may change or go away while it is being worked on. */
  async addOriginal(
    documentId: string,
    source: SourceFile,
    options: { bytesMax: number },
  ): Promise<Original> {
    const path = join(folderOf(documentId), `original${safeExtension(source.path)}`);
    const temporary = await this.#temporary(dirname(path));
    try {
      const target = await open(temporary, "wx");
      let fingerprint: Fingerprint;
      try {
        fingerprint = await this.#read(source, options.bytesMax, async (bytes) => {
          await target.appendFile(bytes);
        });
        await target.sync();
      } finally {
        await target.close();
      }
      await this.#settle(temporary, path);
      return { path, ...fingerprint };
    } catch (error) {
      await this.remove(documentId);
      throw error;
    }
  }

  /** What a file's bytes are, without taking them in. */
  fingerprint(source: SourceFile, options: { bytesMax: number }): Promise<Fingerprint> {
    return this.#read(source, options.bytesMax, async () => undefined);
  }

  async writePage(page: PageName, markdown: string): Promise<string> {
    return this.#write(pagePath(page, "_nohf.md"), Buffer.from(markdown));
  }

  async writePicture(page: PageName, picture: Uint8Array): Promise<string> {
    // JPEG files begin with ff d8.
    return this.#write(pagePath(page, picture[0] === 0xff ? ".jpg" : ".png"), picture);
  }

  async readText(path: string): Promise<string> {
    try {
      return await readFile(this.absolute(path), "utf8");
    } catch (error) {
      throw new QuarryError(
        "file_unreadable",
        `the page's text is gone from the data folder (${messageOf(error)}): redo its OCR`,
        { cause: error },
      );
    }
  }

  /** Which database the folder belongs to. */
  async readId(): Promise<string | undefined> {
    const text = await readFile(this.absolute("folder-id"), "utf8").catch(() => undefined);
    return text?.trim() || undefined;
  }

  async writeId(id: string): Promise<void> {
    if ((await this.readId()) !== id) await this.#write("folder-id", Buffer.from(`${id}\n`));
  }

  /** A page that another system wrote; undefined when it is not there any more. */
  async readForeign(path: string): Promise<string | undefined> {
    return readFile(path, "utf8").catch(() => undefined);
  }

  async remove(documentId: string): Promise<void> {
    await rm(this.absolute(folderOf(documentId)), { recursive: true, force: true });
  }

  async #read(
    { path, opened }: SourceFile,
    bytesMax: number,
    take: (bytes: Buffer) => Promise<void>,
  ): Promise<Fingerprint> {
    const info = await (opened ? opened.stat() : this.#regularFile(path));
    if (info.size > bytesMax) throw tooLarge(path, info.size, bytesMax);
    const hash = createHash("sha256");
    let sizeBytes = 0;
    const stream = opened?.createReadStream({ start: 0, autoClose: false }) ?? createReadStream(path);
    await pipeline(stream, async (chunks: AsyncIterable<Buffer>) => {
      for await (const chunk of chunks) {
        sizeBytes += chunk.length;
        // It may grow while it is read.
        if (sizeBytes > bytesMax) throw tooLarge(path, sizeBytes, bytesMax);
        hash.update(chunk);
        await take(chunk);
      }
    });
    return { contentHash: hash.digest("hex"), sizeBytes };
  }

  async #regularFile(path: string): Promise<Stats> {
    const info = await stat(path).catch((cause) => {
      const why = cause.code === "ENOENT" ? "no such file" : `it cannot be opened: ${messageOf(cause)}`;
      throw new QuarryError("not_found", `${path}: ${why}`, { cause });
    });
    if (!info.isFile()) throw new QuarryError("invalid_input", `${path} is not a file`);
    return info;
  }

  async #write(path: string, bytes: Uint8Array): Promise<string> {
    const temporary = await this.#temporary(dirname(path));
    const file = await open(temporary, "wx");
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await this.#settle(temporary, path);
    return path;
  }

  async #temporary(folder: string): Promise<string> {
    const full = this.absolute(folder);
    await mkdir(full, { recursive: true, mode: PRIVATE });
    return join(full, `.${randomBytes(8).toString("hex")}.part`);
  }

  async #settle(temporary: string, path: string): Promise<void> {
    const full = this.absolute(path);
    await mkdir(dirname(full), { recursive: true, mode: PRIVATE });
    await rename(temporary, full);
    // The name is safe only when its folder is.
    const folder = await open(dirname(full), constants.O_RDONLY);
    await folder.sync().finally(() => folder.close());
  }
}

/** Copies of private files are nobody else's to read. */
const PRIVATE = 0o700;
/** The embedded index, beside the documents. */
export const INDEX_FILE = "index.db";

export interface PageName {
  readonly documentId: string;
  readonly pageNumber: number;
}

function pagePath({ documentId, pageNumber }: PageName, ending: string): string {
  return join(folderOf(documentId), `page_${String(pageNumber).padStart(4, "0")}${ending}`);
}

function folderOf(id: string): string {
  if (/^[0-9a-f-]{36}$/i.test(id)) return join("documents", id.toLowerCase());
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
