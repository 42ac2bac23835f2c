import { z } from "zod";
import type { Quarry } from "../app.ts";
import type { Clock } from "../clock.ts";
import { ENQUEUE_VERDICTS } from "../ingest/items.ts";
import { ITEM_STATUSES } from "../ingest/queue.ts";
import type { Hands } from "./hands.ts";

/** What tools and resources work with. */
export interface McpParts {
  readonly quarry: Quarry;
  readonly hands: Hands;
  readonly clock: Clock;
}

export const tenant = z
  .string()
  .min(1)
  .max(100)
  .optional()
  .describe('Whose documents; "default" unless said. Leave it out unless the user names one.');
export const collection = z
  .string()
  .min(1)
  .max(100)
  .optional()
  .describe("A named group of documents, such as a subject or a project.");
export const listedMax = (max: number, usual: number) =>
  z.int().min(1).max(max).default(usual).describe(`How many at most, up to ${max}.`);
export const after = z
  .string()
  .min(1)
  .max(500)
  .optional()
  .describe("`next` of the answer before, for the page that follows it.");
export const next = z
  .string()
  .optional()
  .describe("Give it as `after` to get more; there is none at the end.");

export const count = (what: string) => z.int().min(0).describe(what);
export const Verdict = z
  .enum(ENQUEUE_VERDICTS)
  .describe(
    "queued; merged into the same one that waits; runs_again after the same one that runs; requeued, as it was done before.",
  );
export const Status = z.enum(ITEM_STATUSES);
/** "cancelled" is no row's status: the row is gone. */
export const Reached = z
  .enum([...ITEM_STATUSES, "cancelled"])
  .describe("done: it can be searched; pending and in_progress: it goes on after this answer.");
