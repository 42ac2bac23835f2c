import { QuarryError } from "../../errors.ts";
import { serveIsolate } from "../isolate.ts";

export interface PictureLimits {
  readonly sideMax: number;
  readonly bytesMax: number;
  readonly pixelsMax: number;
}

export interface ShownPicture {
  /** Nothing at all is written or drawn on it. */
  readonly isBlank: boolean;
  readonly bytes: Uint8Array;
  readonly mediaType: "image/png" | "image/jpeg";
  readonly width: number;
  readonly height: number;
}

/** Paper that a machine drew is one colour to the last bit, or nearly. */
const BLANK_RANGE_MAX = 8;
const JPEG_QUALITY = 88;

serveIsolate(async ({ sideMax, bytesMax, pixelsMax }: PictureLimits) => {
  const { default: sharp } = await import("sharp").catch((cause) => {
    throw new QuarryError(
      "unsupported_runtime",
      "QUARRY_OCR needs the package sharp, which does not run on this machine: set it to local",
      { cause },
    );
  });
  return {
    /** As large as the model looks at it, and no larger; as it is when that will do. */
    async shown(picture: Uint8Array): Promise<ShownPicture> {
      const open = () => sharp(picture, { limitInputPixels: pixelsMax, failOn: "error" });
      try {
        const { width, height, format } = await open().metadata();
        // Reads it to its end: what is damaged is found here.
        const { channels } = await open().stats();
        const isBlank = channels.every(({ min, max }) => max - min < BLANK_RANGE_MAX);
        const isJpeg = format === "jpeg";
        if (Math.max(width, height) <= sideMax && picture.length <= bytesMax)
          return { isBlank, bytes: picture, mediaType: isJpeg ? "image/jpeg" : "image/png", width, height };
        const scaled = () =>
          open().resize({ width: sideMax, height: sideMax, fit: "inside", withoutEnlargement: true });
        const png = isJpeg ? undefined : await scaled().png().toBuffer({ resolveWithObject: true });
        const { data, info } =
          png && png.data.length <= bytesMax
            ? png
            : await scaled().flatten({ background: "white" }).jpeg({ quality: JPEG_QUALITY }).toBuffer({
                resolveWithObject: true,
              });
        const mediaType = info.format === "png" ? "image/png" : "image/jpeg";
        return { isBlank, bytes: data, mediaType, width: info.width, height: info.height };
      } catch (cause) {
        throw new QuarryError("file_unreadable", "the picture is damaged: it cannot be decoded", { cause });
      }
    },
  };
});
