import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { besides, Isolates } from "../isolate.ts";
import type { Ocr, Recognised } from "../ocr.ts";
import { findLanguageData, fingerprint } from "./language-data.ts";
import { LAYOUT_VERSION } from "./layout.ts";
import { checkPicture } from "./picture.ts";

export interface TesseractSettings {
  /** Tesseract's codes, the most frequent first; each needs its npm package or a file in `dataFolder`. */
  readonly languages: readonly string[];
  /** How many pictures are read at once. All cores but one when left out. */
  readonly threads?: number;
  /** For one picture, the start of the engine included. */
  readonly deadlineMs?: number;
  /** Where traineddata files lie, when they are not to come from npm packages. */
  readonly dataFolder?: string;
  readonly pixelsMax?: number;
}

const DEADLINE_MS = 120_000;
/** An A4 page at 600 dpi has 35 million and needs 850 MB, this many need 1,130 MB. */
const PIXELS_MAX = 50_000_000;
const MEMORY_MB = 1_500;

/** Reads pictures on this machine, without any network. */
export async function openTesseract(settings: TesseractSettings): Promise<Ocr> {
  const { dataFolder, deadlineMs = DEADLINE_MS, pixelsMax = PIXELS_MAX } = settings;
  const languages = findLanguageData(settings.languages, dataFolder);
  const engines = new Isolates({
    name: "the OCR engine",
    module: besides(import.meta.url, "tesseract-isolate"),
    size: settings.threads ?? Math.max(1, availableParallelism() - 1),
    deadlineMs,
    memoryMb: MEMORY_MB,
    setup: { languages },
  });
  return {
    version: versionOf(settings.languages, await fingerprint(languages)),
    async recognise(picture, signal) {
      checkPicture(picture, pixelsMax);
      return engines.call<Recognised>("recognise", picture, { signal });
    },
    async close() {
      engines.close();
    },
  };
}

function versionOf(languages: readonly string[], data: string): string {
  const engine = createRequire(import.meta.url)("tesseract.js-core/package.json") as { version: string };
  return `tesseract ${engine.version} ${languages.join("+")} ${data} layout ${LAYOUT_VERSION}`;
}
