import { setTimeout as pause } from "node:timers/promises";
import type { Embedder } from "../../src/adapters/embed.ts";

export const MODEL = "bench-model";
export const BATCH = 50;
export const DIMENSIONS = 384;

/** How a model answers. */
export interface Pace {
  readonly callMs: number;
  /** Each call waits for the one before, as on a machine with one processor; else any number at once. */
  readonly isOneByOne: boolean;
}

/** A model that takes the same time for every call and next to no processor, as one on another machine does. */
export interface TimedModel {
  readonly embedder: Embedder;
  /** When it was first asked. */
  firstCallAt(): number;
}

export function openTimedModel({ callMs, isOneByOne }: Pace): TimedModel {
  const vectors = Array.from({ length: BATCH }, randomVector);
  let firstCallAt: number | undefined;
  let before = Promise.resolve();
  return {
    firstCallAt: () => firstCallAt ?? Number.NaN,
    embedder: {
      model: MODEL,
      dimensions: DIMENSIONS,
      tokensMax: 1_000,
      tokenizer: { count: (text) => Math.ceil(text.length / 4) },
      embed: async (texts) => {
        firstCallAt ??= performance.now();
        const answered = (isOneByOne ? before : Promise.resolve()).then(() => pause(callMs));
        before = answered;
        await answered;
        return { vectors: texts.map((_text, position) => vectors[position]!), tokens: 50 * texts.length };
      },
      close: async () => undefined,
    },
  };
}

export function randomVector(): Float32Array {
  const vector = Float32Array.from({ length: DIMENSIONS }, () => Math.random() - 0.5);
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}

const WORDS = "the crusher was stopped at noon because the belt had slipped and the foreman wrote it down";

/** About 200 characters, and no two alike: a text that was seen before would not be embedded again. */
export function textOf(mark: string | number): string {
  return `Entry ${mark}: ${WORDS}, then ${WORDS}.`;
}
