/** A file as it was handed in; its bytes do not change while it is read. */
export interface SourceFile {
  readonly path: string;
  /** What the user called it; its extension helps to tell what it is. */
  readonly filename: string;
}

export interface Inspection {
  /** What the bytes are, whatever the extension says. */
  readonly mediaType: string;
  /** At least 1. Formats without pages are cut into parts of bounded size, at headings where possible. */
  readonly pageCount: number;
  readonly title: string | undefined;
  /** Headers and footers that repeat over pages, for `read` to leave out. Opaque to the caller, plain JSON. */
  readonly furniture: readonly string[];
}

export interface ExtractedPage {
  readonly pageNumber: number;
  /** Without headers and footers. Empty when the page has no usable text. */
  readonly markdown: string;
  /** The page shows something that only OCR can read. */
  readonly needsOcr: boolean;
  /** Formats without pages: headings still open from earlier parts, by level; the first is of level 1, empty where there is none. */
  readonly headings?: readonly string[];
}

/** Reads files. Each call stands alone: it may be made by another process than the one before. */
export interface Extractor {
  /** Changes whenever the same file may give other text. */
  readonly version: string;
  inspect(file: SourceFile, signal: AbortSignal): Promise<Inspection>;
  /**
   * Pages count from 1. One that is damaged is missing from the answer; asked for alone, it is refused with what is
   * wrong with it.
   */
  read(
    file: SourceFile,
    request: { readonly pages: readonly number[]; readonly furniture: readonly string[] },
    signal: AbortSignal,
  ): Promise<ExtractedPage[]>;
  /** A PNG or JPEG of one page, upright, fit for OCR and for the eye. */
  picture(file: SourceFile, pageNumber: number, signal: AbortSignal): Promise<Uint8Array>;
  close(): Promise<void>;
}
