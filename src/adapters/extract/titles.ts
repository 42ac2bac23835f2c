import { blocksOf } from "./markdown-blocks.ts";

const TITLE_CHARACTERS_MAX = 300;
/** A title stands near the start, or it is none. */
const SEARCHED_CHARACTERS = 50_000;

/** Programs fill in a title when the author did not; such a one says less than the first heading. */
const NO_TITLES = [
  /^(untitled|unbenannt|sans titre|no title|title|document|dokument|presentation|powerpoint presentation|slide)\s*\d*$/i,
  /^(microsoft )?(word|excel|powerpoint|office)\s*[-–—:]/i,
  /\.(docx?|dotx?|odt|rtf|pdf|tex|dvi|ps|indd|qxd|p65|pptx?|xlsx?|html?|txt|fm|cdr|ai)$/i,
  /^[\da-f-]{16,}$/i,
  /^(https?|file):/i,
  /^[^\p{L}]*$/u,
];

export function sensibleTitle(title: string | undefined): string | undefined {
  const words = title?.replaceAll(/\s+/g, " ").trim() ?? "";
  const isSensible =
    words.length > 1 && words.length <= TITLE_CHARACTERS_MAX && !NO_TITLES.some((no) => no.test(words));
  return isSensible ? words : undefined;
}

/** The first heading of the first level, or the first of all. */
export function headingTitle(markdown: string): string | undefined {
  const headings = blocksOf(markdown.slice(0, SEARCHED_CHARACTERS)).filter(
    ({ level }) => level !== undefined,
  );
  const heading = headings.find(({ level }) => level === 1) ?? headings[0];
  return heading && sensibleTitle(plainHeading(heading.text));
}

/** Its first line, without the marks of headings, links and emphasis. */
export function plainHeading(markdown: string): string {
  const line = markdown
    .slice(0, 2 * TITLE_CHARACTERS_MAX)
    .split("\n", 1)[0]!
    .replace(/^ {0,3}#{1,6}\s/, "")
    .replace(/\s#+\s*$/, "")
    .replaceAll(/!?\[([^\][]*)\]\([^()]*\)/g, "$1")
    .replaceAll(/(?<!\\)[*`]+|(?<![\p{L}\p{N}\\])_+|(?<!\\)_+(?![\p{L}\p{N}])/gu, "");
  return withoutEscapes(line).trim();
}

/** `1\. Scope` is how Markdown writes "1. Scope" where that would start a list. */
export function withoutEscapes(markdown: string): string {
  return markdown.replaceAll(/\\([!-/:-@[-`{-~])/g, "$1");
}
