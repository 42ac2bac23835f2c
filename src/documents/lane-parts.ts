import type { Embedder } from "../adapters/embed.ts";
import type { EntityExtractor, Extraction } from "../adapters/entities.ts";
import type { Extractor } from "../adapters/extract.ts";
import type { TextIndex } from "../adapters/fulltext.ts";
import type { GraphStore } from "../adapters/graph.ts";
import type { Ocr, Recognised } from "../adapters/ocr.ts";
import type { VectorStore } from "../adapters/vectors.ts";
import type { Database } from "../database/database.ts";
import type { FactBook } from "./facts.ts";
import type { DocumentFiles } from "./files.ts";
import type { InFlight } from "./in-flight.ts";
import type { PageReader } from "./page-reader.ts";
import type { DocumentQueues } from "./queues.ts";
import type { StepCache } from "./step-cache.ts";

/** What the lanes work with. */
export interface PipelineParts {
  readonly database: Database;
  readonly queues: DocumentQueues;
  readonly files: DocumentFiles;
  readonly extractor: Extractor;
  readonly ocr: Ocr;
  readonly embedder: Embedder;
  readonly entities: EntityExtractor;
  readonly vectors: VectorStore;
  readonly fulltext: TextIndex;
  readonly graph: GraphStore;
  readonly pollMs: number;
  /** How many pages OCR reads at once. */
  readonly ocrThreads: number;
}

export interface LaneParts extends PipelineParts {
  readonly facts: FactBook;
  readonly reader: PageReader;
  readonly cache: StepCache;
  readonly recognising: InFlight<Recognised>;
  readonly embedding: InFlight<Float32Array>;
  /** An error is what became of one text, whatever became of those beside it. */
  readonly extracting: InFlight<Extraction | Error>;
}
