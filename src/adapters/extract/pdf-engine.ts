/** What a PDF library has to do for us. Pages count from 1; lengths are points from the top left. */
export interface PdfEngine {
  readonly name: "liteparse" | "unpdf";
  /** Pages that cannot be read, or are not there, are missing from the answer. */
  parse(path: string, pageNumbers: readonly number[]): Promise<ParsedPdf>;
  /** A PNG of one page, at most this large. */
  draw(path: string, pageNumber: number, limits: { readonly pixelsMax: number }): Promise<Uint8Array>;
}

export interface ParsedPdf {
  readonly pageCount: number;
  readonly pages: readonly PdfPageText[];
}

export interface PdfPageText {
  readonly pageNumber: number;
  readonly height: number;
  /** In reading order, with headers and footers. */
  readonly markdown: string;
  /** Remarks and values of fields that somebody typed onto the page. */
  readonly typedOn: string;
  /** The same text as it stands on the page. */
  readonly segments: readonly Segment[];
  /** How much of the page is covered by pictures, 0 to 1. */
  readonly pictureShare: number;
  /** Something is painted, and none of it is text. */
  readonly isDrawing: boolean;
}

/** A stretch of text on one line, apart from what stands left and right of it. */
export interface Segment {
  readonly text: string;
  readonly top: number;
  readonly bottom: number;
  /** False where the engine cannot tell. */
  readonly isBold: boolean;
}

/** Fit for OCR and for the eye. */
export const PICTURE_DPI = 200;
