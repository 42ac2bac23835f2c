import { copyFile, mkdtemp, open, rm, stat, symlink } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { isQuarryError, QuarryError } from "../../errors.ts";
import type { ExtractedPage, Extractor, Inspection, SourceFile } from "../extract.ts";
import { besides, Isolates } from "../isolate.ts";
import { isPdf } from "./formats.ts";
import { extensionOf } from "./languages.ts";
import { DEFAULT_LIMITS, type ReaderLimits } from "./limits.ts";
import type { ReaderFile, ReaderSetup } from "./reader.ts";

export interface ExtractorSettings extends Partial<ReaderLimits> {
  /** How many files are read at once, each in a process of its own. */
  readonly processes?: number;
  /** For one call: to inspect a file, to read some of its pages or to draw one. */
  readonly deadlineMs?: number;
  /** Of one process, native memory included. */
  readonly memoryMb?: number;
  /** Unpdf is the fallback of liteparse; alone it reads plainer text and draws nothing but scans. */
  readonly pdfEngine?: "liteparse" | "unpdf";
}

/** Raised whenever the same file may give other text: by a change here, or by a new version of these libraries. */
const VERSIONS = { quarry: 3, liteparse: 2.14, unpdf: 1.7, mammoth: 1.13, turndown: 7.2 };

const TITLE_DEADLINE_MS = 10_000;
const PROCESSES_MAX = 4;

/** Reads PDF, DOCX, HTML, Markdown, text, code and pictures on this machine, in processes that a bad file may kill. */
export function openExtractor(settings: ExtractorSettings = {}): Extractor {
  const { processes, deadlineMs, memoryMb, pdfEngine, ...limits } = {
    processes: Math.min(PROCESSES_MAX, availableParallelism()),
    deadlineMs: 120_000,
    memoryMb: 1024,
    pdfEngine: "liteparse" as const,
    ...DEFAULT_LIMITS,
    ...settings,
  };
  const isolates = new Isolates({
    name: "the file reader",
    module: besides(import.meta.url, "reader-process"),
    size: processes,
    deadlineMs,
    memoryMb,
    setup: { ...limits, pdfEngine } satisfies ReaderSetup,
  });

  /** A file that the native engine dies of may still be read by the other one. */
  async function call<T>(file: SourceFile, work: (given: ReaderFile) => Promise<T>): Promise<T> {
    return named(file, () =>
      withReaderFile(file, async (given, isPdfFile) => {
        try {
          return await work(given);
        } catch (error) {
          if (!isPdfFile || !isQuarryError(error, "isolate_died")) throw error;
          return work({ ...given, pdfEngine: "unpdf" });
        }
      }),
    );
  }

  return {
    version: `local ${Object.entries({ ...VERSIONS, pdf: pdfEngine })
      .map(([name, version]) => `${name}-${version}`)
      .join(" ")}`,

    inspect: (file, signal) =>
      call(file, async (given) => {
        const inspection = await isolates.call<Inspection>("inspect", given, { signal });
        if (inspection.mediaType !== "application/pdf") return inspection;
        // Asked for apart: a document whose title is broken is read without one.
        const options = { signal, deadlineMs: Math.min(TITLE_DEADLINE_MS, deadlineMs) };
        const title = await isolates.call<string | undefined>("pdfTitle", given, options).catch((error) => {
          if (signal.aborted) throw error;
          return undefined;
        });
        return title === undefined ? inspection : { ...inspection, title };
      }),

    read: (file, { pages, furniture }, signal) =>
      call(file, (given) =>
        isolates.call<ExtractedPage[]>("read", { file: given, pages, furniture }, { signal }),
      ),

    picture: (file, pageNumber, signal) =>
      call(file, (given) => isolates.call<Uint8Array>("picture", { file: given, pageNumber }, { signal })),

    close: async () => isolates.close(),
  };
}

/** The PDF engine wants a path that ends in `.pdf`; a file that is called otherwise gets a link that does. */
async function withReaderFile<T>(
  { path, filename }: SourceFile,
  work: (given: ReaderFile, isPdfFile: boolean) => Promise<T>,
): Promise<T> {
  const isPdfFile = isPdf(await headOf(path)) || extensionOf(filename) === "pdf";
  if (!isPdfFile || path.toLowerCase().endsWith(".pdf")) return work({ path, filename }, isPdfFile);
  const folder = await mkdtemp(join(tmpdir(), `quarry-pdf-${process.pid}-`));
  try {
    const link = join(folder, "document.pdf");
    // Not every system lets everybody make links.
    await symlink(resolve(path), link).catch(() => copyFile(path, link));
    return await work({ path: link, filename }, isPdfFile);
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function headOf(path: string): Promise<Buffer> {
  // A pipe would never answer; what cannot be opened is explained by the reader.
  const isFile = await stat(path).then(
    (stats) => stats.isFile(),
    () => false,
  );
  const file = isFile ? await open(path).catch(() => undefined) : undefined;
  try {
    const { buffer, bytesRead } = (await file?.read({ buffer: Buffer.alloc(1024) })) ?? {};
    return buffer?.subarray(0, bytesRead) ?? Buffer.alloc(0);
  } finally {
    await file?.close();
  }
}

const ADVICE: Readonly<Record<string, string>> = {
  isolate_died: "The file is probably damaged: open it, save it anew and hand it in again.",
  timeout: "Split the file, or raise the time limit.",
  resource_exhausted: "Split the file, or raise the memory limit.",
};

/** Errors speak of the file by the name that its owner gave it. */
async function named<T>(file: SourceFile, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isQuarryError(error) || error.code === "shutting_down") throw error;
    const advice = ADVICE[error.code];
    const words = advice ? `: ${error.message}. ${advice}` : ` ${error.message}`;
    throw new QuarryError(error.code, `${file.filename}${words}`, { cause: error });
  }
}
