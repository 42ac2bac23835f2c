import { openExtractor } from "../../../src/adapters/extract/local.ts";
import { testExtractor } from "./conformance.ts";

testExtractor("the extractor on unpdf", (settings) =>
  openExtractor({ processes: 1, pdfEngine: "unpdf", ...settings }),
);
