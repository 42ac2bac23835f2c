import type { Contender } from "../queue/contender.ts";
import { bullmq } from "./bullmq.ts";
import { quarryRag } from "./quarry.ts";

/** What another process needs to know to be the same contenders. */
export interface RagPlace {
  readonly url: string;
  readonly folder: string;
}

const CONCURRENCIES = [50, 100, 200, 400];

/** Quarry first, then BullMQ with the settings among which it is best. */
export function ragContenders(place: RagPlace): Contender[] {
  return [quarryRag(place), ...CONCURRENCIES.map((concurrency) => bullmq(place.url, concurrency))];
}
