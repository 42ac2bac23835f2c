import { QuarryError } from "../../errors.ts";

/** The same direction with length 1; what cannot be compared is refused. In loops: it is done for every vector. */
export function unitVector(vector: Float32Array, dimensions: number): Float32Array {
  let sum = 0;
  for (let at = 0; at < vector.length; at++) sum += vector[at]! * vector[at]!;
  const length = Math.sqrt(sum);
  if (vector.length !== dimensions || !(length > 0 && length < Number.POSITIVE_INFINITY)) {
    throw new QuarryError(
      "invalid_input",
      `a vector of this index has ${dimensions} finite numbers that are not all 0; one of ${vector.length} with length ${length} was given`,
    );
  }
  const unit = new Float32Array(dimensions);
  for (let at = 0; at < dimensions; at++) unit[at] = vector[at]! / length;
  return unit;
}
