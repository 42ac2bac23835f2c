import { deflateSync } from "node:zlib";
import { type PdfCipher, pdfCipher } from "./pdf-cipher.ts";

/**
 * Writes small, valid PDFs, so that tests and samples need no binary fixtures. Lengths are points (1/72 inch),
 * measured from the top left corner. Text is limited to what the standard fonts can show (Windows-1252).
 */
export interface PdfText {
  readonly kind: "text";
  readonly text: string;
  readonly x: number;
  /** The baseline. */
  readonly y: number;
  readonly size: number;
  readonly font: PdfFont;
  /** As the text layer of a scan: there, but not painted. */
  readonly isHidden: boolean;
}

export interface PdfLine {
  readonly kind: "line";
  readonly from: readonly [x: number, y: number];
  readonly to: readonly [x: number, y: number];
}

export interface PdfPicture {
  readonly kind: "picture";
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly pixels: PdfPixels;
}

/** Either a JPEG as it is, or one byte a pixel from black to white. */
export type PdfPixels =
  | { readonly jpeg: Uint8Array; readonly width: number; readonly height: number }
  | { readonly gray: Uint8Array; readonly width: number; readonly height: number };

export type PdfItem = PdfText | PdfLine | PdfPicture;

export interface PdfPage {
  readonly items: readonly PdfItem[];
  readonly width?: number;
  readonly height?: number;
  /** Clockwise degrees by which a viewer turns the page. */
  readonly rotate?: 0 | 90 | 180 | 270;
}

export interface PdfSettings {
  readonly pages: readonly PdfPage[];
  readonly title?: string;
  /** Asked for when the file is opened. An empty one only restricts what viewers allow. */
  readonly password?: string;
}

export const PDF_FONTS = {
  regular: "Helvetica",
  bold: "Helvetica-Bold",
  serif: "Times-Roman",
  mono: "Courier",
} as const;
export type PdfFont = keyof typeof PDF_FONTS;

export const LETTER = { width: 612, height: 792 } as const;

export function text(
  words: string,
  at: { x: number; y: number; size?: number; font?: PdfFont; isHidden?: boolean },
): PdfText {
  return {
    kind: "text",
    text: words,
    x: at.x,
    y: at.y,
    size: at.size ?? 11,
    font: at.font ?? "regular",
    isHidden: at.isHidden ?? false,
  };
}

export function line(from: readonly [number, number], to: readonly [number, number]): PdfLine {
  return { kind: "line", from, to };
}

/** A picture that fills the page, as a scanner leaves it. */
export function scan(pixels: PdfPixels): PdfPage {
  return { items: [{ kind: "picture", x: 0, y: 0, ...LETTER, pixels }] };
}

export function makePdf(settings: PdfSettings): Buffer {
  const cipher = settings.password === undefined ? undefined : pdfCipher(settings.password);
  const file = new Objects(cipher);
  const catalog = file.reserve();
  const tree = file.reserve();
  file.put(catalog, `<< /Type /Catalog /Pages ${tree} 0 R >>`);
  const fonts = Object.values(PDF_FONTS).map((name) =>
    file.add(
      `<< /Type /Font /Subtype /Type1 /BaseFont /${name}${name === "Courier" ? "" : " /Encoding /WinAnsiEncoding"} >>`,
    ),
  );
  const fontNames = fonts.map((id, position) => `/F${position} ${id} 0 R`).join(" ");
  const kids = settings.pages.map((page) => addPage(file, page, { tree, fontNames }));
  file.put(
    tree,
    `<< /Type /Pages /Count ${kids.length} /Kids [${kids.map((kid) => `${kid} 0 R`).join(" ")}] >>`,
  );
  const info =
    settings.title === undefined
      ? undefined
      : file.add((id) => `<< /Title ${file.secret(id, settings.title!)} >>`);
  return file.finish({ catalog, info });
}

function addPage(file: Objects, page: PdfPage, shared: { tree: number; fontNames: string }): number {
  const { width, height } = { ...LETTER, ...page };
  const pictures = page.items.filter((item) => item.kind === "picture");
  const names = pictures.map((picture, position) => `/P${position} ${addPixels(file, picture.pixels)} 0 R`);
  const drawing = page.items.map((item) => draw(item, { height, pictures })).join("\n");
  const contents = file.addStream("", Buffer.from(drawing, "latin1"));
  return file.add(
    `<< /Type /Page /Parent ${shared.tree} 0 R /MediaBox [0 0 ${width} ${height}] /Rotate ${page.rotate ?? 0} ` +
      `/Contents ${contents} 0 R /Resources << /Font << ${shared.fontNames} >> /XObject << ${names.join(" ")} >> >> >>`,
  );
}

