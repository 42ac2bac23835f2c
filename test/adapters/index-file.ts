import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type EmbeddedIndex, openEmbeddedIndex } from "../../src/adapters/embedded-index.ts";

/** An empty index in a folder of its own, gone afterwards. */
export async function freshIndex(settings: {
  dimensions: number;
}): Promise<{ index: EmbeddedIndex; path: string; close: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), "quarry-test-"));
  const path = join(folder, "index.db");
  const index = await openEmbeddedIndex({ path, model: "test", ...settings });
  return {
    index,
    path,
    close: async () => {
      await index.close();
      await rm(folder, { recursive: true });
    },
  };
}
