import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { QuarryError } from "../../errors.ts";

/** What the engine needs to read one language. */
export interface LanguageData {
  /** Tesseract's own codes: eng, deu, chi_sim. */
  readonly language: string;
  /** A traineddata file, packed with gzip or not. */
  readonly path: string;
}

const LANGUAGE = /^[A-Za-z][A-Za-z0-9_]{1,31}$/;
/** The integer variant of the best models: as exact as the float one on print, and several times faster. */
const MODEL_FOLDER = "4.0.0_best_int";

/** Looks into the folder, when one is given, and else for the npm package of the language. */
export function findLanguageData(
  languages: readonly string[],
  dataFolder: string | undefined,
): LanguageData[] {
  if (languages.length === 0)
    throw new QuarryError("invalid_input", "OCR needs at least one language, for instance eng");
  return languages.map((language) => {
    if (!LANGUAGE.test(language))
      throw new QuarryError("invalid_input", `"${language}" is not a language code such as eng or deu`);
    return { language, path: dataFolder ? findInFolder(language, dataFolder) : findPackaged(language) };
  });
}

function findInFolder(language: string, folder: string): string {
  const path = candidates(language, folder).find((candidate) => existsSync(candidate));
  if (path) return path;
  throw new QuarryError(
    "not_found",
    `OCR has no data for the language "${language}": put ${language}.traineddata or ${language}.traineddata.gz into ${folder}`,
  );
}

function findPackaged(language: string): string {
  const name = `@tesseract.js-data/${language}`;
  const path = candidates(language, join(packageFolder(name) ?? "", MODEL_FOLDER)).find((candidate) =>
    existsSync(candidate),
  );
  if (path) return path;
  throw new QuarryError(
    "invalid_input",
    `OCR has no data for the language "${language}" of QUARRY_OCR_LANGUAGES: run "npm install ${name}"`,
  );
}

/** Beside Quarry or in the project it is started in: a global installation finds the languages of both. */
function packageFolder(name: string): string | undefined {
  try {
    const paths = [import.meta.dirname, process.cwd()];
    return dirname(createRequire(import.meta.url).resolve(`${name}/package.json`, { paths }));
  } catch {
    return undefined;
  }
}

function candidates(language: string, folder: string): string[] {
  return [`${language}.traineddata.gz`, `${language}.traineddata`].map((file) => join(folder, file));
}

/** Other data may read the same picture differently, also under the same name. */
export async function fingerprint(data: readonly LanguageData[]): Promise<string> {
  const hash = createHash("sha256");
  for (const { path } of data) hash.update(await readFile(path));
  return hash.digest("hex").slice(0, 12);
}