function addPixels(file: Objects, pixels: PdfPixels): number {
  const size = `/Type /XObject /Subtype /Image /Width ${pixels.width} /Height ${pixels.height} /BitsPerComponent 8`;
  return "jpeg" in pixels
    ? file.addStream(`${size} /ColorSpace /DeviceRGB /Filter /DCTDecode`, pixels.jpeg)
    : file.addStream(`${size} /ColorSpace /DeviceGray /Filter /FlateDecode`, deflateSync(pixels.gray));
}

function draw(item: PdfItem, page: { height: number; pictures: readonly PdfPicture[] }): string {
  const up = (y: number) => (page.height - y).toFixed(2);
  switch (item.kind) {
    case "text": {
      const font = Object.keys(PDF_FONTS).indexOf(item.font);
      const mode = item.isHidden ? 3 : 0;
      return `BT ${mode} Tr /F${font} ${item.size} Tf ${item.x} ${up(item.y)} Td ${literal(item.text)} Tj ET`;
    }
    case "line":
      return `${item.from[0]} ${up(item.from[1])} m ${item.to[0]} ${up(item.to[1])} l S`;
    case "picture":
      return `q ${item.width} 0 0 ${item.height} ${item.x} ${up(item.y + item.height)} cm /P${page.pictures.indexOf(item)} Do Q`;
    default:
      return item satisfies never;
  }
}

const WINDOWS_1252: Record<string, string> = {
  "•": "\x95",
  "–": "\x96",
  "—": "\x97",
  "‘": "\x91",
  "’": "\x92",
  "“": "\x93",
  "”": "\x94",
  "€": "\x80",
  "…": "\x85",
};

function literal(words: string): string {
  const bytes = words.replaceAll(/[^\0-\xff]/g, (letter) => WINDOWS_1252[letter] ?? "?");
  return `(${bytes.replaceAll(/[\\()]/g, "\\$&")})`;
}

/** Numbered objects and where they stand in the file. */
class Objects {
  readonly #cipher: PdfCipher | undefined;
  readonly #bodies: (Buffer | undefined)[] = [];

  constructor(cipher: PdfCipher | undefined) {
    this.#cipher = cipher;
  }

  reserve(): number {
    return this.#bodies.push(undefined);
  }

  put(id: number, body: string | Buffer): void {
    this.#bodies[id - 1] = Buffer.from(body as string, "latin1");
  }

  add(body: string | ((id: number) => string)): number {
    const id = this.reserve();
    this.put(id, typeof body === "string" ? body : body(id));
    return id;
  }

  addStream(dictionary: string, content: Uint8Array): number {
    const id = this.reserve();
    const bytes = this.#cipher?.encrypt(id, content) ?? content;
    this.put(
      id,
      Buffer.concat([
        Buffer.from(`<< ${dictionary} /Length ${bytes.length} >>\nstream\n`),
        bytes,
        Buffer.from("\nendstream"),
      ]),
    );
    return id;
  }

  /** A string of the object `id`: encrypted when the file is. */
  secret(id: number, words: string): string {
    const bytes = Buffer.from(`\ufeff${words}`, "utf16le").swap16();
    return `<${Buffer.from(this.#cipher?.encrypt(id, bytes) ?? bytes).toString("hex")}>`;
  }

  finish(roots: { catalog: number; info: number | undefined }): Buffer {
    const parts = [Buffer.from("%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", "latin1")];
    let offset = parts[0]!.length;
    const offsets = this.#bodies.map((body, position) => {
      const start = offset;
      const whole = Buffer.concat([
        Buffer.from(`${position + 1} 0 obj\n`),
        body ?? Buffer.from("null"),
        Buffer.from("\nendobj\n"),
      ]);
      parts.push(whole);
      offset += whole.length;
      return `${String(start).padStart(10, "0")} 00000 n \n`;
    });
    const size = this.#bodies.length + 1;
    const info = roots.info === undefined ? "" : `/Info ${roots.info} 0 R`;
    const trailer = `<< /Size ${size} /Root ${roots.catalog} 0 R ${info} ${this.#cipher?.trailer ?? ""} >>`;
    parts.push(
      Buffer.from(
        `xref\n0 ${size}\n0000000000 65535 f \n${offsets.join("")}trailer\n${trailer}\nstartxref\n${offset}\n%%EOF\n`,
        "latin1",
      ),
    );
    return Buffer.concat(parts);
  }
}
