import { QuarryError } from "../../errors.ts";
import { decodeBmp } from "./bmp.ts";
import type { ImageFormat } from "./formats.ts";
import { type ImagePage, imagePages } from "./image-header.ts";
import type { ReaderLimits } from "./limits.ts";
import { encodePng } from "./png.ts";
import { reasonOf } from "./reason.ts";

/** One page a picture; only TIFF has more, as scanners and fax machines write it. Animations count as their first frame. */
export function countImages(bytes: Buffer, format: ImageFormat, limits: ReaderLimits): number {
  const pages = imagePages(bytes, format);
  for (const page of pages) checkPixels(page, limits);
  return pages.length;
}

/** The bytes as they are when that is a PNG or an upright JPEG; anything else is converted. */
export async function pictureOf(
  bytes: Buffer,
  format: ImageFormat,
  { pageNumber, limits }: { pageNumber: number; limits: ReaderLimits },
): Promise<Uint8Array> {
  const page = imagePages(bytes, format)[pageNumber - 1];
  if (!page) throw new QuarryError("invalid_input", `has no page ${pageNumber}`);
  checkPixels(page, limits);
  if (format === "png" || (format === "jpeg" && page.orientation === 1)) return bytes;
  if (format === "bmp") return encodePng(decodeBmp(bytes));
  return convert(bytes, format, { pageNumber, limits });
}

function checkPixels({ width, height }: ImagePage, { pixelsMax }: ReaderLimits): void {
  if (width * height > pixelsMax)
    throw new QuarryError(
      "file_too_large",
      `is a picture of ${width} × ${height} pixels; at most ${Math.round(pixelsMax / 1e6)} million are read`,
    );
}

async function convert(
  bytes: Buffer,
  format: ImageFormat,
  { pageNumber, limits }: { pageNumber: number; limits: ReaderLimits },
): Promise<Uint8Array> {
  const sharp = await loadSharp();
  // Lying on its side is better than not at all.
  if (!sharp && format === "jpeg") return bytes;
  if (!sharp)
    throw new QuarryError(
      "file_unsupported",
      `cannot be read: ${format.toUpperCase()} pictures need the package sharp, which does not run here; save it as PNG`,
    );
  const picture = sharp(bytes, {
    limitInputPixels: limits.pixelsMax,
    failOn: "error",
    ...(format === "tiff" && { page: pageNumber - 1 }),
  }).autoOrient();
  try {
    return await (format === "jpeg" ? picture.jpeg({ quality: 92 }) : picture.png()).toBuffer();
  } catch (error) {
    throw new QuarryError("file_unreadable", `is a damaged picture: ${reasonOf(error)}`, { cause: error });
  }
}

/** Native, so there are machines without it. */
async function loadSharp(): Promise<typeof import("sharp").default | undefined> {
  try {
    return (await import("sharp")).default;
  } catch {
    return undefined;
  }
}
