import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFile, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { openTesseract, type TesseractSettings } from "../../../src/adapters/ocr/tesseract.ts";
import { isQuarryError } from "../../../src/errors.ts";
import { toPng } from "../../support/png.ts";
import { drawPages, printedPage, turnUpsideDown, wear } from "../../support/scan.ts";
import { drawPictures, type OcrPictures, testOcr } from "./conformance.ts";

const ENGLISH = createRequire(import.meta.url).resolve(
  "@tesseract.js-data/eng/4.0.0_best_int/eng.traineddata.gz",
);
const MODULE = import.meta.resolve("../../../src/adapters/ocr/tesseract.ts");

testOcr("Tesseract", () => openTesseract({ languages: ["eng"], threads: 1 }));

describe("Tesseract", () => {
  let pictures: OcrPictures;
  let folder: string;
  before(async () => {
    pictures = await drawPictures();
    folder = await mkdtemp(join(tmpdir(), "quarry-ocr-"));
    for (const language of ["eng", "other"])
      await copyFile(ENGLISH, join(folder, `${language}.traineddata.gz`));
    await writeFile(join(folder, "broken.traineddata"), "not a model");
  });
  after(() => rm(folder, { recursive: true }));

  async function read(settings: TesseractSettings, picture: Buffer, signal: AbortSignal): Promise<string> {
    const ocr = await openTesseract({ threads: 1, ...settings });
    try {
      return (await ocr.recognise(picture, signal)).markdown;
    } finally {
      await ocr.close();
    }
  }

  it("reads with several languages from a folder", async (t) => {
    const markdown = await read(
      { languages: ["eng", "other"], dataFolder: folder },
      pictures.notice,
      t.signal,
    );
    assert.equal(markdown, "Deliveries are accepted on Tuesdays only.");
  });

  it("has another version for other languages, another order and other data", async () => {
    await copyFile(ENGLISH, join(folder, "changed.traineddata.gz"));
    const versionOf = async (...languages: string[]) => {
      const ocr = await openTesseract({ languages, dataFolder: folder });
      await ocr.close();
      return ocr.version;
    };
    const versions = [
      await versionOf("eng"),
      await versionOf("other"),
      await versionOf("eng", "other"),
      await versionOf("other", "eng"),
      await versionOf("changed"),
    ];
    await writeFile(join(folder, "changed.traineddata.gz"), "other data");
    versions.push(await versionOf("changed"));
    assert.equal(new Set(versions).size, versions.length);
    assert.equal(await versionOf("eng"), versions[0]);
  });

  it("says how to get a language that is not there", async () => {
    await assert.rejects(
      openTesseract({ languages: ["eng", "deu"] }),
      (error) =>
        isQuarryError(error, "invalid_input") && error.message.includes("npm install @tesseract.js-data/deu"),
    );
    await assert.rejects(
      openTesseract({ languages: ["deu"], dataFolder: folder }),
      (error) => isQuarryError(error, "not_found") && error.message.includes("deu.traineddata"),
    );
    for (const languages of [[], ["../eng"], [""]])
      await assert.rejects(openTesseract({ languages }), (error) => isQuarryError(error, "invalid_input"));
  });

  it("says which language data is broken", async (t) => {
    await assert.rejects(
      read({ languages: ["broken"], dataFolder: folder }, pictures.notice, t.signal),
      (error) => isQuarryError(error, "model_failed") && error.message.includes("broken.traineddata"),
    );
  });

  it("gives up a picture at its deadline", async (t) => {
    await assert.rejects(read({ languages: ["eng"], deadlineMs: 20 }, pictures.letter, t.signal), (error) =>
      isQuarryError(error, "timeout"),
    );
  });

  it("reads pages that lie askew or upside down", async (t) => {
    const words = ["The lighthouse keeper wrote down every ship that passed, for thirty-one years."];
    const [page] = await drawPages([printedPage(words, { font: "serif", size: 14 })], 150);
    const ocr = await openTesseract({ languages: ["eng"], threads: 1 });
    for (const picture of [wear(page!, { skewDegrees: 5 }), turnUpsideDown(page!)])
      assert.equal((await ocr.recognise(toPng(picture), t.signal)).markdown, words[0]);
    await ocr.close();
  });

  it("lets its process end, and leaves nothing in the working directory", async () => {
    const picture = join(folder, "notice.png");
    await writeFile(picture, pictures.notice);
    const cwd = await mkdtemp(join(tmpdir(), "quarry-ocr-cwd-"));
    const script = `
      import { readFileSync } from "node:fs";
      import { openTesseract } from ${JSON.stringify(MODULE)};
      const ocr = await openTesseract({ languages: ["eng"], threads: 1 });
      const read = await ocr.recognise(readFileSync(${JSON.stringify(picture)}), new AbortController().signal);
      console.log(read.markdown);`;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], {
      cwd,
    });
    assert.equal(stdout.trim(), "Deliveries are accepted on Tuesdays only.");
    assert.deepEqual(await readdir(cwd), []);
    await rm(cwd, { recursive: true });
  });
});
