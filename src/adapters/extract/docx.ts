import mammoth from "mammoth";
import { messageOf, QuarryError } from "../../errors.ts";
import { markdownFromHtml } from "./html.ts";
import { reasonOf } from "./reason.ts";
import { cleanText } from "./text.ts";
import { storedZip, unpackZip, type ZipLimits } from "./zip.ts";

const ZIP_LIMITS: ZipLimits = { entriesMax: 10_000, unpackedBytesMax: 512 * 2 ** 20, ratioMax: 200 };
/** The libraries build trees of the text, which take some twenty times its size. */
const TEXT_BYTES_MAX = 48 * 2 ** 20;

const STYLES = [
  "p[style-name='Title'] => h1:fresh",
  "p[style-name='Subtitle'] => p:fresh",
  // Left out, they would glue together the words on their two sides.
  "br[type='page'] => br",
  "br[type='column'] => br",
];

export async function readDocx(bytes: Buffer): Promise<{ markdown: string; title: string | undefined }> {
  const parts = await unpackZip(bytes, isText, ZIP_LIMITS);
  let size = 0;
  for (const part of parts.values()) size += part.length;
  if (size > TEXT_BYTES_MAX)
    throw new QuarryError(
      "file_too_large",
      `has ${Math.round(size / 2 ** 20)} MB of text, more than ${TEXT_BYTES_MAX / 2 ** 20} MB; split it`,
    );
  return {
    markdown: markdownFromHtml(await htmlOf(parts)),
    title: coreTitle(parts.get("docProps/core.xml")),
  };
}

async function htmlOf(parts: ReadonlyMap<string, Buffer>): Promise<string> {
  const options = {
    styleMap: STYLES,
    includeEmbeddedStyleMap: false,
    // Pictures are left out, so there is nothing to read; what they show stays as their text.
    convertImage: mammoth.images.imgElement(async () => ({ src: "" })),
  };
  try {
    const known = new Map([...parts].map(([name, part]) => [name, withKnownElements(part)]));
    return (await mammoth.convertToHtml({ buffer: storedZip(known) }, options)).value;
  } catch (error) {
    if (error instanceof RangeError) throw error;
    const what = /xmldom/.test(messageOf(error)) ? "its XML is not well-formed" : reasonOf(error);
    throw new QuarryError("file_unreadable", `is a damaged Word document: ${what}`, { cause: error });
  }
}

/** Fractions, powers and indices, as they are written in a line. */
const FORMULA_SIGNS: Readonly<Record<string, string>> = { den: "/", sup: "^", sub: "_" };

/** The library leaves out formulas, and Japanese words that have their reading above them. */
function withKnownElements(part: Buffer): Buffer {
  if (!part.includes("<m:oMath") && !part.includes("<w:ruby>")) return part;
  const xml = part
    .toString("utf8")
    .replaceAll(/<\/?w:ruby(?:Base)?>/g, "")
    .replaceAll(/<m:(den|sup|sub)>/g, (_, name: string) => `<w:r><w:t>${FORMULA_SIGNS[name]}</w:t></w:r>`)
    .replaceAll(/<(\/?)m:([rt])(?=[\s>])/g, "<$1w:$2")
    .replaceAll(/<\/?m:[^<>]*>/g, "");
  return Buffer.from(xml);
}

/** Everything but pictures, fonts and embedded files. */
function isText(name: string): boolean {
  return name.endsWith(".xml") || name.endsWith(".rels");
}

function coreTitle(core: Buffer | undefined): string | undefined {
  const title = /<dc:title[^<>]*>([^<]*)</.exec(core?.toString("utf8") ?? "")?.[1];
  if (!title) return undefined;
  const words = title
    .replaceAll(/&(lt|gt|quot|apos);/g, (_, name: "lt" | "gt" | "quot" | "apos") => XML_ENTITIES[name])
    .replaceAll("&amp;", "&");
  return cleanText(words).trim() || undefined;
}

const XML_ENTITIES = { lt: "<", gt: ">", quot: '"', apos: "'" } as const;
