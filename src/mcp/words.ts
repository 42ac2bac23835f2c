/** Characters that nobody sees and that could still steer a reader: controls, directions, tags. */
const INVISIBLE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  /[\u0000-\u0008\u000e-\u001f\u007f-\u0084\u0086-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/gu;
const LINE_END = /\r\n|[\n\v\f\r\u0085\u2028\u2029]/;

/** Text of documents, names and paths without what cannot be seen. */
export function visible(text: string): string {
  return text.replaceAll(INVISIBLE, "");
}

/** Every line begins with `> `, so that nothing in a text can look as if it stood outside of the quotation. */
export function quotation(text: string): string {
  return visible(text)
    .split(LINE_END)
    .map((line) => `> ${line}`)
    .join("\n");
}

/** On one line, and no longer than that. */
export function oneLine(text: string, lengthMax = 300): string {
  const line = visible(text).replaceAll(/\s+/g, " ").trim();
  return line.length <= lengthMax ? line : `${line.slice(0, lengthMax - 1).toWellFormed()}…`;
}

/** "1 page", "2 pages". */
export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
