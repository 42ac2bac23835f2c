/**
 * Markdown with everything that is not prose turned into spaces or stops, character for character, so that a
 * position in the result is one in the original. What stands in code is no name.
 */
export function proseOf(markdown: string): string {
  return (
    markdown
      .replaceAll(/^(```|~~~)[^\n]*\n[\s\S]*?(?:^\1[^\n]*$|$(?![\s\S]))/gm, blank)
      .replaceAll(/`[^`\n]{1,500}`/g, blank)
      .replaceAll(/<[^<>\n]{1,500}>/g, blank)
      .replaceAll(/\]\([^()\n]{0,2000}\)/g, blank)
      .replaceAll(/\bhttps?:\/\/\S{1,2000}/g, blank)
      .replaceAll(/^[ \t]*(?:#{1,6}|[-*+]|\d{1,3}[.)]|>+)[ \t]/gm, blank)
      .replaceAll(/[*_~[\]!#]/g, " ")
      // Cells of a table are sentences of their own; so are headings and list items.
      .replaceAll("|", ".")
      .replaceAll(/(?<![.!?:;,])\n(?=[ \t]*\n|[ \t]*[-*+#\d])/g, ".")
  );
}

function blank(text: string): string {
  return text.replaceAll(/[^\n]/g, " ");
}
