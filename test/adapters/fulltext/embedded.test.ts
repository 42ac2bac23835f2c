import { freshIndex } from "../index-file.ts";
import { testTextIndex } from "./conformance.ts";

testTextIndex("a file", async () => {
  const { index, close } = await freshIndex({ dimensions: 4 });
  return { index: index.fulltext, close };
});
