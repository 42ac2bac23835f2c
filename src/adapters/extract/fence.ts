/** Text as a code block. The fence is longer than any inside. */
export function fenced(text: string, language = ""): string {
  let length = 3;
  for (const [, inside] of text.matchAll(/^ {0,3}(`{3,})/gm)) length = Math.max(length, inside!.length + 1);
  const fence = "`".repeat(length);
  return `${fence}${language}\n${text.trimEnd()}\n${fence}\n`;
}
