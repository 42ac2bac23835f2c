import { defineSuite } from "../suite.ts";
import { identicalCopies } from "./copies.ts";
import { firstChunk } from "./first-chunk.ts";
import { memoryOfLongDocuments } from "./memory.ts";
import { scannedPages } from "./ocr.ts";
import { FULL_SCALE, QUICK_SCALE, type Scene } from "./scene.ts";
import { searchLatency } from "./search.ts";
import { samplesThroughput } from "./throughput.ts";

export const pipelineSuite = defineSuite<Scene>({
  measures: {
    throughput: samplesThroughput,
    ocr: scannedPages,
    copies: identicalCopies,
    "first-chunk": firstChunk,
    memory: memoryOfLongDocuments,
    search: searchLatency,
  },
  remark: "All embed with one model, on the processor.",
  withScene: ({ folder, isQuick }, work) => work({ folder, scale: isQuick ? QUICK_SCALE : FULL_SCALE }),
});
