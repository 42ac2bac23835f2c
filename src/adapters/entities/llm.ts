import type { EntityExtractor, Extraction } from "../entities.ts";
import { completeAs, type Llm } from "../llm.ts";
import { tokenShares } from "../token-shares.ts";
import { foundInText } from "./in-text.ts";
import { findingsRequest, PROMPT_VERSION } from "./llm-prompt.ts";

/** Few enough that a model keeps them apart; what it is told beside them costs as much as a text. */
const TEXTS_MAX = 4;
const CALLS_MAX = 4;
/** Chunks are far shorter; what else comes is cut rather than refused. */
const TEXT_CHARS_MAX = 20_000;

/** A language model reads the texts. Of what it says, only what stands in them is believed. Closing it closes the model. */
export function openLlmEntities(llm: Llm): EntityExtractor {
  return {
    model: `${llm.model} prompt ${PROMPT_VERSION}`,
    textsMax: TEXTS_MAX,
    callsMax: CALLS_MAX,
    async extract(texts, signal) {
      signal.throwIfAborted();
      const extractions: Extraction[] = texts.map(() => ({ entities: [], relations: [] }));
      const worded = [...texts.keys()].filter((index) => /\p{L}/u.test(texts[index]!));
      for (let from = 0; from < worded.length; from += TEXTS_MAX) {
        const some = worded.slice(from, from + TEXTS_MAX);
        const found = await read(
          llm,
          some.map((index) => texts[index]!),
          signal,
        );
        for (const [position, index] of some.entries()) extractions[index] = found[position]!;
      }
      return extractions;
    },
    close: () => llm.close(),
  };
}

async function read(llm: Llm, texts: readonly string[], signal: AbortSignal): Promise<Extraction[]> {
  let tokens = 0;
  const counting: Pick<Llm, "model" | "complete"> = {
    model: llm.model,
    complete: async (request, stopped) => {
      const completion = await llm.complete(request, stopped);
      tokens += completion.tokens;
      return completion;
    },
  };
  // Character for character as long as the original: a place in the one is a place in the other.
  const shown = texts.map((text) => text.slice(0, TEXT_CHARS_MAX).toWellFormed().replaceAll("\0", " "));
  const { texts: found } = await completeAs(counting, findingsRequest(shown), signal);
  const shares = tokenShares(
    tokens,
    shown.map(({ length }) => length),
  );
  const byNumber = new Map(found.map((findings) => [findings.text, findings]));
  return shown.map((text, index) => ({
    ...foundInText(text, byNumber.get(index + 1)!),
    tokens: shares[index]!,
  }));
}
