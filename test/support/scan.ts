import { LiteParse } from "@llamaindex/liteparse";
import { LETTER, makePdf, type PdfFont, type PdfPage, type PdfText, text } from "./make-pdf.ts";
import { decodePng, type Gray } from "./png.ts";

const MARGIN = 60;
/** Of the height of the type, on average: lines stay on the page. */
const LETTER_WIDTHS: Record<PdfFont, number> = { regular: 0.51, bold: 0.55, serif: 0.45, mono: 0.6 };

/** Pictures of pages as a scanner leaves them: drawn from known text, then spoilt in a way that can be repeated. */
export async function drawPages(pages: readonly PdfPage[], dpi: number): Promise<Gray[]> {
  const renderer = new LiteParse({ dpi, ocrEnabled: false, quiet: true });
  const shots = await renderer.screenshot(makePdf({ pages }));
  return shots.map((shot) => decodePng(shot.imageBuffer));
}

export interface Wear {
  /** The paper lies askew by so many degrees, counter-clockwise. */
  readonly skewDegrees?: number;
  /** One pixel is left of so many on each side. */
  readonly shrink?: number;
  /** Standard deviation of the sensor's noise, in shades of gray. */
  readonly noise?: number;
  /** Paper and ink in shades of gray, where they are not white and black. */
  readonly paper?: number;
  readonly ink?: number;
  readonly seed?: number;
}

export function wear(page: Gray, how: Wear): Gray {
  const turned = how.skewDegrees ? turn(page, how.skewDegrees) : page;
  const small = how.shrink ? shrink(turned, how.shrink) : turned;
  const { paper = 255, ink = 0, noise = 0 } = how;
  const next = randomFrom(how.seed ?? 1);
  const pixels = small.pixels.map((shade) => {
    const faded = ink + (shade / 255) * (paper - ink);
    return Math.min(255, Math.max(0, Math.round(faded + noise * normal(next))));
  });
  return { ...small, pixels };
}

/** About the middle, with white coming in at the corners. */
function turn(page: Gray, degrees: number): Gray {
  const { width, height } = page;
  const [sine, cosine] = [Math.sin((degrees * Math.PI) / 180), Math.cos((degrees * Math.PI) / 180)];
  const [middleX, middleY] = [width / 2, height / 2];
  const pixels = new Uint8Array(width * height);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const [fromX, fromY] = [x - middleX, y - middleY];
      const at = { x: middleX + fromX * cosine - fromY * sine, y: middleY + fromX * sine + fromY * cosine };
      pixels[y * width + x] = between(page, at);
    }
  return { width, height, pixels };
}

/** The shade at a place between four pixels. */
function between(page: Gray, at: { x: number; y: number }): number {
  const [x, y] = [Math.floor(at.x), Math.floor(at.y)];
  if (x < 0 || y < 0 || x + 1 >= page.width || y + 1 >= page.height) return 255;
  const [right, down] = [at.x - x, at.y - y];
  const corner = y * page.width + x;
  const top = page.pixels[corner]! * (1 - right) + page.pixels[corner + 1]! * right;
  const below = corner + page.width;
  const bottom = page.pixels[below]! * (1 - right) + page.pixels[below + 1]! * right;
  return top * (1 - down) + bottom * down;
}

function shrink(page: Gray, factor: number): Gray {
  const [width, height] = [Math.floor(page.width / factor), Math.floor(page.height / factor)];
  const pixels = new Uint8Array(width * height);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      let sum = 0;
      for (let row = 0; row < factor; row++)
        for (let column = 0; column < factor; column++)
          sum += page.pixels[(y * factor + row) * page.width + x * factor + column]!;
      pixels[y * width + x] = sum / (factor * factor);
    }
  return { width, height, pixels };
}

export function turnUpsideDown(page: Gray): Gray {
  return { ...page, pixels: page.pixels.toReversed() };
}

/** Numbers in [0, 1) that are the same every time (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Normally distributed, by Box and Muller. */
function normal(next: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
}

/** Lines as wide as the page allows, from the top left. */
export function printedPage(paragraphs: readonly string[], print: { font: PdfFont; size: number }): PdfPage {
  const letters = Math.floor((LETTER.width - 2 * MARGIN) / (print.size * LETTER_WIDTHS[print.font]));
  const leading = print.size * 1.35;
  const items: PdfText[] = [];
  let y = MARGIN;
  for (const paragraph of paragraphs) {
    for (const line of wrap(paragraph, letters)) {
      y += leading;
      items.push(text(line, { x: MARGIN, y, ...print }));
    }
    y += leading * 0.7;
  }
  return { items };
}

function wrap(paragraph: string, letters: number): string[] {
  const lines: string[] = [];
  for (const word of paragraph.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= letters) lines.push(`${lines.pop()} ${word}`);
    else lines.push(word);
  }
  return lines;
}
