import TurndownService, { type HtmlNode } from "turndown";
import { fenced } from "./fence.ts";
import { TABLE_RULES, withoutMarks } from "./html-tables.ts";
import { cleanText, decodeText } from "./text.ts";
import { withoutEscapes } from "./titles.ts";

/** Deeper than any page that was made for readers; the converter recurses, and its cost grows with the depth. */
const DEPTH_MAX = 400;

const JUNK = new Set([
  ...["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "HEAD", "TITLE", "META", "LINK"],
  ...["IFRAME", "OBJECT", "EMBED", "SVG", "CANVAS", "AUDIO", "VIDEO"],
  ...["NAV", "BUTTON", "INPUT", "SELECT", "TEXTAREA", "DIALOG"],
]);
const INVISIBLE = /(?:^|[;\s])(?:display\s*:\s*none|visibility\s*:\s*hidden)/i;
const JUNK_ROLES = ["navigation", "search", "menu", "menubar", "banner", "contentinfo"];

export function readHtml(bytes: Uint8Array): { markdown: string; title: string | undefined } {
  const html = withoutScripts(decodeText(bytes, declaredCharset(bytes)));
  const title = /<title\b[^<>]*>([^<]*)/i.exec(html)?.[1];
  return {
    markdown: markdownFromHtml(html),
    title: title?.trim() ? withoutEscapes(markdownFromHtml(`<p>${title}</p>`)) : undefined,
  };
}

/** Text of one page of HTML. Too deeply nested, it keeps its words and loses its structure. */
export function markdownFromHtml(html: string): string {
  return cleanText(converter().turndown(depthOf(html) > DEPTH_MAX ? flattened(html) : html));
}

function converter(): TurndownService {
  const turndown = new TurndownService({
    headingStyle: "atx",
    hr: "---",
    bulletListMarker: "-",
    codeBlockStyle: "fenced",
    emDelimiter: "*",
  });
  for (const [name, rule] of Object.entries(TABLE_RULES)) turndown.addRule(name, rule);
  // Blocks that the converter does not know as such: their words would run into their neighbours'.
  turndown.addRule("blocks", {
    filter: ["details", "summary", "legend"],
    replacement: (content) => `\n\n${content}\n\n`,
  });
  turndown.addRule("struck", { filter: ["del", "s"], replacement: (content) => `~~${content}~~` });
  turndown.addRule("picture", {
    filter: "img",
    replacement: (_, node) => node.getAttribute("alt")?.trim() ?? "",
  });
  turndown.addRule("link", { filter: "a", replacement: link });
  turndown.addRule("preformatted", {
    filter: (node) => node.nodeName === "PRE" && node.firstChild?.nodeName !== "CODE",
    replacement: (_, node) => `\n\n${fenced(node.textContent)}\n\n`,
  });
  turndown.addRule("item", { filter: "li", replacement: itemRule() });
  turndown.addRule("footnote mark", {
    filter: isFootnoteMark,
    replacement: (_, node) => `[^${noteName(node)}]`,
  });
  turndown.addRule("footnote", {
    filter: (node) => node.nodeName === "LI" && /^(foot|end)note-/.test(node.getAttribute("id") ?? ""),
    replacement: (content, node) => `\n\n[^${noteName(node)}]: ${content.trim()}\n\n`,
  });
  // Added last, it comes before all others.
  turndown.addRule("junk", { filter: isJunk, replacement: () => "" });
  turndown.escape = escapeStart;
  return turndown;
}

function isJunk(node: HtmlNode): boolean {
  if (JUNK.has(node.nodeName)) return true;
  if (node.getAttribute("hidden") !== null || node.getAttribute("aria-hidden") === "true") return true;
  if (INVISIBLE.test(node.getAttribute("style") ?? "")) return true;
  return JUNK_ROLES.includes(node.getAttribute("role") ?? "");
}

/** Words are searched and read as they are; only what would turn a paragraph into something else is escaped. */
function escapeStart(text: string): string {
  return withoutMarks(text)
    .replace(/^(#{1,6}\s|>|[-+*]\s|={3,}|-{3,}|`{3,}|~{3,})/, "\\$1")
    .replace(/^(\d+)([.)]\s)/, "$1\\$2");
}

function link(content: string, node: HtmlNode): string {
  const target = node.getAttribute("href") ?? "";
  const isUseful = /^(https?|mailto):[^\s()<>]+$/i.test(target) && content.trim() !== "";
  if (/^#(foot|end)note-ref-/.test(target)) return "";
  return isUseful && content.trim() !== target ? `[${content}](${target})` : content;
}

/** Numbers are counted along: asking each item for its place would take the square of their number. */
function itemRule(): (content: string, node: HtmlNode) => string {
  const numbers = new WeakMap<HtmlNode, number>();
  return (content, node) => {
    const list = node.parentNode;
    let mark = "- ";
    if (list?.nodeName === "OL") {
      const number = numbers.get(list) ?? Number(list.getAttribute("start") ?? 1);
      numbers.set(list, number + 1);
      mark = `${number}. `;
    }
    return `${mark}${content.trim().replaceAll("\n", `\n${" ".repeat(mark.length)}`)}\n`;
  };
}

/** As DOCX converts: `<sup><a href="#footnote-2" id="footnote-ref-2">[1]</a></sup>`. */
function isFootnoteMark(node: HtmlNode): boolean {
  return node.nodeName === "SUP" && /^#(foot|end)note-\d/.test(node.firstChild?.getAttribute?.("href") ?? "");
}

function noteName(node: HtmlNode): string {
  const reference = node.getAttribute("id") ?? node.firstChild?.getAttribute("href") ?? "";
  return reference.replace(/^#?(?:footnote|(endnote))-/, (_, end) => (end ? "e" : ""));
}

/** Elements that are open at the deepest point, at least; found without recursion. */
function depthOf(html: string): number {
  const open = new Map<string, number>();
  let depth = 0;
  let deepest = 0;
  for (const [, slash, name] of html.matchAll(/<(\/?)([a-z][a-z0-9-]*)/gi)) {
    const element = name!.toLowerCase();
    if (CLOSED_BY_THEMSELVES.has(element)) continue;
    const count = open.get(element) ?? 0;
    if (slash && count === 0) continue;
    open.set(element, slash ? count - 1 : count + 1);
    depth += slash ? -1 : 1;
    deepest = Math.max(deepest, depth);
  }
  return deepest;
}

const CLOSED_BY_THEMSELVES = new Set([
  ...["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"],
  ...["p", "li", "dt", "dd", "option", "tr", "td", "th", "thead", "tbody", "tfoot", "html", "head", "body"],
]);

/** Without scripts, styles and comments: their insides look like tags and are none. */
function withoutScripts(html: string): string {
  // Not <style-guide>: any name with a hyphen is an element that somebody made up.
  const start = /<(script|style)(?![\w-])|<!--/gi;
  const kept: string[] = [];
  let position = 0;
  for (let found = start.exec(html); found; found = start.exec(html)) {
    kept.push(html.slice(position, found.index));
    const end = found[1] ? new RegExp(`</${found[1]}\\s*>`, "gi") : /-->/g;
    end.lastIndex = found.index;
    const closing = end.exec(html);
    position = closing ? end.lastIndex : html.length;
    start.lastIndex = position;
  }
  kept.push(html.slice(position));
  return kept.join("");
}

/** Its words in paragraphs that stand side by side. */
function flattened(html: string): string {
  return html
    .replaceAll(/<\/?(p|div|li|tr|h[1-6]|section|article|blockquote|br)\b[^<>]*>/gi, "\n")
    .replaceAll(/<[^<>]*>/g, " ")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .map((line) => `<p>${line}</p>`)
    .join("\n");
}

function declaredCharset(bytes: Uint8Array): string | undefined {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 4096)).toString("latin1");
  return /<meta\b[^>]*charset\s*=\s*["']?([\w-]+)/i.exec(head)?.[1];
}
