import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { gunzipSync } from "node:zlib";
import { QuarryError } from "../../errors.ts";
import { serveIsolate } from "../isolate.ts";
import type { Recognised } from "../ocr.ts";
import type { LanguageData } from "./language-data.ts";
import { readLayout } from "./layout.ts";

/**
 * The engine behind tesseract.js, driven without its workers: those crash the process on a broken picture, never
 * answer when a language fails to load, and cannot take languages from several folders.
 */
interface Engine {
  readonly FS: { writeFile(path: string, data: Uint8Array): void };
  readonly TessBaseAPI: new () => Api;
}

interface Api {
  /** 0 when it worked. */
  Init(folder: null, languages: string, mode: number): number;
  SetVariable(name: string, value: string): boolean;
  /** Reads the picture from PICTURE_PATH. 0 when it worked. */
  SetImageFile(orientation: number, angleRadians: number): number;
  FindLines(): number;
  GetGradient(): number;
  Recognize(monitor: null): number;
  GetTSVText(pageNumber: number): string;
}

interface Print {
  readonly print: (line: string) => void;
  readonly printErr: (line: string) => void;
}

const PICTURE_PATH = "/input";
const NEURAL_ONLY = 1;
const FULLY_AUTOMATIC = "3";

/** As EXIF numbers them. */
const UPRIGHT = 1;
const UPSIDE_DOWN = 3;

/** Turning the picture costs time and sharpness, and below a third of a degree nothing is won. */
const SKEW_MIN_RADIANS = 0.005;
/** Print read the wrong way round stays below, bad print read the right way round above. */
const CONFIDENT = 0.55;

serveIsolate(async ({ languages }: { languages: readonly LanguageData[] }) => {
  const engine = await startEngine();
  const api = loadLanguages(engine, languages);
  return {
    recognise(picture: Uint8Array): Recognised {
      engine.FS.writeFile(PICTURE_PATH, picture);
      const upright = readPicture(api, UPRIGHT);
      if (upright.confidence >= CONFIDENT) return upright;
      const turned = readPicture(api, UPSIDE_DOWN);
      return turned.confidence > upright.confidence ? turned : upright;
    },
  };
});

/** The build with plain SIMD: the "relaxed" one is no faster here, and may give other results on other processors. */
function startEngine(): Promise<Engine> {
  const start = createRequire(import.meta.url)("tesseract.js-core/tesseract-core-simd-lstm.js") as (
    print: Print,
  ) => Promise<Engine>;
  return start({ print: () => undefined, printErr: () => undefined });
}

function loadLanguages(engine: Engine, languages: readonly LanguageData[]): Api {
  for (const { language, path } of languages)
    engine.FS.writeFile(`${language}.traineddata`, unpack(readFileSync(path)));
  const api = new engine.TessBaseAPI();
  const names = languages.map(({ language }) => language).join("+");
  if (api.Init(null, names, NEURAL_ONLY) !== 0)
    throw new QuarryError(
      "model_failed",
      `OCR cannot use the language data in ${languages.map(({ path }) => path).join(", ")}: install it again`,
    );
  api.SetVariable("tessedit_pageseg_mode", FULLY_AUTOMATIC);
  return api;
}

function unpack(data: Buffer): Buffer {
  const isPacked = data[0] === 0x1f && data[1] === 0x8b;
  return isPacked ? gunzipSync(data) : data;
}

/** The engine finds no lines, or only some, on a page that lies more than two degrees askew: it is straightened first. */
function readPicture(api: Api, orientation: number): Recognised {
  load(api, orientation, 0);
  api.FindLines();
  const skewRadians = api.GetGradient();
  if (Math.abs(skewRadians) >= SKEW_MIN_RADIANS) load(api, orientation, skewRadians);
  if (api.Recognize(null) !== 0)
    throw new QuarryError("file_unreadable", "OCR could not read the picture to its end");
  return readLayout(api.GetTSVText(0));
}

function load(api: Api, orientation: number, angleRadians: number): void {
  if (api.SetImageFile(orientation, angleRadians) !== 0)
    throw new QuarryError("file_unreadable", "the picture is damaged: it cannot be decoded");
}
