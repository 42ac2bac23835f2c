import { InferenceSession, Tensor } from "onnxruntime-node";
import { serveIsolate } from "../isolate.ts";
import { modelFile } from "./model-files.ts";
import { readWordPieces } from "./tokenizer.ts";

interface Setup {
  /** 0 leaves it to the runtime. */
  readonly threads: number;
  readonly tokensMax: number;
}

/** Texts of like length share a run: the shorter ones are filled up to the longest. */
const RUN_TEXTS_MAX = 16;

serveIsolate(async ({ threads, tokensMax }: Setup) => {
  const tokenizer = await readWordPieces();
  const session = await InferenceSession.create(modelFile("onnx/model_quantized.onnx"), {
    intraOpNumThreads: threads,
    graphOptimizationLevel: "all",
  });
  const [first, last] = tokenizer.encode("").ids as [number, number];

  const idsOf = (text: string): number[] => {
    const { ids } = tokenizer.encode(text, { add_special_tokens: false });
    return [first, ...ids.slice(0, tokensMax), last];
  };

  async function run(batch: readonly number[][]): Promise<Float32Array[]> {
    const length = Math.max(...batch.map((ids) => ids.length));
    const shape = [batch.length, length];
    const ids = new BigInt64Array(batch.length * length);
    const mask = new BigInt64Array(batch.length * length);
    for (const [row, tokens] of batch.entries()) {
      for (const [column, token] of tokens.entries()) {
        ids[row * length + column] = BigInt(token);
        mask[row * length + column] = 1n;
      }
    }
    const output = await session.run({
      input_ids: new Tensor("int64", ids, shape),
      attention_mask: new Tensor("int64", mask, shape),
      token_type_ids: new Tensor("int64", new BigInt64Array(ids.length), shape),
    });
    const hidden = Object.values(output)[0]!;
    const dimensions = hidden.dims[2]!;
    const values = hidden.data as Float32Array;
    return batch.map((tokens, row) => mean(values, row * length * dimensions, tokens.length, dimensions));
  }

  return {
    embed: async (texts: readonly string[]): Promise<Float32Array[]> => {
      const tokens = texts.map(idsOf);
      const order = tokens.map((_, index) => index).sort((a, b) => tokens[a]!.length - tokens[b]!.length);
      const vectors: Float32Array[] = new Array(texts.length);
      for (let start = 0; start < order.length; start += RUN_TEXTS_MAX) {
        const some = order.slice(start, start + RUN_TEXTS_MAX);
        const made = await run(some.map((index) => tokens[index]!));
        for (const [position, index] of some.entries()) vectors[index] = made[position]!;
      }
      return vectors;
    },
  };
});

/** The mean over a text's tokens, brought to length one. */
function mean(values: Float32Array, offset: number, tokens: number, dimensions: number): Float32Array {
  const vector = new Float32Array(dimensions);
  for (let token = 0; token < tokens; token++) {
    const start = offset + token * dimensions;
    for (let dimension = 0; dimension < dimensions; dimension++)
      vector[dimension]! += values[start + dimension]!;
  }
  const length = Math.hypot(...vector) || 1;
  for (let dimension = 0; dimension < dimensions; dimension++) vector[dimension]! /= length;
  return vector;
}
