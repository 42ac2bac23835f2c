/** Stands where a heading, an item or a cell ends: what is on its two sides is not one sentence. */
export const APART = "\u001e";

/**
 * The prose of a Markdown text: what is code, address or mark becomes spaces, and parts that do not go on in one
 * another are told apart. Character for character, so that a position in the result is one in the original.
 */
export function proseOf(markdown: string): string {
  const marked = markdown
    // No word is that long, and the tokenizer's time grows with the square of it.
    .replaceAll(/\S{200,}/g, blank)
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

/** Each line with its end, which is a mark where the next line starts something new. */
function linesOf(markdown: string): string[] {
  const lines = markdown.split(/(?<=\n)/);
  let isInFence = false;
  return lines.map((line, index) => {
    const isFence = FENCE.test(line);
    if (isFence) isInFence = !isInFence;
    if (isFence || isInFence || isCode(line)) return blank(line);
    const plain = line.replace(MARK, blank).replaceAll("|", APART);
    const isHeading = /^ {0,3}#{1,6}\s/.test(line);
    return isHeading || startsAnew(lines[index + 1] ?? "") ? plain.replace(/\n$/, APART) : plain;
  });
}

const CODE_MARKS_LEAST = 3;
const CODE_SHARE = 1 / 12;

/** A chunk that goes on with code has lost the fence above it. */
function isCode(line: string): boolean {
  const marks = line.match(/[{}();=<>$]/g)?.length ?? 0;
  return marks >= CODE_MARKS_LEAST && marks / line.length > CODE_SHARE;
}

function startsAnew(line: string): boolean {
  return line.trim() === "" || MARK.test(line) || FENCE.test(line) || line.trimStart().startsWith("|");
}
