import { QuarryError } from "../../errors.ts";
import { imagePages } from "../extract/image-header.ts";

const SIGNATURES = { png: [0x89, 0x50, 0x4e, 0x47], jpeg: [0xff, 0xd8, 0xff] } as const;

/** Tells from the header alone whether the engine should be given a picture: PNG or JPEG, and not huge. */
export function checkPicture(picture: Uint8Array, pixelsMax: number): void {
  const { width, height } = sizeOf(picture);
  if (width * height > pixelsMax)
    throw new QuarryError(
      "file_too_large",
      `a picture of ${width} x ${height} pixels is too large for OCR: at most ${pixelsMax} pixels are read, so scan it at a lower resolution`,
    );
}

function sizeOf(picture: Uint8Array): { readonly width: number; readonly height: number } {
  const format = (["png", "jpeg"] as const).find((name) =>
    SIGNATURES[name].every((byte, position) => picture[position] === byte),
  );
  if (!format)
    throw new QuarryError("file_unreadable", "the picture is neither PNG nor JPEG, or it is damaged");
  try {
    return imagePages(Buffer.from(picture.buffer, picture.byteOffset, picture.byteLength), format)[0]!;
  } catch (cause) {
    throw new QuarryError("file_unreadable", "the picture is damaged: its size cannot be read", { cause });
  }
}
