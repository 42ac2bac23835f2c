import type { Database, Session } from "../database/database.ts";
import { literal } from "../database/dialect.ts";
import { QuarryError } from "../errors.ts";
import { columnsOf, type Queue } from "./declaration.ts";
import { indexesOf } from "./indexes.ts";

/** Checks that the tables have the declared columns, and creates the queue's indexes where they are missing. */
export async function prepareQueue(database: Database, queue: Queue): Promise<void> {
  await checkColumns(database, queue, queue.table, columnsOf(queue));
  for (const [depth, level] of queue.rollUp.entries()) {
    const above = queue.rollUp[depth + 1];
    const named = [
      level.key.column,
      level.status,
      level.startedAt,
      level.finishedAt,
      level.updatedAt,
      level.error?.column,
      above?.via,
    ];
    await checkColumns(
      database,
      queue,
      level.table,
      named.filter((name) => name !== undefined),
    );
  }
  await createIndexes(database, queue);
}

/** Any number that all processes agree on. */
const POSTGRES_LOCK = 7310_0002;

/** Only what is missing: creating an index waits for every writer of the table, even when it is there already. */
async function createIndexes(database: Database, queue: Queue): Promise<void> {
  const missing = async (session: Session) => {
    const sql =
      database.dialect.name === "postgres"
        ? "select indexname as name from pg_indexes where schemaname = any(current_schemas(false))"
        : "select name from sqlite_schema where type = 'index'";
    const have = new Set((await session.query(sql)).map((row) => String(row.name)));
    refuseMissing(queue, have);
    return indexesOf(queue, database.dialect).filter((index) => !have.has(index.name));
  };
  if ((await missing(database)).length === 0) return;
  await database.transaction(async (transaction) => {
    if (database.dialect.name === "postgres")
      await transaction.query(`select pg_advisory_xact_lock(${POSTGRES_LOCK})`);
    for (const index of await missing(transaction)) await transaction.query(index.sql);
  });
}

/** Indexes of the table itself that the declaration counts on. */
function refuseMissing(queue: Queue, have: ReadonlySet<string>): void {
  const named = { "lease.index": queue.lease.index, "group.index": queue.group?.index };
  for (const [where, name] of Object.entries(named)) {
    if (name === undefined || have.has(name)) continue;
    throw new QuarryError(
      "schema_mismatch",
      `queue ${queue.name}: there is no index ${name} on ${queue.table}; create it, or leave out ${where}`,
    );
  }
}

async function checkColumns(
  database: Database,
  queue: Queue,
  table: string,
  columns: readonly string[],
): Promise<void> {
  const have = await columnsOfTable(database, table);
  if (have.size === 0) {
    throw new QuarryError(
      "schema_mismatch",
      `queue ${queue.name}: there is no table ${table}; create it first`,
    );
  }
  const missing = columns.filter((name) => !have.has(name));
  if (missing.length === 0) return;
  const types = new Map(Object.entries(suggestedTypes(database, queue)));
  const additions = missing.map(
    (name) => `alter table ${table} add column ${name} ${types.get(name) ?? "text"};`,
  );
  throw new QuarryError(
    "schema_mismatch",
    `queue ${queue.name}: table ${table} lacks ${missing.join(", ")}. Add ${missing.length === 1 ? "it" : "them"} with: ${additions.join(" ")}`,
  );
}

async function columnsOfTable(database: Database, table: string): Promise<Set<string>> {
  const sql =
    database.dialect.name === "postgres"
      ? `select attname::text as name from pg_attribute where attrelid = to_regclass(${literal(table)}) and attnum > 0 and not attisdropped`
      : `select name from pragma_table_xinfo(${literal(table)})`;
  return new Set((await database.query(sql)).map((row) => String(row.name)));
}

function suggestedTypes(database: Database, queue: Queue): Record<string, string> {
  const time = database.dialect.name === "postgres" ? "timestamptz" : "text";
  const integer = database.dialect.name === "postgres" ? "bigint" : "integer";
  const { columns } = queue;
  return {
    [columns.token]: `${integer} not null default 0`,
    [columns.attempts]: "integer not null default 0",
    [columns.status]: `text not null default ${literal(queue.statuses.pending)}`,
    ...Object.fromEntries(
      [
        columns.lease,
        columns.runAfter,
        columns.createdAt,
        columns.startedAt,
        columns.finishedAt,
        columns.updatedAt,
        columns.errorAt,
      ]
        .filter((name) => name !== undefined)
        .map((name) => [name, time]),
    ),
    ...(typeof queue.attempts.max === "string" && { [queue.attempts.max]: "integer not null default 3" }),
    ...(queue.group && { [queue.group.turn]: "boolean not null default false" }),
  };
}
