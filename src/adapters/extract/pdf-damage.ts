import { PdfBytes, type PdfObject } from "./pdf-bytes.ts";
import { isGibberish } from "./pdf-gibberish.ts";
import { PdfObjects } from "./pdf-objects.ts";
import { isDict, type PdfDict, PdfUnsure, type PdfValue } from "./pdf-syntax.ts";
import { type PdfLeaf, pagesOf } from "./pdf-tree.ts";
import { type PdfXref, readXref } from "./pdf-xref.ts";
import { rememberByFile } from "./remember.ts";

/**
 * Looks for pages that are damaged. PDF libraries read on over damage and say nothing of it: the page comes out empty,
 * cut short or as another page. Only what is sure is called damage; of a file that is not understood here in every
 * detail nothing is said at all.
 */
export interface PdfCheck {
  readonly pageCount: number;
  /** What is wrong with the text of a page. `isBlank`: a library found nothing on it. */
  text(pageNumber: number, page: { readonly isBlank: boolean }): Promise<string | undefined>;
  /** What is wrong with a page as it is seen, pictures included. */
  picture(pageNumber: number): Promise<string | undefined>;
}

const USES_MAX = 500;
/** Width times height. Nothing can be read on a smaller one. */
const PICTURE_PIXELS_MIN = 10_000;
const USE = /\/([^\0\t\n\f\r ()<>[\]{}/%]+)[\0\t\n\f\r ]+Do(?![^\0\t\n\f\r ()<>[\]{}/%])/g;

const PAGE_LOST = "the page itself was overwritten";
const TEXT_DAMAGED = "its content cannot be decoded";
const PICTURE_DAMAGED = "its picture cannot be decoded";

/** Undefined when the file cannot be judged. */
export async function withPdfCheck<T>(
  path: string,
  work: (check: PdfCheck | undefined) => Promise<T>,
): Promise<T> {
  const file = new PdfBytes(path);
  try {
    const { structure } = await structureOf(path);
    return await work(structure && checkOf(new PdfObjects(file, structure.xref), structure.pages));
  } finally {
    file.close();
  }
}

interface Structure {
  readonly xref: PdfXref;
  readonly pages: readonly PdfLeaf[];
}

const structureOf = rememberByFile(1, async (path): Promise<{ structure: Structure | undefined }> => {
  const file = new PdfBytes(path);
  try {
    return { structure: await whenSure(() => readStructure(file)) };
  } finally {
    file.close();
  }
});

async function readStructure(file: PdfBytes): Promise<Structure | undefined> {
  const xref = await readXref(file);
  return xref && { xref, pages: await pagesOf(new PdfObjects(file, xref), xref.trailer.get("Root")) };
}

async function whenSure<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof PdfUnsure) return undefined;
    throw error;
  }
}

function checkOf(objects: PdfObjects, pages: readonly PdfLeaf[]): PdfCheck {
  const contentOf = async (pageNumber: number) => {
    const leaf = pages[pageNumber - 1];
    return leaf && whenSure(() => readContent(objects, leaf));
  };
  return {
    pageCount: pages.length,
    text: async (pageNumber, { isBlank }) => {
      if (isLost(pages, pageNumber)) return PAGE_LOST;
      const content = await contentOf(pageNumber);
      const isDamaged = content?.isDamaged || (isBlank && content?.texts.some(isGibberish));
      return isDamaged ? TEXT_DAMAGED : undefined;
    },
    picture: async (pageNumber) => {
      if (isLost(pages, pageNumber)) return PAGE_LOST;
      const content = await contentOf(pageNumber);
      if (content?.isDamaged) return TEXT_DAMAGED;
      for (const picture of content?.pictures ?? [])
        if (await whenSure(() => isDamagedPicture(objects, picture))) return PICTURE_DAMAGED;
      return undefined;
    },
  };
}

function isLost(pages: readonly PdfLeaf[], pageNumber: number): boolean {
  return pageNumber <= pages.length && pages[pageNumber - 1] === undefined;
}

interface Content {
  readonly texts: string[];
  /** Undefined for one that was overwritten. */
  readonly pictures: (PdfObject | undefined)[];
  isDamaged: boolean;
}

/** What a page paints, with the forms that it uses. */
async function readContent(objects: PdfObjects, leaf: NonNullable<PdfLeaf>): Promise<Content> {
  const content: Content = { texts: [], pictures: [], isDamaged: false };
  const page = await objects.value(leaf.page);
  if (!isDict(page)) return content;
  const contents = await objects.follow(page.get("Contents"));
  const parts = contents && Array.isArray(contents.value) ? contents.value : undefined;
  const streams = parts ? await Promise.all(parts.map((part: PdfValue) => objects.follow(part))) : [contents];
  const waiting = streams.map((stream) => ({ stream, resources: leaf.resources }));
  const seen = new Set<string>();
  for (let next = waiting.shift(); next; next = waiting.shift()) {
    const text = await textOf(objects, next.stream, content);
    if (text === undefined) continue;
    content.texts.push(text);
    for (const { key, used, resources } of await usesOf(objects, text, next.resources)) {
      if (seen.has(key) || seen.size >= USES_MAX) continue;
      seen.add(key);
      const dict = used && isDict(used.value) ? used.value : undefined;
      if (dict?.get("Subtype") === "/Form") waiting.push({ stream: used, resources });
      else if (!dict || dict.get("Subtype") === "/Image") content.pictures.push(used);
    }
  }
  return content;
}

async function textOf(objects: PdfObjects, stream: PdfObject | undefined, content: Content) {
  if (!stream) content.isDamaged = true;
  if (!stream || stream.value === null) return undefined;
  const data = await objects.data(stream);
  if (data === "damaged") content.isDamaged = true;
  return typeof data === "string" ? undefined : data.toString("latin1");
}

/** The forms and pictures that a content names. */
async function usesOf(objects: PdfObjects, text: string, resources: PdfValue) {
  const names = new Set(Array.from(text.matchAll(USE), ([, name]) => name!));
  if (names.size === 0) return [];
  const known = await objects.value(resources);
  const named = isDict(known) ? await objects.value(known.get("XObject")) : null;
  if (!isDict(named)) return [];
  const uses: { key: string; used: PdfObject | undefined; resources: PdfValue }[] = [];
  for (const name of names) {
    const value = named.get(name);
    if (value === undefined) continue;
    const used = await objects.follow(value);
    if (used?.value === null) continue;
    const own = used && isDict(used.value) ? used.value.get("Resources") : undefined;
    uses.push({ key: JSON.stringify(value), used, resources: own ?? resources });
  }
  return uses;
}

/** How the data of pictures begins that have a format of their own. */
const BEGINNINGS: Readonly<Record<string, readonly Buffer[]>> = {
  "/DCTDecode": [Buffer.from("ffd8ff", "hex")],
  "/JPXDecode": [Buffer.from("ff4fff51", "hex"), Buffer.from("jP")],
};

async function isDamagedPicture(objects: PdfObjects, picture: PdfObject | undefined): Promise<boolean> {
  if (!picture) return true;
  const dict = picture.value as PdfDict;
  const [width, height] = [await objects.value(dict.get("Width")), await objects.value(dict.get("Height"))];
  if (Number(width) * Number(height) < PICTURE_PIXELS_MIN) return false;
  if ((await objects.data(picture)) === "damaged") return true;
  const [filter, ...more] = await objects.filters(dict.get("Filter"));
  const beginnings = BEGINNINGS[filter ?? ""];
  const packed = beginnings && more.length === 0 ? await objects.packed(picture) : undefined;
  return packed !== undefined && !beginnings!.some((beginning) => packed.includes(beginning));
}
