import type { EntityExtractor } from "../entities.ts";
import { besides, Isolates } from "../isolate.ts";

const MODEL = "wink-eng-lite+compromise-3";
const TEXTS_MAX = 64;

/** Rules and small dictionaries that come with the package, for English, in a process of their own. */
export async function openLocalEntities(settings: { deadlineMs?: number } = {}): Promise<EntityExtractor> {
  const isolates = new Isolates({
    name: "the entity extractor",
    module: besides(import.meta.url, "local-process"),
    size: 1,
    deadlineMs: settings.deadlineMs ?? 120_000,
    memoryMb: 512,
    isKilledOnAbort: false,
  });
  return {
    model: MODEL,
    // One process reads them all, and never fails for one text alone.
    textsMax: TEXTS_MAX,
    callsMax: 1,
    extract: (texts, signal) =>
      texts.length === 0 ? Promise.resolve([]) : isolates.call("extract", texts, { signal }),
    close: async () => isolates.close(),
  };
}
