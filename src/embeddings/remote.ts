import { z } from "zod";
import type { Database } from "../database/database.ts";
import { QuarryError } from "../errors.ts";
import { firstProblem } from "../problems.ts";
import type { Queue } from "../queue/declaration.ts";
import type { RemoteQueue, RemoteResult } from "../queue/remote.ts";
import type { JobPayload } from "./queue.ts";
import { hashOf } from "./twins.ts";

export const DIMENSIONS_MAX = 16_000;

/** What a worker elsewhere hands in for a job. */
export const jobResultSchema = z.strictObject({
  embedding_vector: z.array(z.number().min(-1e30).max(1e30)).min(1).max(DIMENSIONS_MAX),
  processing_time_ms: z.int().min(0).max(2_147_483_647).optional(),
  tokens_used: z.int().min(0).max(2_147_483_647).optional(),
});

interface Parts {
  readonly database: Database;
  readonly queue: Queue<JobPayload>;
}

/** Lets workers in any language make the vectors. */
export function remoteEmbeddings(parts: Parts): RemoteQueue {
  return {
    queue: parts.queue as Queue<object>,
    columnsOf: async (results) => {
      const made = results.map(checked);
      await sameDimensions(
        parts,
        made.map(({ embedding_vector: vector }, position) => ({
          key: results[position]!.key,
          length: vector.length,
        })),
      );
      const hashes = await hashesOf(parts.database, results);
      return made.map(({ embedding_vector: vector, ...figures }, position) => ({
        ...figures,
        embedding_vector: Float32Array.from(vector),
        embedding_dimensions: vector.length,
        worker_version: results[position]!.worker.version,
        ...hashes.get(String(results[position]!.key)),
      }));
    },
  };
}

function checked({ key, result }: RemoteResult): z.output<typeof jobResultSchema> {
  const parsed = jobResultSchema.safeParse(result);
  if (parsed.success) return parsed.data;
  throw new QuarryError("invalid_input", `result of ${key}: ${firstProblem(parsed.error, "it")}`);
}

/** Vectors of one model that cannot be compared with each other are of no use. */
async function sameDimensions(
  { database, queue }: Parts,
  vectors: readonly { key: RemoteResult["key"]; length: number }[],
): Promise<void> {
  if (vectors.length === 0) return;
  const [gate] = queue.gate;
  const model = gate && "is" in gate ? String(gate.is) : "";
  const sql = `select embedding_dimensions from embedding_jobs where embedding_model = ${database.dialect.mark(1)} and status = 'completed' limit 1`;
  const [known] = await database.query({ name: "embeddings.dimensions", sql }, [model]);
  const expected = Number(known?.embedding_dimensions ?? vectors[0]!.length);
  const other = vectors.find(({ length }) => length !== expected);
  if (other === undefined) return;
  throw new QuarryError(
    "invalid_input",
    `result of ${other.key}: a vector of ${other.length} dimensions, where those of ${model} have ${expected}; hand in one of that length, or serve another model under another name`,
  );
}

/** Jobs that SQLite's own trigger made have no hash yet. */
async function hashesOf(
  database: Database,
  results: readonly RemoteResult[],
): Promise<Map<string, { text_hash: string }>> {
  if (database.dialect.name !== "sqlite" || results.length === 0) return new Map();
  const rows = await database.query(
    {
      name: "embeddings.unhashed",
      sql: `select id, input_text from embedding_jobs where ${database.dialect.isOneOf("id", 1, "uuid")} and text_hash like '?%'`,
    },
    [database.dialect.keys(results.map(({ key }) => key))],
  );
  return new Map(rows.map((row) => [String(row.id), { text_hash: hashOf(String(row.input_text)) }]));
}
