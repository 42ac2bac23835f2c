const startedAt = performance.now();

/** Progress goes to stderr: stdout carries the table alone. */
export function progress(text: string): void {
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1).padStart(6);
  process.stderr.write(`${seconds} s  ${text}\n`);
}
