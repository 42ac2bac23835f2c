import { toStored } from "../../src/embeddings/vectors.ts";
import type { Database, Row } from "../../src/index.ts";
import type { Contender } from "./embedding.ts";
import { countCompleted, fillJobs } from "./lane.ts";
import { BATCH, openTimedModel } from "./model.ts";

/**
 * The design's own loop on the same table with as many calls at once, without what makes it a queue: it reads the next
 * 50, embeds them and writes them down. Nothing is claimed, so a second one would do the same jobs again, and what
 * fails is not noticed.
 */
export function designLoop(callsAtOnce: number): Contender {
  return {
    name: `the design's loop on the same table, nothing claimed, ${callsAtOnce} calls at once`,
    fill: async (url, { jobs: count, callMs }) => {
      const { database, vectorType } = await fillJobs(url, count);
      return {
        drain: async () => {
          const model = openTimedModel(callMs);
          const { signal } = new AbortController();
          const read = reader(database);
          const work = async () => {
            for (let rows = await read(); rows.length > 0; rows = await read()) {
              const texts = rows.map((row) => String(row.input_text));
              const { vectors } = await model.embedder.embed(texts, signal);
              await write(
                database,
                rows.map((row, position) => [String(row.id), toStored(vectors[position]!, vectorType)]),
              );
            }
          };
          await Promise.all(Array.from({ length: callsAtOnce }, work));
          return performance.now() - model.firstCallAt();
        },
        countVectors: () => countCompleted(database),
        close: () => database.close(),
      };
    },
  };
}

/** The next 50, in the order of the key, which is that of their making. Where it is stands in memory only. */
function reader(database: Database): () => Promise<Row[]> {
  const { mark } = database.dialect;
  const sql = `select id, input_text from embedding_jobs where id > ${mark(1)} and coalesce(status = 'pending', false) order by id limit ${BATCH}`;
  let after = "00000000-0000-0000-0000-000000000000";
  let turn: Promise<unknown> = Promise.resolve();
  return () => {
    const rows = turn.then(() => database.query({ name: "loop.read", sql }, [after]));
    turn = rows.then((found) => {
      after = String(found.at(-1)?.id ?? after);
    });
    return rows;
  };
}

async function write(database: Database, vectors: readonly [string, string | Uint8Array][]): Promise<void> {
  if (database.dialect.name === "postgres") {
    const sql =
      "update embedding_jobs as j set status = 'completed', completed_at = now(), embedding_vector = v.vector::real[], embedding_dimensions = 384, processing_time_ms = 5 from unnest($1::uuid[], $2::text[]) as v (id, vector) where j.id = v.id";
    const columns = [0, 1].map((index) => vectors.map((entry) => entry[index]));
    await database.query({ name: "loop.write", sql }, columns);
    return;
  }
  const sql =
    "update embedding_jobs set status = 'completed', completed_at = ?1, embedding_vector = ?2, embedding_dimensions = 384, processing_time_ms = 5 where id = ?3";
  await database.transaction(async (transaction) => {
    for (const [id, vector] of vectors)
      await transaction.query({ name: "loop.write", sql }, [database.now(), vector, id]);
  });
}
