import { defineLane, type LaneDeclaration } from "../queue/lane.ts";
import { done } from "../queue/outcome.ts";
import { chunkLane } from "./chunk-pages.ts";
import { vectorLane } from "./embed-chunks.ts";
import { FactBook } from "./facts.ts";
import { InFlight } from "./in-flight.ts";
import type { LaneParts, PipelineParts } from "./lane-parts.ts";
import { PageReader } from "./page-reader.ts";
import { ocrLane, scanLane } from "./read-pages.ts";
import { graphragLane } from "./relate-chunks.ts";
import { removalLane } from "./removals.ts";
import { splitLane } from "./split-documents.ts";
import { openStepCache } from "./step-cache.ts";

/** One lane for each arrow of the hierarchy, and one that takes away what is no longer wanted. */
export function documentLanes(pipeline: PipelineParts): LaneDeclaration<object>[] {
  const parts: LaneParts = {
    ...pipeline,
    facts: new FactBook(pipeline.database),
    reader: new PageReader(pipeline),
    cache: openStepCache(pipeline.database),
    recognising: new InFlight(),
    embedding: new InFlight(),
    extracting: new InFlight(),
  };
  return [
    splitLane(parts),
    ocrLane(parts),
    scanLane(parts),
    chunkLane(parts),
    pagesWithoutTextLane(parts),
    vectorLane(parts),
    graphragLane(parts),
    removalLane(parts),
  ];
}

/** There is nothing to extract from a page that has no chunks. */
function pagesWithoutTextLane({ queues, pollMs }: LaneParts): LaneDeclaration<object> {
  return defineLane({ queue: queues.pageGraphrag, pollMs, handle: () => done() });
}
