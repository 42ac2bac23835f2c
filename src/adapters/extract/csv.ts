const COLUMNS_MAX = 60;
const DELIMITERS = [",", ";", "\t", "|"] as const;

/** A Markdown table, or nothing when the text is no regular table or too wide for one. */
export function tableFromCsv(text: string): string | undefined {
  const delimiter = delimiterOf(text.slice(0, text.indexOf("\n") + 1 || undefined));
  if (!delimiter) return undefined;
  const rows = rowsOf(text, delimiter);
  const columns = rows[0]?.length ?? 0;
  if (rows.length < 2 || columns < 2 || columns > COLUMNS_MAX) return undefined;
  const isRegular = rows.every((row) => row.length <= columns);
  if (!isRegular) return undefined;
  const [head, ...body] = rows.map((row) => rowOf(row, columns));
  return [head, `|${" --- |".repeat(columns)}`, ...body, ""].join("\n");
}

function delimiterOf(firstLine: string): string | undefined {
  const counts = DELIMITERS.map((delimiter) => firstLine.split(delimiter).length);
  const most = Math.max(...counts);
  return most > 1 ? DELIMITERS[counts.indexOf(most)] : undefined;
}

function rowOf(cells: readonly string[], columns: number): string {
  const padded = [...cells, ...Array<string>(columns - cells.length).fill("")];
  return `| ${padded
    .map((cell) =>
      cell
        .trim()
        .replaceAll("|", "\\|")
        .replaceAll(/\s*\n\s*/g, " "),
    )
    .join(" | ")} |`;
}

/** RFC 4180: a quoted cell may hold delimiters, line breaks and doubled quotes. Empty lines are left out. */
function rowsOf(text: string, delimiter: string): string[][] {
  const upToDelimiter = new RegExp(`[^\\n${delimiter === "|" ? "\\|" : delimiter}]*`, "y");
  const rows: string[][] = [];
  let row: string[] = [];
  let position = 0;
  while (position < text.length) {
    const quoted = text[position] === '"' ? quotedCell(text, position) : { cell: "", end: position };
    upToDelimiter.lastIndex = quoted.end;
    const plain = upToDelimiter.exec(text)![0];
    row.push(quoted.cell + plain);
    position = quoted.end + plain.length + 1;
    if (text[position - 1] === delimiter && position < text.length) continue;
    if (row.length > 1 || row[0] !== "") rows.push(row);
    row = [];
  }
  return rows;
}

function quotedCell(text: string, start: number): { cell: string; end: number } {
  let end = start + 1;
  for (;;) {
    const quote = text.indexOf('"', end);
    if (quote < 0) return { cell: text.slice(start + 1), end: text.length };
    if (text[quote + 1] !== '"')
      return { cell: text.slice(start + 1, quote).replaceAll('""', '"'), end: quote + 1 };
    end = quote + 2;
  }
}
