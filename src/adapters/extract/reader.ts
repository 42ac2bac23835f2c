import { closeSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { isQuarryError, QuarryError } from "../../errors.ts";
import type { ExtractedPage, Inspection } from "../extract.ts";
import { type FlowFormat, readFlow } from "./flow.ts";
import { type Format, HEAD_BYTES, tellFormat } from "./formats.ts";
import { countImages, pictureOf } from "./images.ts";
import type { ReaderLimits } from "./limits.ts";
import { PdfReader } from "./pdf.ts";
import type { PdfEngine } from "./pdf-engine.ts";
import { pdfTitle, unpdfEngine } from "./pdf-unpdf.ts";
import { reasonOf } from "./reason.ts";
import { rememberByFile } from "./remember.ts";
import { sensibleTitle } from "./titles.ts";

/** What the process that reads files is told when it starts. */
export interface ReaderSetup extends ReaderLimits {
  readonly pdfEngine: PdfEngine["name"];
}

/** A file, and the engine to read it with when the usual one died of it. */
export interface ReaderFile {
  readonly path: string;
  readonly filename: string;
  readonly pdfEngine?: PdfEngine["name"];
}

const FLOW_DOCUMENTS_KEPT = 2;
/** Text takes several times its size while it is cut and converted. */
const FLOW_MB_MAX = 64;

export async function openReader(setup: ReaderSetup, load = loadLiteparse) {
  // Native, so there are machines without it.
  const liteparse = await load().catch(() => undefined);
  const pdfs = new Map<PdfEngine["name"], PdfReader>([
    ["liteparse", new PdfReader(liteparse ? [liteparse, unpdfEngine] : [unpdfEngine], setup)],
    ["unpdf", new PdfReader([unpdfEngine], setup)],
  ]);
  const pdfReader = (file: ReaderFile) => pdfs.get(file.pdfEngine ?? setup.pdfEngine)!;
  const flow = rememberByFile(FLOW_DOCUMENTS_KEPT, (path, format: FlowFormat) =>
    readFlow(readText(path), format),
  );

  return {
    inspect: (file: ReaderFile) =>
      explained(file, async (): Promise<Inspection> => {
        const format = formatOf(file, setup);
        if (format.kind === "pdf") return pdfReader(file).inspect(file.path);
        const { pageCount, title } =
          format.kind === "image"
            ? { pageCount: countImages(readFileSync(file.path), format.format, setup), title: undefined }
            : await flow(file.path, format).then(({ pages, title }) => ({ pageCount: pages.length, title }));
        if (pageCount > setup.pagesMax)
          throw new QuarryError(
            "file_too_large",
            `would make ${pageCount} pages; at most ${setup.pagesMax} are read. Split it, or raise QUARRY_PAGES_MAX`,
          );
        return { mediaType: format.mediaType, pageCount, title, furniture: [] };
      }),

    read: ({ file, pages, furniture }: { file: ReaderFile; pages: number[]; furniture: string[] }) =>
      explained(file, async (): Promise<ExtractedPage[]> => {
        const format = formatOf(file, setup);
        if (format.kind === "pdf") return pdfReader(file).read(file.path, { pages, furniture });
        if (format.kind === "image")
          return pages.map((pageNumber) => ({ pageNumber, markdown: "", needsOcr: true }));
        const document = await flow(file.path, format);
        return pages.map((pageNumber) => {
          const page = document.pages[pageNumber - 1];
          if (!page)
            throw new QuarryError(
              "invalid_input",
              `has ${document.pages.length} pages; there is no page ${pageNumber}`,
            );
          return { pageNumber, needsOcr: false, ...page };
        });
      }),

    picture: ({ file, pageNumber }: { file: ReaderFile; pageNumber: number }) =>
      explained(file, async () => {
        const format = formatOf(file, setup);
        if (format.kind === "pdf") return pdfReader(file).picture(file.path, pageNumber);
        if (format.kind === "image")
          return pictureOf(readFileSync(file.path), format.format, { pageNumber, limits: setup });
        throw new QuarryError("file_unsupported", "has no pages to draw: only PDFs and pictures have");
      }),

    pdfTitle: async (file: ReaderFile) => sensibleTitle(await pdfTitle(file.path)),
  };
}

async function loadLiteparse(): Promise<PdfEngine> {
  return (await import("./pdf-liteparse.ts")).liteparseEngine;
}

function formatOf(file: ReaderFile, limits: ReaderLimits): Format {
  const stats = statSync(file.path);
  const { size } = stats;
  if (!stats.isFile()) throw new QuarryError("file_unreadable", "cannot be read: it is not a regular file");
  if (size === 0) throw new QuarryError("file_unreadable", "is empty (0 bytes)");
  if (size > limits.fileMb * 2 ** 20)
    throw new QuarryError(
      "file_too_large",
      `has ${Math.ceil(size / 2 ** 20)} MB; at most ${limits.fileMb} MB are read. Split it, or raise QUARRY_FILE_MB_MAX`,
    );
  const head = headOf(file.path, Math.min(size, HEAD_BYTES));
  return tellFormat({ head, wholeZip: () => readFileSync(file.path) }, file.filename);
}

function headOf(path: string, bytes: number): Buffer {
  const head = Buffer.alloc(bytes);
  const file = openSync(path, "r");
  try {
    return head.subarray(0, readSync(file, head));
  } finally {
    closeSync(file);
  }
}

function readText(path: string): Buffer {
  const { size } = statSync(path);
  if (size > FLOW_MB_MAX * 2 ** 20)
    throw new QuarryError(
      "file_too_large",
      `has ${Math.ceil(size / 2 ** 20)} MB of text; at most ${FLOW_MB_MAX} MB are read. Split it`,
    );
  return readFileSync(path);
}

/** Whatever a library throws becomes a sentence about the file. */
async function explained<T>(file: ReaderFile, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isQuarryError(error)) throw error;
    throw new QuarryError("file_unreadable", plainReason(error, file), { cause: error });
  }
}

function plainReason(error: unknown, file: ReaderFile): string {
  if (error instanceof RangeError && /call stack/i.test(error.message))
    return "cannot be read: its contents are nested too deeply";
  switch ((error as NodeJS.ErrnoException).code) {
    case "ENOENT":
      return "cannot be read: it is not there any more";
    case "EACCES":
    case "EPERM":
      return "cannot be read: permission denied";
    default:
      return `cannot be read; it is probably damaged (${reasonOf(error).replaceAll(file.path, file.filename)})`;
  }
}
