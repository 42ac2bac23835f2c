/** A stretch of Markdown that should stay in one piece, with the blank lines behind it. */
export interface Block {
  readonly text: string;
  /** 1 to 6 for a heading. */
  readonly level?: number;
  /** What each piece needs around it when the block has to be cut after all: a fence, the head of a table. */
  readonly frame?: { readonly head: string; readonly foot: string };
}

/** Linear in the length of the text, whatever is in it: a reader of Markdown proper would not be. */
export function blocksOf(markdown: string): Block[] {
  const lines = markdown.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const blocks: Block[] = [];
  let position = 0;
  while (position < lines.length) {
    const { block, next } = blockAt(lines, position);
    let end = next;
    while (end < lines.length && isBlank(lines[end]!)) end++;
    blocks.push({ ...block, text: lines.slice(position, end).join("") });
    position = end;
  }
  return blocks;
}

type Found = { readonly block: Omit<Block, "text">; readonly next: number };

function blockAt(lines: readonly string[], start: number): Found {
  const first = lines[start]!;
  const fence = fenceOf(first);
  if (fence) return fencedBlock(lines, { start, fence });
  const heading = /^ {0,3}(#{1,6})(?:\s|$)/.exec(first);
  if (heading) return { block: { level: heading[1]!.length }, next: start + 1 };
  if (isTableHead(lines, start)) return tableBlock(lines, start);
  return paragraph(lines, start);
}

/** The fence that a line begins a block of code with. */
export function fenceOf(line: string): string | undefined {
  return /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/.exec(line)?.[1];
}

function fencedBlock(lines: readonly string[], { start, fence }: { start: number; fence: string }): Found {
  let end = start + 1;
  while (end < lines.length && !closes(lines[end]!, fence)) end++;
  return {
    block: { frame: { head: lines[start]!, foot: `${fence}\n` } },
    next: Math.min(end + 1, lines.length),
  };
}

/** Whether a line ends a block that this fence began. */
export function closes(line: string, fence: string): boolean {
  const bare = line.trim();
  return bare.length >= fence.length && bare === fence[0]!.repeat(bare.length);
}

function isTableHead(lines: readonly string[], start: number): boolean {
  const rule = lines[start + 1];
  return (
    rule?.includes("|") === true &&
    lines[start]!.includes("|") &&
    /^[|\s:-]+$/.test(rule) &&
    rule.includes("-")
  );
}

function tableBlock(lines: readonly string[], start: number): Found {
  let end = start + 2;
  while (end < lines.length && lines[end]!.includes("|")) end++;
  return { block: { frame: { head: `${lines[start]}${lines[start + 1]}`, foot: "" } }, next: end };
}

function paragraph(lines: readonly string[], start: number): Found {
  let end = start + 1;
  const underlined = lines[end] === undefined ? undefined : /^ {0,3}(=+|-+)\s*$/.exec(lines[end]!)?.[1];
  if (underlined && !isBlank(lines[start]!))
    return { block: { level: underlined.startsWith("=") ? 1 : 2 }, next: end + 1 };
  while (end < lines.length && !isBlank(lines[end]!) && !startsBlock(lines, end)) end++;
  return { block: {}, next: end };
}

function startsBlock(lines: readonly string[], position: number): boolean {
  const line = lines[position]!;
  return fenceOf(line) !== undefined || /^ {0,3}#{1,6}\s/.test(line) || isTableHead(lines, position);
}

export function isBlank(line: string): boolean {
  return line.trim() === "";
}
