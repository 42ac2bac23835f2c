import { z } from "@hono/zod-openapi";

/** Shapes that several files of routes answer with. */
export const Metadata = z.record(z.string(), z.unknown()).describe("What was said about the document.");

export const Counts = z
  .strictObject({ total: z.int(), completed: z.int(), failed: z.int(), processing: z.int() })
  .openapi("Counts");

/** What a tenant or a collection is asked for by. */
export const name = (what: string) => z.string().min(1).max(100).describe(what);

/** What a machine is asked for by. */
export const machine = (what: string) => z.string().min(1).max(255).describe(what);

export const LaneWait = z
  .strictObject({
    lane: z.string(),
    reason: z.string().describe("What is away that its tasks need; they wait at the cost of no attempt."),
    since: z.string(),
  })
  .openapi("LaneWait");
