import { furnitureOn } from "./furniture.ts";
import type { PdfPageText } from "./pdf-engine.ts";

/** The page's Markdown without its headers and footers. */
export function withoutFurniture(page: PdfPageText, furniture: readonly string[]): string {
  const lines = page.markdown.split("\n");
  const found = furnitureOn(page, furniture);
  const isTop = ({ edge }: { edge: string }) => edge === "top";
  // From the outside in: what was merged into a line can only be taken off its end.
  for (const { edge, text } of [...found.filter(isTop), ...found.filter((one) => !isTop(one)).reverse()]) {
    const key = lettersOf(text);
    if (key === "") continue;
    const order = edge === "top" ? [...lines.keys()] : [...lines.keys()].reverse();
    const same = order.find((position) => lettersOf(lines[position]!) === key);
    if (same !== undefined) lines[same] = "";
    else takeFromEdge(lines, { edge, key, order });
  }
  return lines
    .join("\n")
    .replaceAll(/\n{3,}/g, "\n\n")
    .trim();
}

/** The layout took the header for the start of the text, or the footer for its end. */
function takeFromEdge(
  lines: string[],
  { edge, key, order }: { edge: "top" | "bottom"; key: string; order: readonly number[] },
): void {
  const outermost = order.find((position) => lettersOf(lines[position]!) !== "");
  if (outermost === undefined) return;
  const line = lines[outermost]!;
  lines[outermost] = (edge === "top" ? afterPrefix(line, key) : beforeSuffix(line, key)) ?? line;
}

function afterPrefix(line: string, key: string): string | undefined {
  let matched = 0;
  let previousEnd = 0;
  for (const { start, letter, end } of letters(line)) {
    if (matched === key.length) return start > previousEnd ? line.slice(start) : undefined;
    if (!key.startsWith(letter, matched)) return undefined;
    matched += letter.length;
    previousEnd = end;
  }
  return undefined;
}

function beforeSuffix(line: string, key: string): string | undefined {
  let left = key.length;
  let previousStart = line.length;
  for (const { start, letter, end } of letters(line).reverse()) {
    if (left === 0) return end < previousStart ? line.slice(0, previousStart).trimEnd() : undefined;
    if (!key.endsWith(letter, left)) return undefined;
    left -= letter.length;
    previousStart = start;
  }
  return undefined;
}

function lettersOf(text: string): string {
  return letters(text)
    .map(({ letter }) => letter)
    .join("");
}

/** Letters and digits alone tell whether two texts are the same: marks of Markdown and spaces differ. */
function letters(text: string): { start: number; letter: string; end: number }[] {
  return [...text.matchAll(/[\p{L}\p{N}]/gu)].map((match) => ({
    start: match.index,
    letter: match[0].normalize("NFKC").toLowerCase(),
    end: match.index + match[0].length,
  }));
}
