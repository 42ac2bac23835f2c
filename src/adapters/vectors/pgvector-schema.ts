import { createHash } from "node:crypto";
import type { Database, Session } from "../../database/database.ts";
import { literal } from "../../database/dialect.ts";
import { QuarryError } from "../../errors.ts";

/** Any number, as long as every process that opens the store takes the same. */
const LOCK = 7310_0002;
const TABLE_PREFIX = "vectors_";
const READABLE_LENGTH_MAX = 30;
/** HNSW takes vectors of 32-bit floats up to the first, of 16-bit floats up to the second. */
const DIMENSIONS_FULL_MAX = 2_000;
const DIMENSIONS_HALF_MAX = 4_000;

/** The table of one model's vectors, and what the server's pgvector can do with it. */
export interface VectorTable {
  readonly name: string;
  /** Where the extension lives; it need not be on the search path. */
  readonly schema: string;
  readonly type: "vector" | "halfvec";
  readonly isIndexed: boolean;
  /** Filtered searches go on until they have enough (pgvector 0.8). */
  readonly isIterative: boolean;
}

/**
 * Made by the store when it is opened and not by a migration: the number of dimensions is the embedder's, a second
 * model gets a second table, and the extension may be installed long after the last migration ran.
 */
export async function prepareVectorTable(
  database: Database,
  { model, dimensions }: { model: string; dimensions: number },
): Promise<VectorTable> {
  return database.transaction(async (session) => {
    await session.query(`select pg_advisory_xact_lock(${LOCK})`);
    const { schema, version } = await extension(session);
    const isHalf = dimensions > DIMENSIONS_FULL_MAX && isAtLeast(version, 0, 7);
    const table: VectorTable = {
      name: tableName(model, dimensions),
      schema,
      type: isHalf ? "halfvec" : "vector",
      isIndexed: dimensions <= (isHalf ? DIMENSIONS_HALF_MAX : DIMENSIONS_FULL_MAX),
      isIterative: isAtLeast(version, 0, 8),
    };
    const [known] = await session.query("select to_regclass($1) as found", [table.name]);
    if (known?.found === null) await create(session, table, { model, dimensions });
    return table;
  });
}

/** This model's table is empty then, those of other models are gone. */
export async function clearVectorTables(session: Session, { name: own }: VectorTable): Promise<void> {
  await session.query(`select pg_advisory_xact_lock(${LOCK})`);
  const rows = await session.query(
    "select c.relname as name from pg_class as c where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace and c.relname ~ $1",
    [`^${TABLE_PREFIX}.*_[0-9a-f]{8}$`],
  );
  for (const { name } of rows) await session.query(`${name === own ? "truncate" : "drop table"} ${name}`);
}

async function create(
  session: Session,
  { name, schema, type, isIndexed }: VectorTable,
  { model, dimensions }: { model: string; dimensions: number },
): Promise<void> {
  const statements = [
    `create table ${name} (
      tenant text not null,
      document_id uuid not null,
      chunk_id text not null,
      collection text not null,
      embedding ${schema}.${type}(${dimensions}) not null,
      primary key (tenant, document_id, chunk_id)
    )`,
    `comment on table ${name} is ${literal(`vectors of ${model}, of length 1, ${dimensions} dimensions`)}`,
    `create index ${name}_document on ${name} (document_id)`,
    `create index ${name}_scope on ${name} (tenant, collection)`,
    // Of vectors of length 1 the inner product is the cosine, and is reckoned faster.
    isIndexed && `create index ${name}_nearest on ${name} using hnsw (embedding ${schema}.${type}_ip_ops)`,
  ];
  for (const statement of statements) if (statement) await session.query(statement);
}

async function extension(session: Session): Promise<{ schema: string; version: string }> {
  const find = () =>
    session.query<{ schema: string; version: string }>(
      "select extnamespace::regnamespace::text as schema, extversion as version from pg_extension where extname = 'vector'",
    );
  const [known] = await find();
  if (known) return known;
  const [offered] = await session.query(
    "select 1 as found from pg_available_extensions where name = 'vector'",
  );
  if (!offered) {
    throw new QuarryError(
      "invalid_input",
      "QUARRY_VECTORS is pgvector, but this PostgreSQL has no pgvector: install it there (Debian: postgresql-NN-pgvector; image pgvector/pgvector), or set QUARRY_VECTORS to embedded or qdrant",
    );
  }
  try {
    await session.query("create extension vector");
  } catch (cause) {
    throw new QuarryError(
      "invalid_input",
      "QUARRY_VECTORS is pgvector, but this role may not create the extension: have a superuser run `create extension vector` in this database",
      { cause },
    );
  }
  const [made] = await find();
  return made!;
}

function tableName(model: string, dimensions: number): string {
  const readable = model
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "_")
    .slice(0, READABLE_LENGTH_MAX);
  const digest = createHash("sha256").update(`${dimensions} ${model}`).digest("hex").slice(0, 8);
  return `${TABLE_PREFIX}${readable}_${digest}`;
}

function isAtLeast(version: string, ...wanted: readonly number[]): boolean {
  const parts = version.split(".").map(Number);
  for (const [position, number] of wanted.entries()) {
    const part = parts[position] ?? 0;
    if (part !== number) return part > number;
  }
  return true;
}
