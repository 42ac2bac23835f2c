import { writeFile } from "node:fs/promises";
import { HANDBOOK } from "../../scripts/samples/handbook.ts";
import { SURVEY } from "../../scripts/samples/survey.ts";
import { makePdf } from "../../test/support/make-pdf.ts";
import { type PdfBlock, typeset } from "../../test/support/typeset.ts";
import { pick, randomFrom } from "./random.ts";

/** About one chunk. */
const PAGE_CHARS = 800;

/** Writes a document of text pages; no two of them say the same, and no two documents with different seeds do. */
export async function writeLongPdf(
  path: string,
  { pages, seed }: { pages: number; seed: number },
): Promise<void> {
  const random = randomFrom(seed);
  const sentences = sentencesOfSamples();
  const blocks: PdfBlock[] = [];
  for (let page = 1; page <= pages; page++) {
    blocks.push({ heading: `Section ${page}`, level: 2 });
    let text = "";
    while (text.length < PAGE_CHARS) text += `${pick(sentences, random)} See note ${page}.${seed}. `;
    blocks.push({ paragraph: text.trim() });
    if (page < pages) blocks.push({ break: "page" });
  }
  const footer = (page: number) => `Collected notes    Page ${page}`;
  await writeFile(path, makePdf({ title: "Collected notes", pages: typeset(blocks, { footer }) }));
}

function sentencesOfSamples(): string[] {
  const blocks = [...HANDBOOK, ...SURVEY.flatMap((part) => part.blocks)];
  return blocks.flatMap((block) =>
    "paragraph" in block ? block.paragraph.split(/(?<=[.!?])\s+(?=\p{Lu})/u) : [],
  );
}
