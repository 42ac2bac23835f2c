import { availableParallelism } from "node:os";
import type { Embedder } from "../embed.ts";
import { besides, Isolates } from "../isolate.ts";
import { LOCAL_MODEL } from "./choice.ts";
import { openTokenizer } from "./tokenizer.ts";

export interface LocalEmbedderSettings {
  /** How many texts are embedded at once, each in a process of its own. */
  readonly processes?: number;
  /** For a call of `TEXTS_PER_CALL` texts. */
  readonly deadlineMs?: number;
}

const DIMENSIONS = 384;
/** The window of 256 less the marks before and after a text. */
const TOKENS_MAX = 254;
/** Each process takes some 200 MB. */
const PROCESSES_MAX = 4;
/** Few enough that processes share the work evenly and an aborted call soon makes room. */
const TEXTS_PER_CALL = 4;

/** A small model that comes with the package and runs on the processor, in processes of its own. */
export async function openLocalEmbedder(settings: LocalEmbedderSettings = {}): Promise<Embedder> {
  const isolates = new Isolates({
    name: "the embedder",
    module: besides(import.meta.url, "local-process"),
    size: settings.processes ?? Math.min(availableParallelism(), PROCESSES_MAX),
    deadlineMs: settings.deadlineMs ?? 120_000,
    memoryMb: 1024,
    // Loading the model again costs more than finishing a few texts that nobody waits for.
    isKilledOnAbort: false,
    setup: { tokensMax: TOKENS_MAX },
  });
  const tokenizer = await openTokenizer(LOCAL_MODEL);
  return {
    model: LOCAL_MODEL,
    dimensions: DIMENSIONS,
    tokensMax: TOKENS_MAX,
    tokenizer,
    embed: async (texts, signal) => {
      const calls = slices(texts).map((some) => isolates.call<Float32Array[]>("embed", some, { signal }));
      return { vectors: (await Promise.all(calls)).flat(), tokens: sumOf(texts, tokenizer.count) };
    },
    close: async () => isolates.close(),
  };
}

function sumOf(texts: readonly string[], count: (text: string) => number): number {
  return texts.reduce((sum, text) => sum + count(text), 0);
}

function slices(texts: readonly string[]): (readonly string[])[] {
  const count = Math.ceil(texts.length / TEXTS_PER_CALL);
  return Array.from({ length: count }, (_, index) =>
    texts.slice(index * TEXTS_PER_CALL, (index + 1) * TEXTS_PER_CALL),
  );
}
