import { join } from "node:path";
import { describe, it } from "node:test";
import { BREAKS, brokenSource } from "./breaks.ts";

describe("deliberate mistakes", () => {
  it("each still finds the piece of source that it breaks", () => {
    for (const mistake of BREAKS) brokenSource(join(import.meta.dirname, "../.."), mistake);
  });
});
