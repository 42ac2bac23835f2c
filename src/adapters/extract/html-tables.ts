import type { HtmlNode, Rule } from "turndown";

/**
 * Tables of HTML as tables of Markdown. Turndown hands a rule the converted content of a whole row or table as one
 * string, so cells are marked with characters that no text may hold, and the table is put together at the end.
 */
const CELL = "\ufdd0";
const ROW = "\ufdd1";
const MARKS = /[\ufdd0\ufdd1]/g;

const COLUMNS_MAX = 100;
const SPAN_MAX = 50;

export function withoutMarks(text: string): string {
  return text.replaceAll(MARKS, "");
}

export const TABLE_RULES: Readonly<Record<string, Rule>> = {
  cell: {
    filter: ["td", "th"],
    replacement: (content, node) =>
      isLayout(tableOf(node)) ? `\n\n${content.trim()}\n\n` : CELL + spans(node) + content.trim(),
  },
  row: {
    filter: "tr",
    replacement: (content, node) => (isLayout(tableOf(node)) ? content : ROW + content),
  },
  sections: { filter: ["thead", "tbody", "tfoot"], replacement: (content) => content },
  columns: { filter: ["colgroup", "col"], replacement: () => "" },
  table: {
    filter: "table",
    replacement: (content, node) => `\n\n${isLayout(node) ? content : tableText(content)}\n\n`,
  },
  caption: { filter: "caption", replacement: (content) => `${content.trim()}\n\n` },
};

const layouts = new WeakMap<HtmlNode, boolean>();

/** A table that holds another one, or a single cell, only places things on a page. */
function isLayout(table: HtmlNode | null): boolean {
  if (!table) return true;
  const known = layouts.get(table);
  if (known !== undefined) return known;
  const cells = table.getElementsByTagName("td").length + table.getElementsByTagName("th").length;
  const found = cells <= 1 || table.getElementsByTagName("table").length > 0;
  layouts.set(table, found);
  return found;
}

function tableOf(node: HtmlNode): HtmlNode | null {
  let parent = node.parentNode;
  while (parent && parent.nodeName !== "TABLE") parent = parent.parentNode;
  return parent;
}

function spans(cell: HtmlNode): string {
  const span = (name: string) => {
    const count = Number(cell.getAttribute(name));
    return Number.isInteger(count) && count > 1 ? Math.min(count, SPAN_MAX) : 1;
  };
  return `${span("colspan")},${span("rowspan")};`;
}

/** The first row is the head: Markdown has no table without one. */
function tableText(content: string): string {
  const [caption = "", ...rows] = content.split(ROW);
  const grid = gridOf(rows.map((row) => row.split(CELL).slice(1)));
  const columns = grid.reduce((most, row) => Math.max(most, row.length), 0);
  if (columns === 0) return caption;
  const lines = grid.map((row) => {
    const cells = Array.from({ length: columns }, (_, column) => row[column] ?? "");
    return `| ${cells.join(" | ")} |`;
  });
  lines.splice(1, 0, `|${" --- |".repeat(columns)}`);
  return `${caption.trim()}\n\n${lines.join("\n")}`.trim();
}

/** Cells in their columns: one that spans several stands in the first of them. */
function gridOf(rows: readonly (readonly string[])[]): (string | undefined)[][] {
  const grid: (string | undefined)[][] = rows.map(() => []);
  for (const [position, cells] of rows.entries()) {
    let column = 0;
    for (const cell of cells) {
      while (grid[position]![column] !== undefined) column++;
      const end = cell.indexOf(";");
      const [across, down] = cell.slice(0, end).split(",").map(Number) as [number, number];
      for (let y = position; y < Math.min(position + down, grid.length); y++)
        for (let x = column; x < Math.min(column + across, COLUMNS_MAX); x++) grid[y]![x] = "";
      if (column < COLUMNS_MAX) grid[position]![column] = oneLine(cell.slice(end + 1));
      column += across;
    }
  }
  return grid;
}

function oneLine(content: string): string {
  return content
    .trim()
    .replaceAll(/\s*\n\s*/g, " ")
    .replaceAll("|", "\\|");
}
