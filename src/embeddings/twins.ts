import { hash } from "node:crypto";
import type { Database, Session } from "../database/database.ts";
import { fromStored } from "./vectors.ts";

/** The hash that the design names; it finds equal texts and guards nothing. */
export function hashOf(text: string): string {
  return hash("md5", text);
}

/** Vectors that were made before, by the hash of their text. */
export async function knownVectors(
  database: Database,
  texts: { model: string; hashes: readonly string[] },
  session: Session = database,
): Promise<Map<string, Float32Array>> {
  if (texts.hashes.length === 0) return new Map();
  const isPostgres = database.dialect.name === "postgres";
  const hashes = isPostgres ? "unnest($1::text[]) as h(value)" : "json_each(?1) as h";
  // By the hash and nothing else: an index on the status finds every job that was ever done.
  const isDone = database.dialect.check("t.status = 'completed'");
  // A scalar sub-select, which no planner can turn into a join with all jobs there are.
  const twin = `select t.embedding_vector from embedding_jobs as t where t.text_hash = h.value and t.embedding_model = ${database.dialect.mark(2)} and ${isDone} limit 1`;
  const asked = `select h.value as hash, (${twin}) as vector from ${hashes}`;
  const sql = `select hash, vector from (${asked}) as known where vector is not null`;
  const rows = await session.query({ name: "embeddings.twins", sql }, [
    database.dialect.keys([...new Set(texts.hashes)]),
    texts.model,
  ]);
  return new Map(rows.map(({ hash: found, vector }) => [String(found), fromStored(vector)!]));
}
