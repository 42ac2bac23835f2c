import { QuarryError } from "../../errors.ts";

/** From JSON: decimals, or bytes as text. What is no number becomes one that is noticed. */
export function vectorOf(value: unknown): Float32Array {
  if (typeof value === "string") return fromBase64(value);
  const entries: readonly unknown[] = Array.isArray(value) ? value : [];
  const vector = new Float32Array(entries.length);
  for (const [index, entry] of entries.entries())
    vector[index] = typeof entry === "number" ? entry : Number.NaN;
  return vector;
}

/** Four bytes a number, the lowest first. */
function fromBase64(text: string): Float32Array {
  const bytes = Buffer.from(text, "base64");
  const vector = new Float32Array(Math.floor(bytes.length / 4));
  for (let index = 0; index < vector.length; index++) vector[index] = bytes.readFloatLE(index * 4);
  return vector;
}

/** As many as asked for, of the length asked for, each brought to unit length. */
export function checkedVectors(
  vectors: readonly Float32Array[],
  expected: { readonly service: string; readonly count: number; readonly dimensions: number },
): Float32Array[] {
  const { service, count, dimensions } = expected;
  if (vectors.length !== count)
    throw new QuarryError("model_failed", `${service} gave ${vectors.length} vectors for ${count} texts`);
  return vectors.map((vector) => {
    if (vector.length === dimensions) return unitVector(vector, service);
    throw new QuarryError(
      "model_failed",
      `${service} gave a vector of ${vector.length} dimensions instead of ${dimensions}: is it another model?`,
    );
  });
}

export function unitVector(vector: Float32Array, service: string): Float32Array {
  let squares = 0;
  for (const value of vector) squares += value * value;
  const length = Math.sqrt(squares);
  if (Number.isFinite(length) && length > 0) return vector.map((value) => value / length);
  throw new QuarryError(
    "model_failed",
    `${service} gave a vector without a direction: all of it is zero, or some of it is no number`,
  );
}
