import type { Database } from "../database/database.ts";

/** Rules that are written by others, in SQL, get jobs for the model that is served here. */
export async function setDefaultModel(database: Database, model: string): Promise<void> {
  const [known] = await database.query("select embedding_model from embedding_defaults");
  if (known?.embedding_model === model) return;
  const isOnly = database.dialect.name === "postgres" ? "true" : "1";
  await database.query(
    `insert into embedding_defaults (is_only, embedding_model) values (${isOnly}, ${database.dialect.mark(1)}) on conflict (is_only) do update set embedding_model = excluded.embedding_model`,
    [model],
  );
}
