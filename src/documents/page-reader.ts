import type { ExtractedPage, Extractor, SourceFile } from "../adapters/extract.ts";
import { QuarryError } from "../errors.ts";
import type { DocumentFacts } from "./facts.ts";
import type { DocumentFiles } from "./files.ts";

/** Opening a file costs as much as reading some pages of it, so pages are read a window at a time. */
const WINDOW_PAGES = 16;
const WINDOWS_KEPT = 8;

/** Gives pages one by one while reading them in windows, and keeps a page that cannot be read from spoiling its window. */
export class PageReader {
  readonly #extractor: Extractor;
  readonly #files: DocumentFiles;
  readonly #windows = new Map<string, Promise<Map<number, ExtractedPage>>>();

  constructor(parts: { extractor: Extractor; files: DocumentFiles }) {
    this.#extractor = parts.extractor;
    this.#files = parts.files;
  }

  async page(document: DocumentFacts, pageNumber: number, signal: AbortSignal): Promise<ExtractedPage> {
    const inWindow = await this.#window(document, pageNumber).catch(() => undefined);
    const page = inWindow?.get(pageNumber) ?? (await this.#alone(document, pageNumber, signal));
    if (page) return page;
    throw new QuarryError("file_unreadable", `${document.filename} has no page ${pageNumber}`);
  }

  picture(document: DocumentFacts, pageNumber: number, signal: AbortSignal): Promise<Uint8Array> {
    return this.#withFile(document, (file) => this.#extractor.picture(file, pageNumber, signal));
  }

  async #alone(document: DocumentFacts, pageNumber: number, signal: AbortSignal) {
    const request = { pages: [pageNumber], furniture: document.furniture };
    const pages = await this.#withFile(document, (file) => this.#extractor.read(file, request, signal));
    return pages.find((page) => page.pageNumber === pageNumber);
  }

  /** Shared by the tasks of its pages, so no single one of them may abort it. */
  #window(document: DocumentFacts, pageNumber: number): Promise<Map<number, ExtractedPage>> {
    const first = Math.floor((pageNumber - 1) / WINDOW_PAGES) * WINDOW_PAGES + 1;
    const name = `${document.id} ${first}`;
    const known = this.#windows.get(name);
    if (known) return known;
    const last = Math.min(first + WINDOW_PAGES - 1, document.totalPages ?? pageNumber);
    const pages = Array.from({ length: last - first + 1 }, (_, index) => first + index);
    const request = { pages, furniture: document.furniture };
    const window = this.#withFile(document, (file) =>
      this.#extractor.read(file, request, new AbortController().signal),
    ).then((found) => new Map(found.map((page) => [page.pageNumber, page])));
    this.#windows.set(name, window);
    if (this.#windows.size > WINDOWS_KEPT) this.#windows.delete(this.#windows.keys().next().value!);
    return window;
  }

  async #withFile<T>(
    { originalPath, contentHash, filename }: DocumentFacts,
    read: (file: SourceFile) => Promise<T>,
  ): Promise<T> {
    if (originalPath === undefined)
      throw new QuarryError("file_unreadable", `the original of ${filename} is not known`);
    return this.#files.withOriginal({ path: originalPath, contentHash }, (path) => read({ path, filename }));
  }
}
