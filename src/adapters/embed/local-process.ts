import { InferenceSession, Tensor } from "onnxruntime-node";
import { messageOf, QuarryError } from "../../errors.ts";
import { serveIsolate } from "../isolate.ts";
import { modelFile } from "./model-files.ts";
import { readWordPieces } from "./tokenizer.ts";

interface Setup {
  readonly tokensMax: number;
}

/** A text of more windows than this should have been cut into chunks. */
const WINDOWS_MAX = 64;

/**
 * One text at a time and one thread. The model rounds its numbers to 8 bits by the largest among all texts of a
 * batch, so in company a text gets another vector than alone (similarity down to 0.988): what was cached or
 * searched for would depend on chance. Nor is a batch faster; more isolates are.
 */
serveIsolate(async ({ tokensMax }: Setup) => {
  const tokenizer = await readWordPieces();
  const session = await InferenceSession.create(modelFile("onnx/model_quantized.onnx"), {
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    // The arena would keep the memory of the longest text for good, and gains nothing.
    enableCpuMemArena: false,
  });
  const [first, last] = tokenizer.encode("").ids as [number, number];

  /** The sum over a window's tokens: one of fewer tokens weighs less in a longer text. */
  async function sumOf(window: readonly number[]): Promise<Float32Array> {
    const ids = BigInt64Array.from([first, ...window, last], BigInt);
    const shape = [1, ids.length];
    const output = await session.run({
      input_ids: new Tensor("int64", ids, shape),
      attention_mask: new Tensor("int64", new BigInt64Array(ids.length).fill(1n), shape),
      token_type_ids: new Tensor("int64", new BigInt64Array(ids.length), shape),
    });
    const { data, dims } = output.last_hidden_state!;
    return rowsAdded(data as Float32Array, dims.at(-1)!);
  }

  async function vectorOf(text: string): Promise<Float32Array> {
    const { ids } = tokenizer.encode(text, { add_special_tokens: false });
    const windows = windowsOf(ids, tokensMax);
    let sum = await sumOf(windows[0]!);
    for (const window of windows.slice(1)) {
      const more = await sumOf(window);
      sum = sum.map((value, dimension) => value + more[dimension]!);
    }
    return normalised(sum);
  }

  return {
    embed: async (texts: readonly string[]): Promise<Float32Array[]> => {
      const vectors: Float32Array[] = [];
      for (const text of texts) vectors.push(await vectorOf(text).catch(asModelFailure));
      return vectors;
    },
  };
});

/** What is longer than the model's window is read in several. At least one, even of nothing. */
function windowsOf(ids: readonly number[], tokensMax: number): (readonly number[])[] {
  const count = Math.max(1, Math.ceil(ids.length / tokensMax));
  if (count > WINDOWS_MAX)
    throw new QuarryError(
      "invalid_input",
      `a text of ${ids.length} tokens is too long for one vector: cut it to ${tokensMax * WINDOWS_MAX}`,
    );
  return Array.from({ length: count }, (_, index) => ids.slice(index * tokensMax, (index + 1) * tokensMax));
}

function rowsAdded(values: Float32Array, dimensions: number): Float32Array {
  const sum = new Float32Array(dimensions);
  for (let start = 0; start < values.length; start += dimensions)
    for (let dimension = 0; dimension < dimensions; dimension++)
      sum[dimension]! += values[start + dimension]!;
  return sum;
}

function normalised(vector: Float32Array): Float32Array {
  const length = Math.hypot(...vector) || 1;
  return vector.map((value) => value / length);
}

function asModelFailure(error: unknown): never {
  if (error instanceof QuarryError) throw error;
  throw new QuarryError("model_failed", `the embedding model failed: ${messageOf(error)}`, { cause: error });
}
