import type { Database } from "../database/database.ts";
import { QuarryError } from "../errors.ts";

/** How a vector stands in a row: pgvector's type, an array of PostgreSQL, or the bytes of 32-bit floats. */
export type VectorType = "vector" | "real[]" | "blob";

export async function vectorTypeOf(database: Database): Promise<VectorType> {
  if (database.dialect.name === "sqlite") return "blob";
  const [row] = await database.query(
    "select format_type(atttypid, -1) as type from pg_attribute where attrelid = 'embedding_jobs'::regclass and attname = 'embedding_vector'",
  );
  return row?.type === "real[]" ? "real[]" : "vector";
}

/** Nine digits bring a 32-bit float back exactly. */
const DIGITS = 9;

export function toStored(vector: Float32Array, type: VectorType): string | Uint8Array {
  if (type === "blob") return new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength);
  const numbers = Array.from(vector, (value) => value.toPrecision(DIGITS)).join(",");
  return type === "vector" ? `[${numbers}]` : `{${numbers}}`;
}

export function fromStored(stored: unknown): Float32Array | undefined {
  if (stored === null || stored === undefined) return undefined;
  // Copied: a vector needs its bytes aligned.
  if (stored instanceof Uint8Array) return new Float32Array(Uint8Array.from(stored).buffer);
  const numbers = typeof stored === "string" ? JSON.parse(stored) : stored;
  if (Array.isArray(numbers)) return Float32Array.from(numbers.map(Number));
  throw new QuarryError("schema_mismatch", "a vector is stored in a form that this program does not know");
}
