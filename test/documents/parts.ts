import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Embedder } from "../../src/adapters/embed.ts";
import { openEmbeddedIndex } from "../../src/adapters/embedded-index.ts";
import type { EntityExtractor } from "../../src/adapters/entities.ts";
import type { Extractor, SourceFile } from "../../src/adapters/extract.ts";
import { openFolderFiles } from "../../src/adapters/files/folder.ts";
import { openSqlGraph } from "../../src/adapters/graph/sql.ts";
import type { Ocr } from "../../src/adapters/ocr.ts";
import { Documents } from "../../src/documents/documents.ts";
import { DocumentFiles } from "../../src/documents/files.ts";
import type { PipelineParts } from "../../src/documents/lane-parts.ts";
import { documentLanes } from "../../src/documents/lanes.ts";
import { documentQueues } from "../../src/documents/queues.ts";
import { prepareQueue, QuarryError } from "../../src/index.ts";
import { Crew } from "../../src/queue/crew.ts";
import type { TestDatabase } from "../support/databases.ts";

/**
 * Readers and models that do next to nothing and count how often they are asked, so that tests can tell whether
 * anything was done twice. Databases, files, index and graph are the real ones.
 *
 * A file is plain text; a form feed ends a page. A page that begins with [scan] has to go through OCR.
 */
export class Calls {
  readonly inspected: string[] = [];
  readonly recognised: string[] = [];
  readonly embedded: string[] = [];
  readonly extracted: string[] = [];
  /** Called before each piece of work; throws or waits to make it fail or take long. */
  before: (
    step: "inspect" | "read" | "ocr" | "embed" | "entities",
    text: string,
    signal: AbortSignal,
  ) => Promise<void> | void = () => undefined;
}

export interface Pipeline {
  readonly parts: PipelineParts;
  readonly documents: Documents;
  readonly calls: Calls;
  /** Of the index and of the documents' files, unless those are kept elsewhere. */
  readonly dataFolder: string;
  /** Runs every lane until the work is done. */
  drain(): Promise<void>;
  crew(): Promise<Crew>;
  close(): Promise<void>;
}

const STALE_MS = 2_000;
const DIMENSIONS = 32;

/** `others` take the places of those that do next to nothing. */
export async function openPipeline(
  opened: TestDatabase,
  others: Partial<PipelineParts> = {},
): Promise<Pipeline> {
  const { database, folder } = opened;
  const calls = new Calls();
  const queues = documentQueues({ staleMs: STALE_MS });
  for (const queue of Object.values(queues)) await prepareQueue(database, queue);
  const dataFolder = join(folder, "data");
  const files = new DocumentFiles(openFolderFiles(dataFolder));
  const embedder = countingEmbedder(calls);
  const index = await openEmbeddedIndex({
    path: join(dataFolder, "index.db"),
    model: embedder.model,
    dimensions: embedder.dimensions,
  });
  const parts: PipelineParts = {
    database,
    queues,
    files,
    extractor: countingExtractor(calls),
    ocr: countingOcr(calls),
    embedder,
    entities: countingEntities(calls),
    vectors: index.vectors,
    fulltext: index.fulltext,
    graph: openSqlGraph(database),
    pollMs: 50,
    ocrThreads: 1,
    ...others,
  };
  const documents = new Documents({ ...parts, attemptsMax: 3, fileBytesMax: 1_000_000 });
  const crew = () =>
    new Crew({
      database,
      lanes: documentLanes(parts),
      heartbeatMs: 300,
      checkEveryMs: 300,
      staleMs: STALE_MS,
      pollMs: 50,
      graceMs: 2_000,
    }).start();
  return {
    parts,
    documents,
    calls,
    dataFolder,
    crew,
    drain: async () => {
      const running = await crew();
      await until(async () => (await documents.progress()).open === 0);
      await running.stop();
    },
    close: async () => index.close(),
  };
}

export async function until(isTrue: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 20));
}

async function pagesOf(file: SourceFile): Promise<string[]> {
  return (await readFile(file.path, "utf8")).split("\f");
}

function countingExtractor(calls: Calls): Extractor {
  return {
    version: "test",
    inspect: async (file, signal) => {
      const pages = await pagesOf(file);
      await calls.before("inspect", pages.join("\f"), signal);
      calls.inspected.push(file.filename);
      if (pages[0]!.startsWith("[broken]")) throw new QuarryError("file_unreadable", "it is broken");
      return { mediaType: "text/plain", pageCount: pages.length, title: undefined, furniture: [] };
    },
    read: async (file, request, signal) => {
      const pages = await pagesOf(file);
      const asked = request.pages.filter((pageNumber) => pageNumber <= pages.length);
      for (const pageNumber of asked) await calls.before("read", pages[pageNumber - 1]!, signal);
      return asked.map((pageNumber) => {
        const text = pages[pageNumber - 1]!;
        const needsOcr = text.startsWith("[scan]");
        return { pageNumber, markdown: needsOcr ? "" : text, needsOcr };
      });
    },
    picture: async (file, pageNumber) => Buffer.from((await pagesOf(file))[pageNumber - 1]!),
    close: async () => undefined,
  };
}

function countingOcr(calls: Calls): Ocr {
  return {
    version: "test",
    recognise: async (picture, signal) => {
      const text = Buffer.from(picture).toString("utf8");
      await calls.before("ocr", text, signal);
      calls.recognised.push(text);
      return { markdown: text.replace("[scan]", "").trim(), confidence: 0.9 };
    },
    close: async () => undefined,
  };
}

/** Texts with the same words are near each other. */
function countingEmbedder(calls: Calls): Embedder {
  return {
    model: "test",
    dimensions: DIMENSIONS,
    tokensMax: 128,
    tokenizer: { count: (text) => text.split(/\s+/).filter(Boolean).length },
    embed: async (texts, signal) => {
      for (const text of texts) await calls.before("embed", text, signal);
      calls.embedded.push(...texts);
      return { vectors: texts.map(vectorOf), tokens: 0 };
    },
    close: async () => undefined,
  };
}

export function vectorOf(text: string): Float32Array {
  const vector = new Float32Array(DIMENSIONS);
  for (const word of text.toLowerCase().match(/\w+/g) ?? ["nothing"])
    vector[createHash("sha256").update(word).digest()[0]! % DIMENSIONS]! += 1;
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}

/** Every word with a capital letter is a person. */
function countingEntities(calls: Calls): EntityExtractor {
  return {
    model: "test",
    textsMax: 64,
    callsMax: 1,
    extract: async (texts, signal) => {
      for (const text of texts) await calls.before("entities", text, signal);
      calls.extracted.push(...texts);
      return texts.map((text) => ({
        entities: [...text.matchAll(/\b[A-Z][a-z]+\b/g)].map((match) => ({
          name: match[0],
          type: "person",
          confidence: 0.8,
          start: match.index,
          end: match.index + match[0].length,
        })),
        relations: [],
      }));
    },
    close: async () => undefined,
  };
}
