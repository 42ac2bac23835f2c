import { extname } from "node:path";

/** What a document on the internet may be, and what its file is called then. */
const EXTENSIONS: Readonly<Record<string, string>> = {
  "text/html": ".html",
  "application/xhtml+xml": ".html",
  "text/markdown": ".md",
  "text/x-markdown": ".md",
  "text/csv": ".csv",
  "text/tab-separated-values": ".tsv",
  "text/xml": ".xml",
  "application/xml": ".xml",
  "text/yaml": ".yaml",
  "application/yaml": ".yaml",
  "application/json": ".json",
  "application/pdf": ".pdf",
  "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
};
/** Everything written by hand is served as this, so the name in the address says more. */
const TEXT = /^text\/(plain|x-[\w.+-]{1,50})$/;
/** Such as application/ld+json. */
const STRUCTURED: readonly (readonly [RegExp, string])[] = [
  [/^application\/[\w.-]{1,100}\+json$/, ".json"],
  [/^application\/[\w.-]{1,100}\+xml$/, ".xml"],
];
const NAME_CHARS_MAX = 100;

export const ACCEPTED = `${Object.keys(EXTENSIONS).join(", ")}, text/plain;q=0.9`;

/** A name for the file with an extension that fits its type; undefined when such a type is no document. */
export function filenameFor(url: URL, contentType: string | undefined): string | undefined {
  const type = (contentType ?? "").replace(/;.*$/s, "").trim().toLowerCase();
  const { name, extension } = nameIn(url);
  if (TEXT.test(type)) return name + (extension || ".txt");
  const fitting = EXTENSIONS[type] ?? STRUCTURED.find(([pattern]) => pattern.test(type))?.[1];
  return fitting === undefined ? undefined : name + fitting;
}

/** The last part of the path, or the host; letters and digits and nothing that means something to a file system. */
function nameIn(url: URL): { name: string; extension: string } {
  const last = url.pathname.split("/").findLast((part) => part !== "") ?? "";
  const plain = decoded(last)
    .replaceAll(/[^\p{L}\p{N}._-]+/gu, "-")
    .replace(/^[.-]+/, "");
  if (plain === "") return { name: url.hostname.replaceAll(/[^a-z0-9.-]+/g, "-"), extension: "" };
  const extension = /^\.[a-z0-9]{1,10}$/i.exec(extname(plain))?.[0] ?? "";
  const name = extension === "" ? plain : plain.slice(0, -extension.length);
  return { name: [...name].slice(0, NAME_CHARS_MAX).join(""), extension: extension.toLowerCase() };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
