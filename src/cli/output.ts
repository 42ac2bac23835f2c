/** What a command prints: a table or lines for people, one JSON value for programs. */
export interface Output {
  readonly isJson: boolean;
  readonly isLive: boolean;
  /**
   * Goes to standard error, so that standard output stays clean for `--json` and pipes. One line or several. Where
   * there is no terminal only what changed is written, and not often: it may be somebody's log.
   */
  progress(text: string): void;
  line(text: string): void;
  result(value: unknown, text: string): void;
}

/** How often progress is written to what is no terminal. */
export const PLAIN_EVERY_MS = 10_000;

export function createOutput(options: { json: boolean; monotonic: () => number }): Output {
  const { stderr, stdout } = process;
  const isLive = stderr.isTTY === true && !options.json;
  let linesShown = 0;
  let lastPlainAt = Number.NEGATIVE_INFINITY;
  let lastPlain = "";
  const clearProgress = () => {
    if (linesShown > 0) stderr.write(`\r${"\x1b[A".repeat(linesShown - 1)}\x1b[J`);
    linesShown = 0;
  };
  return {
    isJson: options.json,
    isLive,
    progress: (text) => {
      if (isLive) {
        clearProgress();
        stderr.write(text);
        linesShown = text.split("\n").length;
      } else if (!options.json && text !== lastPlain && options.monotonic() - lastPlainAt >= PLAIN_EVERY_MS) {
        lastPlainAt = options.monotonic();
        lastPlain = text;
        stderr.write(`${text.replaceAll("\n", " · ")}\n`);
      }
    },
    line: (text) => {
      clearProgress();
      // What comes next is about something else, and need not wait.
      lastPlainAt = Number.NEGATIVE_INFINITY;
      if (!options.json) stdout.write(`${text}\n`);
    },
    result: (value, text) => {
      clearProgress();
      stdout.write(options.json ? `${JSON.stringify(value)}\n` : `${text}\n`);
    },
  };
}

export function bar(part: number, whole: number, width = 30): string {
  const filled = Math.round((Math.min(part, whole) / Math.max(1, whole)) * width);
  return "█".repeat(filled) + "░".repeat(width - filled);
}

/** Columns as wide as their widest cell; the last one is not padded. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows)
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length);
  const line = (row: readonly string[]) =>
    row.map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column]!))).join("  ");
  return rows.map((row) => `  ${line(row)}`.trimEnd()).join("\n");
}

/** Text from documents and file names must not steer the terminal it is shown on. */
export function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, " ");
}

/** "1 page", "2 pages". */
export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/** Like `shortened`, but keeps the end, where the paths of one folder differ. */
export function shortenedPath(path: string, length: number): string {
  const line = plain(path);
  return line.length <= length ? line : `…${line.slice(1 - length)}`;
}

/** On one line, and no longer than that. */
export function shortened(text: string, length: number): string {
  const line = plain(text).replaceAll(/\s+/g, " ").trim();
  return line.length <= length ? line : `${line.slice(0, length - 1)}…`;
}
