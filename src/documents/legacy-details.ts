/** What is read of a page in `ocr_details`. */
export interface LegacyPage {
  readonly pageNumber: number;
  readonly filePath?: string;
  readonly isFailed: boolean;
  readonly error?: string;
}

/** What is read of a chunk in `indexing_details`. */
export interface LegacyChunk {
  readonly pageNumber: number;
  readonly chunkIndex: number;
  readonly chunkId: string;
  readonly contentHash?: string;
  readonly content?: string;
  readonly entities: number;
  readonly relationships: number;
}

type Json = Readonly<Record<string, unknown>>;

/**
 * The old system kept these details as JSON that nothing checked. A list of pages may stand alone, under `pages`, or
 * as one member per page; names come in a few spellings.
 */
export function readOcrDetails(details: unknown): LegacyPage[] {
  const entries = entriesOf(parsed(details), ["pages", "page_details", "results"]);
  const pages = new Map<number, LegacyPage>();
  for (const [position, name, entry] of entries) {
    const pageNumber =
      numberIn(entry, ["page_number", "page_no", "page", "number"]) ?? trailingNumber(name) ?? position + 1;
    const filePath = textIn(entry, [
      "page_file_path",
      "nohf_path",
      "markdown_path",
      "md_path",
      "file_path",
      "path",
    ]);
    const error = textIn(entry, ["error", "error_message", "message"]);
    const status = textIn(entry, ["status", "ocr_status", "state"])?.toLowerCase();
    const isFailed = status !== undefined && ["failed", "error", "failure"].includes(status);
    pages.set(pageNumber, {
      pageNumber,
      isFailed,
      ...(filePath !== undefined && { filePath }),
      ...(isFailed && { error: error ?? "failed in the old system" }),
    });
  }
  return [...pages.values()].filter(({ pageNumber }) => pageNumber >= 1);
}

/** A list of chunks, alone, under `chunks`, or under the `chunks` of each page. */
export function readIndexingDetails(details: unknown): LegacyChunk[] {
  const value = parsed(details);
  const found: { pageNumber: number; chunk: Json }[] = [];
  const collect = (holder: unknown, fallback: number) => {
    for (const [, , chunk] of entriesOf(holder, ["chunks", "chunk_details"]))
      found.push({ pageNumber: numberIn(chunk, ["page_number", "page_no", "page"]) ?? fallback, chunk });
  };
  const pages = isObject(value) && !("chunks" in value) ? entriesOf(value, ["pages"]) : [];
  const withChunks = pages.filter(([, , page]) => "chunks" in page);
  if (withChunks.length === 0) collect(value, 1);
  for (const [position, name, page] of withChunks)
    collect(page, numberIn(page, ["page_number", "page_no", "page"]) ?? trailingNumber(name) ?? position + 1);
  return numbered(found);
}

/** Positions are unique within a page, whatever the old numbers were. */
function numbered(found: readonly { pageNumber: number; chunk: Json }[]): LegacyChunk[] {
  const next = new Map<number, number>();
  return found.map(({ pageNumber, chunk }) => {
    const chunkIndex = next.get(pageNumber) ?? 0;
    next.set(pageNumber, chunkIndex + 1);
    const contentHash = textIn(chunk, ["chunk_content_hash", "content_hash", "hash"]);
    const content = textIn(chunk, ["content", "text", "page_content"]);
    return {
      pageNumber,
      chunkIndex,
      chunkId: textIn(chunk, ["chunk_id", "id", "point_id"]) ?? `${pageNumber}-${chunkIndex}`,
      ...(contentHash !== undefined && { contentHash: contentHash.slice(0, 64) }),
      ...(content !== undefined && { content }),
      entities: numberIn(chunk, ["entities_extracted", "entities", "entity_count"]) ?? 0,
      relationships: numberIn(chunk, ["relationships_extracted", "relationships", "relation_count"]) ?? 0,
    };
  });
}

function parsed(value: unknown): unknown {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    return undefined;
  }
}

/** Position, name and object of each entry, wherever the list is. */
function entriesOf(value: unknown, names: readonly string[]): [number, string, Json][] {
  if (Array.isArray(value))
    return value.flatMap((entry, position) => (isObject(entry) ? [[position, "", entry]] : [])) as [
      number,
      string,
      Json,
    ][];
  if (!isObject(value)) return [];
  for (const name of names) if (value[name] !== undefined) return entriesOf(value[name], []);
  const objects = Object.entries(value).filter((entry): entry is [string, Json] => isObject(entry[1]));
  return objects.map(([name, entry], position) => [position, name, entry]);
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function textIn(value: Json, names: readonly string[]): string | undefined {
  for (const name of names) {
    const found = value[name];
    if (typeof found === "string" && found !== "") return found;
    if (typeof found === "number") return String(found);
  }
  return undefined;
}

/** A list counts as its length. */
function numberIn(value: Json, names: readonly string[]): number | undefined {
  for (const name of names) {
    const found = value[name];
    if (Array.isArray(found)) return found.length;
    if (typeof found === "number" && Number.isInteger(found)) return found;
    if (typeof found === "string" && /^\d{1,9}$/.test(found)) return Number(found);
  }
  return undefined;
}

function trailingNumber(name: string): number | undefined {
  const digits = /(\d{1,9})$/.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}
