import { readFileSync } from "node:fs";

/** Of this program, as its package says. Beside src in a checkout, beside dist in a package. */
export const VERSION = String(
  JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")).version,
);
