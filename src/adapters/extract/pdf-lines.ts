/** A piece of text as a PDF places it: x and y of its baseline's start, in points from the top left. */
export interface Run {
  readonly text: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly size: number;
}

/** Runs that read as one line without a gap. */
export interface TextLine extends Run {}

const SAME_BASELINE = 0.4;
const WORD_GAP = 0.15;
const COLUMN_GAP = 1.6;
const PARAGRAPH_GAP = 1.7;
const HEADING_SIZE = 1.2;
const HEADING_LETTERS_MAX = 200;

/** Joins runs in the order in which they were written. Sizes are measured in the height of the letters. */
export function textLines(runs: readonly Run[]): TextLine[] {
  const lines: TextLine[] = [];
  for (const run of runs) {
    const line = lines.at(-1);
    const gap = line ? run.x - (line.x + line.width) : 0;
    const isContinued =
      line !== undefined &&
      Math.abs(run.y - line.y) < run.size * SAME_BASELINE &&
      gap > -run.size &&
      gap < run.size * COLUMN_GAP;
    if (!isContinued) {
      lines.push({ ...run, text: run.text.trim() });
      continue;
    }
    const space = gap > run.size * WORD_GAP || /^\s/.test(run.text) ? " " : "";
    lines[lines.length - 1] = {
      ...line,
      text: line.text + space + run.text.trim(),
      width: run.x + run.width - line.x,
      size: Math.max(line.size, run.size),
    };
  }
  return lines.filter(({ text }) => text !== "");
}

/** Paragraphs, headings told by their size, and bullets. */
export function markdownOf(lines: readonly TextLine[]): string {
  const body = bodySize(lines);
  const blocks: string[] = [];
  for (const [position, line] of lines.entries()) {
    const level = headingLevel(line, body);
    const bullet = /^[•◦▪‣·]\s*(.*)$/u.exec(line.text)?.[1];
    const previous = lines[position - 1];
    if (level) blocks.push(`${"#".repeat(level)} ${line.text}`);
    else if (bullet !== undefined) blocks.push(`- ${bullet}`);
    else if (previous && !headingLevel(previous, body) && isContinued(previous, line))
      blocks.push(`${blocks.pop()} ${line.text}`);
    else blocks.push(line.text);
  }
  return blocks.reduce(
    (text, block, position) =>
      position === 0
        ? block
        : text + (isItem(block) && isItem(blocks[position - 1]!) ? "\n" : "\n\n") + block,
    "",
  );
}

function isItem(block: string): boolean {
  return block.startsWith("- ");
}

function isContinued(previous: TextLine, line: TextLine): boolean {
  const down = line.y - previous.y;
  return down > -previous.size * SAME_BASELINE && down < line.size * PARAGRAPH_GAP;
}

/** The size in which most of the page is set. */
function bodySize(lines: readonly TextLine[]): number {
  const letters = new Map<number, number>();
  for (const { size, text } of lines) {
    const rounded = Math.round(size);
    letters.set(rounded, (letters.get(rounded) ?? 0) + text.length);
  }
  const [most] = [...letters].sort((a, b) => b[1] - a[1]);
  return most?.[0] ?? 1;
}

function headingLevel({ size, text }: TextLine, body: number): 1 | 2 | 3 | undefined {
  if (size < body * HEADING_SIZE || text.length > HEADING_LETTERS_MAX || !/\p{L}/u.test(text))
    return undefined;
  if (size >= body * 1.7) return 1;
  return size >= body * 1.35 ? 2 : 3;
}
