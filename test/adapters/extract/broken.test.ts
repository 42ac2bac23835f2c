import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import sharp from "sharp";
import { openExtractor } from "../../../src/adapters/extract/local.ts";
import type { Extractor, SourceFile } from "../../../src/adapters/extract.ts";
import { isQuarryError, type QuarryError } from "../../../src/errors.ts";
import { makeDocx } from "../../support/make-docx.ts";
import { makePdf, scan, text } from "../../support/make-pdf.ts";
import { MUTATION_NAMES, mutate } from "../../support/mutate.ts";
import { typeset } from "../../support/typeset.ts";
import { Files, signal } from "./files.ts";
import { type HostileFile, hostileFiles } from "./hostile.ts";

const PAGES_READ = 4;
const AT_ONCE = 2;
const GOOD_EVERY = 12;
/** What a file may do to a call. Anything else would be our own mistake. */
const EXPECTED_CODES: readonly QuarryError["code"][] = [
  "file_unreadable",
  "file_unsupported",
  "file_too_large",
  "file_encrypted",
  "timeout",
  "resource_exhausted",
  "isolate_died",
];

describe("broken and hostile files", { timeout: 120_000 }, () => {
  const files = new Files();
  let extractor: Extractor;
  before(() => {
    extractor = openExtractor({ processes: AT_ONCE, deadlineMs: 8000, memoryMb: 700 });
  });
  after(async () => {
    await extractor.close();
    await files.remove();
  });

  test("a damaged file gives pages or an error that says what is wrong, and harms no other", async () => {
    const originals = await goodFiles();
    const damaged = originals.flatMap(({ filename, content }, position) =>
      MUTATION_NAMES.flatMap((name) =>
        [1, 2, 3].map((round): HostileFile => {
          const other = originals[(position + round) % originals.length]!.content as Buffer;
          const seed = position * 1000 + round;
          return {
            filename: `${name} ${filename}`,
            content: mutate(content as Buffer, { name, seed, other }),
          };
        }),
      ),
    );
    assert.ok(damaged.length >= 300, `${damaged.length}`);
    await readAll(damaged);
  });

  test("a file made to hurt gives pages or an error that says what is wrong, and harms no other", async () => {
    await readAll(hostileFiles());
  });

  test("zip bombs are called that", async () => {
    for (const { filename, content } of hostileFiles().filter(({ filename }) =>
      /bomb.*\.docx$/.test(filename),
    ))
      await assert.rejects(
        extractor.inspect(await files.put(filename, content), signal),
        (error: unknown) => {
          assert.ok(isQuarryError(error, "file_too_large"), String(error));
          assert.match(error.message, /looks like a zip bomb: .*(times its size|MB)/);
          return true;
        },
      );
  });

  async function readAll(bad: readonly HostileFile[]): Promise<void> {
    const [letter] = await goodFiles();
    const queue = bad.flatMap((file, position) =>
      position % GOOD_EVERY === 0 ? [file, { ...letter!, isGood: true }] : [file],
    );
    const read = async () => {
      for (let next = queue.shift(); next; next = queue.shift()) {
        const file = await files.put(next.filename, next.content);
        const outcome = await outcomeOf(file);
        if ("isGood" in next) assert.match(String(outcome), /Dear reader/);
        checkOutcome(file, outcome);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, read));
  }

  async function outcomeOf(file: SourceFile): Promise<string | Error> {
    try {
      const { pageCount, furniture, mediaType, title } = await extractor.inspect(file, signal);
      assert.ok(pageCount >= 1);
      const pages = Array.from({ length: Math.min(pageCount, PAGES_READ) }, (_, position) => position + 1);
      const read = await extractor.read(file, { pages, furniture }, signal);
      const numbers = read.map(({ pageNumber }) => pageNumber);
      assert.deepEqual(
        numbers,
        pages.filter((page) => numbers.includes(page)),
      );
      if (mediaType.startsWith("image/") || read[0]?.needsOcr) await extractor.picture(file, 1, signal);
      return `${title ?? ""} ${read.map(({ markdown }) => markdown).join("\n")}`;
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      return error as Error;
    }
  }

  function checkOutcome(file: SourceFile, outcome: string | Error): void {
    if (typeof outcome === "string") {
      assert.ok(outcome.isWellFormed() && !outcome.includes("\0"), file.filename);
      assert.doesNotMatch(outcome, /root:.*:0:0/, file.filename);
      return;
    }
    const said = `${file.filename}: ${outcome.stack}`;
    assert.ok(isQuarryError(outcome, ...EXPECTED_CODES), said);
    assert.ok(outcome.message.startsWith(file.filename), said);
    assert.doesNotMatch(outcome.message, /upload-|undefined|\[object|\n/, said);
    assert.ok(outcome.message.length < 400, said);
  }
});

async function goodFiles(): Promise<HostileFile[]> {
  const letter = [{ items: [text("Dear reader, all is well here.", { x: 72, y: 90 })] }];
  const report = typeset(
    [
      { heading: "Report" },
      {
        table: [
          ["a", "b"],
          ["1", "2"],
        ],
      },
      { bullets: ["one", "two"] },
      { paragraph: "Words that go on for a while. ".repeat(120) },
    ],
    { header: () => "ACME", footer: (page) => `Page ${page}` },
  );
  const gray = { gray: new Uint8Array(3000).map((_, at) => at % 256), width: 50, height: 60 };
  const picture = sharp({ create: { width: 60, height: 40, channels: 3, background: "#a04020" } });
  return [
    { filename: "letter.pdf", content: makePdf({ pages: letter, title: "A Letter" }) },
    { filename: "report.pdf", content: makePdf({ pages: report, title: "A Report" }) },
    { filename: "scan.pdf", content: makePdf({ pages: [scan(gray), ...letter] }) },
    { filename: "locked.pdf", content: makePdf({ pages: letter, password: "" }) },
    {
      filename: "paper.docx",
      content: makeDocx({
        title: "Paper",
        blocks: [
          { heading: "Head" },
          { paragraph: "Text.", footnote: "Note." },
          {
            table: [
              ["a", "b"],
              ["1", "2"],
            ],
          },
          { bullets: ["x"] },
        ],
      }),
    },
    {
      filename: "page.html",
      content: Buffer.from(
        `<!doctype html><title>T</title><h1>H</h1><table><tr><td>a<td>b</table>${"<p>Some <b>bold</b> words &amp; more</p>".repeat(40)}`,
      ),
    },
    {
      filename: "notes.md",
      content: Buffer.from(`# Notes\n\n| a | b |\n|---|---|\n| ü | ö |\n\n${"- item\n".repeat(80)}`),
    },
    { filename: "picture.png", content: await picture.clone().png().toBuffer() },
    { filename: "picture.jpg", content: await picture.clone().jpeg().toBuffer() },
    { filename: "picture.tif", content: await picture.clone().tiff().toBuffer() },
    { filename: "picture.webp", content: await picture.clone().webp().toBuffer() },
  ];
}
