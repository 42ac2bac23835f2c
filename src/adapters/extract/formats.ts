import { QuarryError } from "../../errors.ts";
import { extensionOf, languageOf } from "./languages.ts";
import { looksLikeText } from "./text.ts";
import { listZip } from "./zip.ts";

export const IMAGE_FORMATS = ["png", "jpeg", "gif", "webp", "tiff", "bmp"] as const;
export type ImageFormat = (typeof IMAGE_FORMATS)[number];

export type Format =
  | { readonly kind: "pdf"; readonly mediaType: string }
  | { readonly kind: "docx"; readonly mediaType: string }
  | { readonly kind: "html"; readonly mediaType: string }
  | { readonly kind: "markdown"; readonly mediaType: string }
  | { readonly kind: "csv"; readonly mediaType: string }
  | { readonly kind: "text"; readonly mediaType: string }
  | { readonly kind: "code"; readonly mediaType: string; readonly language: string }
  | { readonly kind: "image"; readonly mediaType: string; readonly format: ImageFormat };

/** How much of a file `tellFormat` needs to see. */
export const HEAD_BYTES = 64 * 1024;

const PDF: Format = { kind: "pdf", mediaType: "application/pdf" };
const DOCX: Format = {
  kind: "docx",
  mediaType: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
};
/** Readers accept rubbish of this length before the signature. */
const PDF_SIGNATURE_WITHIN = 1024;

const SUPPORTED =
  "PDF, Word (DOCX), Markdown, HTML, plain text, source code, CSV, JSON, YAML and XML, " +
  "and pictures (PNG, JPEG, TIFF, WebP, GIF, BMP)";

/** Content first; the extension only decides between kinds of text, and what to say about files nobody can read. */
export function tellFormat(
  file: { readonly head: Buffer; readonly wholeZip: () => Buffer },
  filename: string,
): Format {
  const { head } = file;
  const extension = extensionOf(filename);
  // Further in, the signature may also be what a text about PDFs speaks of.
  const isSigned =
    isPdf(head) && (head.indexOf("%PDF-") === 0 || extension === "pdf" || !looksLikeText(head));
  if (isSigned) return PDF;
  const image = imageFormat(head);
  if (image) return { kind: "image", mediaType: `image/${image}`, format: image };
  if (head.subarray(0, 4).toString("latin1") === "PK\x03\x04") return insideZip(file.wholeZip());
  refuseKnown(head);
  // Said so by its name, and too damaged to say so itself: the PDF reader will tell what is wrong.
  if (extension === "pdf" && / obj\b/.test(head.toString("latin1"))) return PDF;
  if (looksLikeText(head)) return kindOfText(head, filename);
  if (extension === "pdf") return PDF;
  if (extension === "docx")
    throw new QuarryError(
      "file_unreadable",
      "is called a Word document but is none; it may have been damaged on its way",
    );
  throw unsupported("its content is of no known kind");
}

/** Whether it may be one: the signature stands near the start. */
export function isPdf(head: Buffer): boolean {
  return head.subarray(0, PDF_SIGNATURE_WITHIN).includes("%PDF-");
}

function imageFormat(head: Buffer): ImageFormat | undefined {
  const starts = (signature: string) => head.subarray(0, signature.length).toString("latin1") === signature;
  if (starts("\x89PNG\r\n\x1a\n")) return "png";
  if (starts("\xff\xd8\xff")) return "jpeg";
  if (starts("GIF87a") || starts("GIF89a")) return "gif";
  if (starts("II*\0") || starts("MM\0*")) return "tiff";
  if (starts("RIFF") && head.subarray(8, 12).toString("latin1") === "WEBP") return "webp";
  // Two letters alone could begin a text; the reserved bytes of the header could not.
  if (starts("BM") && head.length > 26 && head.readUInt32LE(6) === 0) return "bmp";
  return undefined;
}

function insideZip(bytes: Buffer): Format {
  const names = new Set(listZip(bytes).map((entry) => entry.name));
  const has = (folder: string) => [...names].some((name) => name.startsWith(folder));
  if (has("word/")) return DOCX;
  if (has("xl/")) throw unsupported("it is an Excel workbook; save its sheets as CSV");
  if (has("ppt/")) throw unsupported("it is a PowerPoint presentation; save it as PDF");
  if (names.has("META-INF/container.xml")) throw unsupported("it is an e-book (EPUB); convert it to PDF");
  if (names.has("mimetype")) throw unsupported("it is an OpenDocument file; save it as DOCX or PDF");
  throw unsupported("it is an archive (ZIP); unpack it and hand in its files");
}

function refuseKnown(head: Buffer): void {
  const starts = (signature: string) => head.subarray(0, signature.length).toString("latin1") === signature;
  if (starts("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")) {
    if (head.includes(Buffer.from("EncryptedPackage", "utf16le")))
      throw new QuarryError(
        "file_encrypted",
        "is protected by a password; save it without one and hand it in again",
      );
    throw unsupported("it is an Office file from before 2007; save it as DOCX or PDF");
  }
  if (starts("{\\rtf")) throw unsupported("it is RTF; save it as DOCX or PDF");
}

function kindOfText(head: Buffer, filename: string): Format {
  const language = languageOf(filename);
  if (language) return { kind: "code", mediaType: mediaTypeOf(language), language };
  if (isHtml(head)) return { kind: "html", mediaType: "text/html" };
  switch (extensionOf(filename)) {
    case "md":
    case "markdown":
    case "mdx":
    case "mdown":
    case "qmd":
      return { kind: "markdown", mediaType: "text/markdown" };
    case "html":
    case "htm":
    case "xhtml":
      return { kind: "html", mediaType: "text/html" };
    case "csv":
    case "tsv":
      return { kind: "csv", mediaType: "text/csv" };
    default:
      return { kind: "text", mediaType: "text/plain" };
  }
}

/** A page says so near its start, behind comments and an XML declaration at most. */
function isHtml(head: Buffer): boolean {
  const start = head.subarray(0, 2048).toString("latin1").replaceAll("\0", "");
  return /^[^\w<]*(<\?xml[^>]*>\s*)?(<!--[\s\S]*?-->\s*)?<(!doctype\s+html|html)\b/i.test(start);
}

function mediaTypeOf(language: string): string {
  if (language === "log") return "text/plain";
  return ["json", "yaml", "xml", "toml"].includes(language)
    ? `application/${language}`
    : `text/x-${language}`;
}

function unsupported(what: string): QuarryError {
  return new QuarryError("file_unsupported", `cannot be read: ${what}. Supported are ${SUPPORTED}`);
}
