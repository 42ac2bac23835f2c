import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ExtractedPage, Extractor, Inspection, SourceFile } from "../../../src/adapters/extract.ts";

export const signal = new AbortController().signal;

/** A folder of files under names that tell nothing, as an application keeps them. */
export class Files {
  readonly #folder = mkdtemp(join(tmpdir(), "quarry-extract-"));
  #count = 0;

  async put(filename: string, content: Uint8Array | string): Promise<SourceFile> {
    const path = join(await this.#folder, `upload-${++this.#count}`);
    await writeFile(path, content);
    return { path, filename };
  }

  async remove(): Promise<void> {
    await rm(await this.#folder, { recursive: true });
  }
}

export interface Extracted {
  readonly inspection: Inspection;
  readonly pages: readonly ExtractedPage[];
  /** Of all pages. */
  readonly text: string;
}

const WINDOW_PAGES = 16;

/** Reads a whole file as the pipeline does: by windows. */
export async function extract(extractor: Extractor, file: SourceFile): Promise<Extracted> {
  const inspection = await extractor.inspect(file, signal);
  const pages: ExtractedPage[] = [];
  for (let first = 1; first <= inspection.pageCount; first += WINDOW_PAGES) {
    const count = Math.min(WINDOW_PAGES, inspection.pageCount - first + 1);
    const window = Array.from({ length: count }, (_, position) => first + position);
    pages.push(...(await extractor.read(file, { pages: window, furniture: inspection.furniture }, signal)));
  }
  return { inspection, pages, text: pages.map(({ markdown }) => markdown).join("\n\n") };
}
