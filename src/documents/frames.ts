import { type Block, clip } from "./blocks.ts";

/** What a part of a block needs around it to be read alone: the header of a table, the fences of code. */
export interface Frame {
  /** Parts from here on have the head before them; what is before it says the same. */
  readonly bodyStart: number;
  /** Of these one, the fullest first: how much room there is decides. */
  readonly heads: readonly string[];
  /** Behind a part that does not end the block. */
  readonly foot: string;
}

export function frameOf(block: Block, source: string): Frame | undefined {
  switch (block.kind) {
    case "table":
      return tableFrame(block, source);
    case "code":
      return fenceFrame(block, source);
    default:
      return undefined;
  }
}

const TWO_LINES = /([^\r\n]*)(?:\r\n?|\n)([^\r\n]*)(?:\r\n?|\n)/y;
const CELL_CHARS_MAX = 12;

function tableFrame(block: Block, source: string): Frame | undefined {
  const [whole, header, ruler] = matchAt(TWO_LINES, source, block.start) ?? [];
  if (whole === undefined) return undefined;
  const names = cellsOf(header!);
  // Padding and long rulers are for the eye; to a tokenizer each dash may be a token.
  const shortRuler = rowOf(cellsOf(ruler!).map((rule) => rule.replace(/-+/, "-")));
  return {
    bodyStart: block.start + whole.length,
    heads: [
      `${header!.trimEnd()}\n${ruler!.trim()}`,
      `${rowOf(names)}\n${shortRuler}`,
      `${rowOf(names.map(clippedCell))}\n${shortRuler}`,
    ],
    foot: "",
  };
}

function cellsOf(row: string): string[] {
  const inside = row
    .trim()
    .replace(/^\|/, "")
    .replace(/(?<!\\)\|$/, "");
  return inside.split(/(?<!\\)\|/).map((cell) => cell.trim());
}

function rowOf(cells: readonly string[]): string {
  return `|${cells.join("|")}|`;
}

function clippedCell(text: string): string {
  // A backslash left at the end would escape the border of the cell.
  return text.length <= CELL_CHARS_MAX ? text : `${clip(text, CELL_CHARS_MAX).replace(/\\$/, "")}…`;
}

const FENCE_LINE = /((`{3,}|~{3,})(?:[ \t]*[^\s`]+)?)[^\r\n]*(?:\r\n?|\n)/y;
/** A longer one is a trick, not a language. */
const FENCE_CHARS_MAX = 24;

function fenceFrame(block: Block, source: string): Frame | undefined {
  const [whole, fenceAndLanguage, fence] = matchAt(FENCE_LINE, source, block.start) ?? [];
  if (whole === undefined || fenceAndLanguage!.length > FENCE_CHARS_MAX) return undefined;
  return { bodyStart: block.start + whole.length, heads: [fenceAndLanguage!], foot: fence! };
}

function matchAt(pattern: RegExp, source: string, start: number): RegExpExecArray | null {
  pattern.lastIndex = start;
  return pattern.exec(source);
}
