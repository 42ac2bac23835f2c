import type { Embedder } from "../embed.ts";
import { besides, Isolates } from "../isolate.ts";
import { openTokenizer } from "./tokenizer.ts";

export interface LocalEmbedderSettings {
  /** Threads that one text batch is spread over. */
  readonly threads?: number;
  readonly deadlineMs?: number;
}

const MODEL = "all-MiniLM-L6-v2-q8";
const DIMENSIONS = 384;
/** The window of 256 less the marks before and after a text. */
const TOKENS_MAX = 254;

/** A small model that comes with the package and runs on the processor, in a thread of its own. */
export async function openLocalEmbedder(settings: LocalEmbedderSettings = {}): Promise<Embedder> {
  const isolates = new Isolates({
    name: "the embedder",
    module: besides(import.meta.url, "local-thread"),
    kind: "thread",
    size: 1,
    deadlineMs: settings.deadlineMs ?? 300_000,
    memoryMb: 1024,
    // Loading the model again costs more than finishing a batch that nobody waits for.
    isKilledOnAbort: false,
    setup: { threads: settings.threads ?? 0, tokensMax: TOKENS_MAX },
  });
  return {
    model: MODEL,
    dimensions: DIMENSIONS,
    tokensMax: TOKENS_MAX,
    tokenizer: await openTokenizer(MODEL),
    embed: (texts, signal) =>
      texts.length === 0 ? Promise.resolve([]) : isolates.call("embed", texts, { signal }),
    close: async () => isolates.close(),
  };
}
