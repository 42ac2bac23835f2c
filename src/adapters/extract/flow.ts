import { tableFromCsv } from "./csv.ts";
import { readDocx } from "./docx.ts";
import { fenced } from "./fence.ts";
import type { Format } from "./formats.ts";
import { readHtml } from "./html.ts";
import { cutPages, type FlowPage } from "./pages.ts";
import { decodeText } from "./text.ts";
import { headingTitle, sensibleTitle } from "./titles.ts";

export type FlowFormat = Exclude<Format, { kind: "pdf" } | { kind: "image" }>;

/** A document that has no pages of its own, cut into some. */
export interface FlowDocument {
  readonly title: string | undefined;
  readonly pages: readonly FlowPage[];
}

interface Converted {
  readonly markdown: string;
  readonly title: string | undefined;
}

export async function readFlow(bytes: Buffer, format: FlowFormat): Promise<FlowDocument> {
  const { markdown, title } = await convert(bytes, format);
  const pages = cutPages(markdown).map((page) => ({
    ...page,
    markdown: withoutOuterBlankLines(page.markdown),
  }));
  const written = pages.filter((page) => page.markdown !== "");
  return { title, pages: written.length > 0 ? written : pages.slice(0, 1) };
}

async function convert(bytes: Buffer, format: FlowFormat): Promise<Converted> {
  switch (format.kind) {
    case "docx":
      return withHeadingTitle(await readDocx(bytes));
    case "html":
      return withHeadingTitle(readHtml(bytes));
    case "markdown":
      return withHeadingTitle(readMarkdown(decodeText(bytes)));
    case "csv": {
      const text = decodeText(bytes);
      return { markdown: tableFromCsv(text) ?? fenced(text, "csv"), title: undefined };
    }
    case "code":
      return { markdown: fenced(decodeText(bytes), format.language), title: undefined };
    case "text":
      return { markdown: decodeText(bytes), title: undefined };
    default:
      return format satisfies never;
  }
}

function withHeadingTitle({ markdown, title }: Converted): Converted {
  return { markdown, title: sensibleTitle(title) ?? headingTitle(markdown) };
}

/** A line of its own, and no blank one behind it: that would be a rule between paragraphs. */
const FRONT_MATTER = /^---[ \t]*\n(?![ \t]*\n)([\s\S]*?\n)---[ \t]*(?:\n|$)/;

/** Front matter becomes a block of its own: its last line would make a heading of the one before. */
function readMarkdown(text: string): Converted {
  const [whole = "", matter = ""] = FRONT_MATTER.exec(text) ?? [];
  if (matter === "") return { markdown: text, title: undefined };
  const title = /^title:\s*(.+)$/m
    .exec(matter)?.[1]
    ?.trim()
    .replace(/^(["'])(.*)\1$/, "$2");
  return { markdown: `${fenced(matter, "yaml")}\n${text.slice(whole.length).trimStart()}`, title };
}

function withoutOuterBlankLines(page: string): string {
  return page.replace(/^(?:[ \t]*\n)+/, "").trimEnd();
}
