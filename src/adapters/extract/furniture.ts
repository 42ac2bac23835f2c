import type { PdfPageText, Segment } from "./pdf-engine.ts";

/**
 * Headers and footers: lines that stand in the same place of several pages, at the edge and apart from the text. Each
 * is kept as where and what, with its numbers masked: `bottom 34 page # of #`.
 */
type Edge = "top" | "bottom";

interface Place {
  readonly edge: Edge;
  /** Points from that edge of the page. */
  readonly distance: number;
  readonly text: string;
}

interface EdgeSegment extends Place {
  readonly pageNumber: number;
  /** Larger or bolder than the text, as headings are. */
  readonly isEmphasised: boolean;
}

/** How far the edges reach into the page, and how many lines may stand there. */
const EDGE_SHARE = 0.14;
const EDGE_LINES_MAX = 3;
/** Between header and text is more room than between lines, measured in line heights. */
const GAP_HEIGHTS = 0.6;
const SAME_PLACE_POINTS = 6;
const PAGES_TO_BE_SURE = 3;
const HEADING_HEIGHTS = 1.1;

export function findFurniture(pages: readonly PdfPageText[]): string[] {
  const places = Map.groupBy(pages.flatMap(edgeSegments), ({ edge, text }) => `${edge} ${masked(text)}`);
  const enough = Math.min(PAGES_TO_BE_SURE, Math.max(2, pages.length));
  return [...places.values()]
    .flatMap((segments) => {
      const distance = usualDistance(segments);
      const alike = segments.filter((segment) => isNear(segment.distance, distance));
      const [first] = alike;
      const isFurniture = first && alike.length >= enough && doNumbersFit(alike, enough);
      return isFurniture ? [entryOf({ ...first, distance })] : [];
    })
    .sort();
}

/**
 * "Page 3" and "Page 4" are a footer; "Article 3" and "Article 9" are headings that chance put in one place, and so
 * are "Exercise 3" and "Exercise 4" in large type. Numbers have to stay as they are, or to go with the pages.
 */
function doNumbersFit(segments: readonly EdgeSegment[], enough: number): boolean {
  const numbers = segments.map(({ text }) => text.match(/\d+/g)?.map(Number) ?? []);
  const places = numbers[0]!.keys();
  return [...places].every((place) => {
    const values = numbers.map((found) => found[place] ?? Number.NaN);
    if (mostAlike(values) >= enough) return true;
    const offsets = values.map((value, position) => value - segments[position]!.pageNumber);
    return mostAlike(offsets) >= enough && !segments.every(({ isEmphasised }) => isEmphasised);
  });
}

function mostAlike(values: readonly number[]): number {
  const counts = new Map<number, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return Math.max(...counts.values());
}

/** The texts on this page that are furniture, or a page number that says so itself. */
export function furnitureOn(page: PdfPageText, furniture: readonly string[]): { edge: Edge; text: string }[] {
  const known = furniture.map(parseEntry);
  return edgeSegments(page).filter(
    (segment) =>
      isPageNumber(segment.text) ||
      known.some(
        (entry) =>
          entry.edge === segment.edge &&
          entry.text === masked(segment.text) &&
          isNear(entry.distance, segment.distance),
      ),
  );
}

function entryOf({ edge, distance, text }: Place): string {
  return `${edge} ${Math.round(distance)} ${masked(text)}`;
}

function parseEntry(entry: string): Place {
  const [edge, distance, ...words] = entry.split(" ");
  return { edge: edge as Edge, distance: Number(distance), text: words.join(" ") };
}

function isNear(a: number, b: number): boolean {
  return Math.abs(a - b) <= SAME_PLACE_POINTS;
}

function usualDistance(segments: readonly Place[]): number {
  return median(segments.map(({ distance }) => distance));
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

/** "Page 12 of 90", "– iv –": of no use without the page. A bare number only counts when it repeats. */
function isPageNumber(text: string): boolean {
  return /^(page|seite|página|pagina|p\.)\s*[\divxlc]+(\s*(of|\/|von|de|di|sur)\s*\d+)?$/i.test(text.trim());
}

/** Pages 3 and 4 of a report have the same footer. */
export function masked(text: string): string {
  return text
    .normalize("NFKC")
    .toLowerCase()
    .replaceAll(/\d+/g, "#")
    .replaceAll(/(?<![\p{L}#])[ivxlc]+(?![\p{L}#])/gu, "#")
    .replaceAll(/\s+/g, " ")
    .trim();
}

function edgeSegments(page: PdfPageText): EdgeSegment[] {
  const lines = linesOf(page.segments);
  const fromBelow = lines
    .map((line) => ({ ...line, top: page.height - line.bottom, bottom: page.height - line.top }))
    .reverse();
  const usualHeight = median(page.segments.map(heightOf));
  const placed = (edge: Edge, line: Line) =>
    line.segments
      .filter(({ text }) => text.trim() !== "")
      .map((segment) => ({
        edge,
        distance: edge === "top" ? segment.top : page.height - segment.bottom,
        text: segment.text,
        pageNumber: page.pageNumber,
        isEmphasised: segment.isBold || heightOf(segment) > usualHeight * HEADING_HEIGHTS,
      }));
  return [
    ...outerLines(lines, page.height).flatMap((line) => placed("top", line)),
    ...outerLines(fromBelow, page.height).flatMap((line) => placed("bottom", line)),
  ];
}

function heightOf({ top, bottom }: Segment): number {
  return bottom - top;
}

interface Line {
  readonly top: number;
  readonly bottom: number;
  readonly segments: readonly Segment[];
}

function linesOf(segments: readonly Segment[]): Line[] {
  const lines: { top: number; bottom: number; segments: Segment[] }[] = [];
  for (const segment of [...segments].sort((a, b) => a.top - b.top)) {
    const line = lines.at(-1);
    const middle = (segment.top + segment.bottom) / 2;
    if (line && middle < line.bottom) {
      line.segments.push(segment);
      line.bottom = Math.max(line.bottom, segment.bottom);
    } else lines.push({ top: segment.top, bottom: segment.bottom, segments: [segment] });
  }
  return lines;
}

/** The lines before the first gap, seen from the edge; none when the text itself reaches that far. */
function outerLines(lines: readonly Line[], pageHeight: number): readonly Line[] {
  for (let count = 1; count <= EDGE_LINES_MAX; count++) {
    const line = lines[count - 1];
    if (!line || line.bottom > pageHeight * EDGE_SHARE) return [];
    const next = lines[count];
    const gap = next ? next.top - line.bottom : Number.POSITIVE_INFINITY;
    if (gap > (line.bottom - line.top) * GAP_HEIGHTS) return lines.slice(0, count);
  }
  return [];
}
