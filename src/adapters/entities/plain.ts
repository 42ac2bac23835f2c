/**
 * The prose of a Markdown text: what is code, address or mark becomes spaces, and what ends a thought without
 * saying so (a heading, an item, a cell) gets a stop. Character for character, so that a position in the result is
 * one in the original.
 */
export function proseOf(markdown: string): string {
  const marked = markdown
    .replaceAll(/<!--[\s\S]*?(?:-->|$)/g, blank)
    .replaceAll(/`[^`\n]{1,500}`/g, blank)
    .replaceAll(/<[^<>\n]{1,500}>/g, blank)
    .replaceAll(/\]\([^()\n]{0,2000}\)|\]\[[^\]\n]{0,200}\]/g, blank)
    .replaceAll(/\b(?:https?:\/\/|www\.)[^\s|]{1,2000}/g, blank);
  return linesOf(marked)
    .join("")
    .replaceAll(/[*_~[\]!#\\]/g, " ");
}

function blank(text: string): string {
  return text.replaceAll(/[^\n]/g, " ");
}

const FENCE = /^ {0,3}(?:```|~~~)/;
const MARK = /^[ \t]*(?:#{1,6}|[-*+•]|\d{1,3}[.)]|>+)(?=[ \t]|$)/;
const STOP = /[.!?:;,]\s*$/;

/** Each line with its end, which is a stop where the next line starts something new. */
function linesOf(markdown: string): string[] {
  const lines = markdown.split(/(?<=\n)/);
  let isInFence = false;
  return lines.map((line, index) => {
    const isFence = FENCE.test(line);
    if (isFence) isInFence = !isInFence;
    if (isFence || isInFence) return blank(line);
    const plain = line.replace(MARK, blank).replaceAll("|", ".");
    const isHeading = /^ {0,3}#{1,6}\s/.test(line);
    return isHeading || startsAnew(lines[index + 1] ?? "") ? stopped(plain) : plain;
  });
}

function startsAnew(line: string): boolean {
  return line.trim() === "" || MARK.test(line) || FENCE.test(line) || line.trimStart().startsWith("|");
}

/** The end of the line is where a stop can stand without moving anything. */
function stopped(line: string): string {
  return STOP.test(line) || line.trim() === "" ? line : line.replace(/\n$/, ".");
}
