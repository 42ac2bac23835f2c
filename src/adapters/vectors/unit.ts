import { QuarryError } from "../../errors.ts";

/** The same direction with length 1; what cannot be compared is refused. */
export function unitVector(vector: Float32Array, dimensions: number): Float32Array {
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  if (vector.length !== dimensions || !(length > 0 && length < Number.POSITIVE_INFINITY)) {
    throw new QuarryError(
      "invalid_input",
      `a vector of this index has ${dimensions} finite numbers that are not all 0; one of ${vector.length} with length ${length} was given`,
    );
  }
  return vector.map((value) => value / length);
}
