import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, extname, join } from "node:path";
import { HANDBOOK, HANDBOOK_TITLE } from "../../scripts/samples/handbook.ts";
import { SURVEY, SURVEY_TITLE } from "../../scripts/samples/survey.ts";
import { makeDocx } from "../../test/support/make-docx.ts";
import { makePdf } from "../../test/support/make-pdf.ts";
import { typeset } from "../../test/support/typeset.ts";
import { pick, randomFrom } from "./random.ts";

const SAMPLES = join(import.meta.dirname, "../../samples");
/** The sample that has to go through OCR, which would hide everything else. */
export const SCAN = join(SAMPLES, "archive/flood-report-1952.pdf");
const WORDS_BETWEEN = 10;
const WORD = /\p{L}[\p{L}'’-]*/gu;
/** What is no text in a page: scripts, styles, tags and entities. */
const MARKUP = /(<(?:script|style)[\s\S]*?<\/(?:script|style)>|<[^>]*>|&\w+;)/;

/** The samples as they are, without the scan. */
export async function sampleFiles(): Promise<string[]> {
  const files = await readdir(SAMPLES, { recursive: true, withFileTypes: true });
  return files
    .filter((file) => file.isFile())
    .map((file) => join(file.parentPath, file.name))
    .filter((path) => path !== SCAN)
    .sort();
}

/** Writes a copy of the samples in which no stretch of ten words is that of another copy: no cache knows any of it. */
export async function writeVariant(folder: string, copy: number): Promise<string[]> {
  const paths: string[] = [];
  for (const sample of await sampleFiles()) {
    const path = join(folder, `copy-${copy}`, sample.slice(SAMPLES.length + 1));
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, await variantOf(sample, wordsOf(copy)));
    paths.push(path);
  }
  return paths;
}

/** Byte for byte the same, under names of their own. */
export async function writeCopy(folder: string, copy: number): Promise<string[]> {
  const paths: string[] = [];
  for (const sample of await sampleFiles()) {
    const path = join(folder, `copy-${copy}`, sample.slice(SAMPLES.length + 1));
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, await readFile(sample));
    paths.push(path);
  }
  return paths;
}

type Vary = (text: string) => string;

async function variantOf(sample: string, vary: Vary): Promise<string | Uint8Array> {
  switch (extname(sample)) {
    case ".pdf":
      return makePdf({ title: vary(SURVEY_TITLE), pages: inEveryText(SURVEY, vary).flatMap(surveyPart) });
    case ".docx":
      return makeDocx({ title: vary(HANDBOOK_TITLE), blocks: inEveryText(HANDBOOK, vary) });
    case ".html": {
      const parts = (await readFile(sample, "utf8")).split(MARKUP);
      return parts.map((part, position) => (position % 2 === 0 ? vary(part) : part)).join("");
    }
    default:
      return vary(await readFile(sample, "utf8"));
  }
}

function surveyPart({ columns, blocks }: (typeof SURVEY)[number]) {
  const header = () => "Northmoor Geological Survey    Report NGS 24/117";
  return typeset(blocks, { columns, header, footer: (page) => `Hollin Edge    Page ${page}` });
}

/** Puts a word of the text's own and the number of the copy behind every tenth word. */
function wordsOf(copy: number): Vary {
  const random = randomFrom(copy);
  let count = 0;
  return (text) => {
    const words = text.match(WORD) ?? [];
    return text.replaceAll(WORD, (word) =>
      ++count % WORDS_BETWEEN === 0 ? `${word} ${pick(words, random)} ${copy}` : word,
    );
  };
}

/** Structure stays; "page" and such, the words of the makers, are not text. */
function inEveryText<T>(value: T, vary: Vary, name = ""): T {
  if (typeof value === "string") return (name === "break" ? value : vary(value)) as T;
  if (Array.isArray(value)) return value.map((entry) => inEveryText(entry, vary, name)) as T;
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, entry]) => [key, inEveryText(entry, vary, key)]);
  return Object.fromEntries(entries) as T;
}
