/** What a query over the catalogue gave. */
export interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
  /** There were more rows. */
  readonly isCut: boolean;
}

export type Cell = string | number | null;

const CELL_CHARS_MAX = 500;

export function cellOf(value: unknown): Cell {
  if (value === null || value === undefined) return null;
  if (typeof value === "number") return value;
  const text = String(value).toWellFormed().replaceAll("\u0000", " ");
  return text.length > CELL_CHARS_MAX ? `${text.slice(0, CELL_CHARS_MAX)}…` : text;
}
