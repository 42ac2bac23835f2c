import { openExtractor } from "../../../src/adapters/extract/local.ts";
import { testExtractor } from "./conformance.ts";

testExtractor("the extractor on liteparse", (settings) => openExtractor({ processes: 1, ...settings }));
