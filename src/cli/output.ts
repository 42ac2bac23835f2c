/** What a command prints: a table or lines for people, one JSON value for programs. */
export interface Output {
  readonly isJson: boolean;
  /** Goes to standard error, so that standard output stays clean for `--json` and pipes. */
  progress(text: string): void;
  line(text: string): void;
  result(value: unknown, text: string): void;
}

const PLAIN_PROGRESS_EVERY_MS = 1_000;

export function createOutput(options: { json: boolean; monotonic: () => number }): Output {
  const { stderr, stdout } = process;
  const isLive = stderr.isTTY === true && !options.json;
  let isProgressShown = false;
  let lastPlainAt = Number.NEGATIVE_INFINITY;
  const clearProgress = () => {
    if (isProgressShown) stderr.write("\r\x1b[K");
    isProgressShown = false;
  };
  return {
    isJson: options.json,
    progress: (text) => {
      if (isLive) {
        stderr.write(`\r\x1b[K${text}`);
        isProgressShown = true;
      } else if (!options.json && options.monotonic() - lastPlainAt >= PLAIN_PROGRESS_EVERY_MS) {
        lastPlainAt = options.monotonic();
        stderr.write(`${text}\n`);
      }
    },
    line: (text) => {
      clearProgress();
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

/** Columns as wide as their widest cell. */
export function table(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`).join("\n");
}
