import { freshIndex } from "../index-file.ts";
import { SUITE_DIMENSIONS, testVectorStore } from "./conformance.ts";

testVectorStore("a file", async () => {
  const { index, close } = await freshIndex({ dimensions: SUITE_DIMENSIONS });
  return { store: index.vectors, close };
});
