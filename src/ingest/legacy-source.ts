import type { Database, Session } from "../database/database.ts";
import { literal, quoted } from "../database/dialect.ts";
import { QuarryError } from "../errors.ts";
import {
  FACT_NAMES,
  FACTS,
  type Fact,
  LEGACY_TABLES,
  type LegacyFacts,
  type LegacyTable,
} from "./legacy-tables.ts";

/** The database that the old tables are in. */
export interface LegacySource {
  readonly database: Database;
  /** How it is called in `legacy_tables`; empty when it is the queue's own. */
  readonly name: string;
  readonly tables: readonly FoundTable[];
  /** False when this login may read the tables but neither lock, mark nor drop them. */
  readonly isWritable: boolean;
}

export interface FoundTable extends LegacyTable {
  /** What to select for each fact. */
  readonly selects: Readonly<Record<Fact, string>>;
}

/** A row and where it stands, for rows that have no key of their own. */
export type PositionedRow = LegacyFacts & { readonly position: string };

/** One more than the longest text that can be an item, so that a longer one is refused and not cut. */
const TEXT_CHARS_MAX = 4_000_001;
const LOCK_WAIT_MS = 10_000;

/** Refuses a table that lacks what every row must tell. */
export async function openLegacySource(database: Database, name: string): Promise<LegacySource> {
  const messages = await columnsOf(database, "messages");
  const tables: FoundTable[] = [];
  for (const table of LEGACY_TABLES) {
    const columns = await columnsOf(database, table.name);
    if (columns.size === 0) continue;
    checkRequired(table, columns);
    await refuseWithoutRowid(database, table);
    tables.push({ ...table, selects: selectsOf(columns, messages) });
  }
  return { database, name, tables, isWritable: await isWritable(database, tables) };
}

export async function columnsOf(database: Database, table: string): Promise<Set<string>> {
  const sql =
    database.dialect.name === "postgres"
      ? `select a.attname::text as name from pg_attribute as a join pg_class as c on c.oid = a.attrelid where c.oid = to_regclass(${literal(table)}) and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped`
      : `select c.name from pragma_table_list as t, pragma_table_info(t.name) as c where t.schema = 'main' and t.type = 'table' and t.name = ${literal(table)}`;
  return new Set((await database.query(sql)).map((row) => String(row.name)));
}

function checkRequired(table: LegacyTable, columns: ReadonlySet<string>): void {
  const missing = table.required.filter((fact) => !FACTS[fact].some((name) => columns.has(name)));
  if (missing.length === 0) return;
  throw new QuarryError(
    "schema_mismatch",
    `${table.name} cannot be read: it has no column ${missing.map((fact) => FACTS[fact].join(" or ")).join(", and none called ")} (it has ${[...columns].join(", ")}). Nothing was changed; rename the table if it is not a queue of the old system.`,
  );
}

/** SQLite's rows are read in the order of their row ids. */
async function refuseWithoutRowid(database: Database, { name }: LegacyTable): Promise<void> {
  if (database.dialect.name === "postgres") return;
  const sql = `select 1 from pragma_table_list where schema = 'main' and name = ${literal(name)} and wr = 1`;
  if ((await database.query(sql)).length === 0) return;
  const message = `${name} cannot be read: it is WITHOUT ROWID. Nothing was changed; copy it into an ordinary table of that name first.`;
  throw new QuarryError("schema_mismatch", message);
}

function selectsOf(columns: ReadonlySet<string>, messages: ReadonlySet<string>): Record<Fact, string> {
  const found = (fact: Fact) =>
    FACTS[fact].filter((name) => columns.has(name)).map((name) => `t.${quoted(name)}`);
  const message = ["error_message", "message"].find((name) => messages.has(name));
  const told = (errorId: string) =>
    `(select m.${quoted(message!)} from messages as m where m.id = ${errorId})`;
  const elsewhere = message !== undefined && messages.has("id") ? found("errorId").map(told) : [];
  return Object.fromEntries(
    FACT_NAMES.map((fact) => [fact, firstText([...found(fact), ...(fact === "error" ? elsewhere : [])])]),
  ) as Record<Fact, string>;
}

/** The first that is not null, whatever its type. */
function firstText(expressions: readonly string[]): string {
  const texts = expressions.map((one) => `substr(cast(${one} as text), 1, ${TEXT_CHARS_MAX})`);
  return texts.length > 1 ? `coalesce(${texts.join(", ")})` : (texts[0] ?? "cast(null as text)");
}

/** A SQLite file that cannot be written cannot be opened either. */
async function isWritable(database: Database, tables: readonly LegacyTable[]): Promise<boolean> {
  if (database.dialect.name === "sqlite" || tables.length === 0) return true;
  const names = tables.map(({ name }) => `to_regclass(${literal(name)})`).join(", ");
  const [row] = await database.query(
    `select bool_and(pg_has_role(c.relowner, 'usage')) and current_setting('transaction_read_only') = 'off' as is_writable from pg_class as c where c.oid in (${names})`,
  );
  return row?.is_writable === true;
}

/** Nobody else writes to the tables until the transaction ends. Where that is not allowed, none of it is seen. */
export async function lockTables(session: Session, source: LegacySource): Promise<void> {
  if (source.database.dialect.name === "sqlite" || source.tables.length === 0) return;
  if (!source.isWritable) {
    await session.query("set transaction isolation level repeatable read, read only");
    return;
  }
  const names = source.tables.map(({ name }) => quoted(name)).join(", ");
  await session.query(`set local lock_timeout = ${LOCK_WAIT_MS}`);
  try {
    await session.query(`lock table ${names} in share row exclusive mode`);
  } catch (cause) {
    if (((cause as Error).cause as { code?: string } | undefined)?.code !== "55P03") throw cause;
    const message = "the old system is writing to its queues: stop it first. Nothing was changed.";
    throw new QuarryError("database_unavailable", message, { cause });
  }
  await session.query("set local lock_timeout = default");
}

/** All rows of a table, a page at a time. */
export function pagesOf(
  session: Session,
  database: Database,
  table: FoundTable,
): AsyncGenerator<PositionedRow[]> {
  const facts = FACT_NAMES.map((fact) => `${table.selects[fact]} as ${quoted(fact)}`).join(", ");
  return database.dialect.name === "postgres"
    ? pagesOfCursor(
        session,
        table,
        `select t.ctid::text as position, ${facts} from ${quoted(table.name)} as t`,
      )
    : pagesByRowid(session, table, `select t.rowid as position, ${facts} from ${quoted(table.name)} as t`);
}

async function* pagesOfCursor(session: Session, { name, rowsPerPage }: FoundTable, select: string) {
  const cursor = quoted(`legacy_${name}`);
  await session.query(`declare ${cursor} no scroll cursor for ${select}`);
  try {
    for (;;) {
      const rows = await session.query<PositionedRow>(`fetch ${rowsPerPage} from ${cursor}`);
      if (rows.length > 0) yield rows;
      if (rows.length < rowsPerPage) return;
    }
  } finally {
    // After an error nothing else can be said to the transaction, and its end closes the cursor.
    await session.query(`close ${cursor}`).catch(() => undefined);
  }
}

async function* pagesByRowid(session: Session, { rowsPerPage }: FoundTable, select: string) {
  let after: unknown = null;
  for (;;) {
    const rows: PositionedRow[] = await session.query<PositionedRow>(
      `${select} where ?1 is null or t.rowid > ?1 order by t.rowid limit ${rowsPerPage}`,
      [after],
    );
    if (rows.length > 0) yield rows;
    if (rows.length < rowsPerPage) return;
    after = rows.at(-1)!.position;
  }
}

/** PostgreSQL says it at the table itself; SQLite has no comments, so there it stands in a table. */
export async function markDeprecated(
  session: Session,
  source: LegacySource,
  table: { readonly name: string; readonly rows: number; readonly at: string },
): Promise<void> {
  if (source.database.dialect.name === "postgres") {
    const comment = `Deprecated: its rows are in unified_queue since ${table.at}.`;
    await session.query(`comment on table ${quoted(table.name)} is ${literal(comment)}`);
    return;
  }
  // In the queue's own database, `legacy_tables` is written with the rows.
  if (source.name === "") return;
  await session.query(
    "create table if not exists legacy_tables (source text not null, name text not null, rows integer not null, migrated_at text not null, deprecated_at text not null, dropped_at text, primary key (source, name))",
  );
  await session.query(
    "insert into legacy_tables (source, name, rows, migrated_at, deprecated_at) values ('', ?1, ?2, ?3, ?3) on conflict (source, name) do update set rows = excluded.rows, migrated_at = excluded.migrated_at",
    [table.name, table.rows, table.at],
  );
}

/** Views that would be broken, or be dropped along with the table. */
export async function viewsOf(session: Session, database: Database, table: string): Promise<string[]> {
  if (database.dialect.name === "postgres") {
    const rows = await session.query(
      `select distinct v.relname::text as name from pg_depend as d join pg_rewrite as r on r.oid = d.objid join pg_class as v on v.oid = r.ev_class where d.classid = 'pg_rewrite'::regclass and d.refobjid = to_regclass(${literal(table)}) and v.oid <> d.refobjid order by 1`,
    );
    return rows.map((row) => String(row.name));
  }
  const rows = await session.query("select name, sql from sqlite_schema where type = 'view' order by name");
  const named = new RegExp(`\\b${table}\\b`, "i");
  return rows.filter((row) => named.test(String(row.sql))).map((row) => String(row.name));
}

export async function dropTable(session: Session, table: string): Promise<void> {
  try {
    await session.query(`drop table ${quoted(table)}`);
  } catch (cause) {
    const message = `${table} cannot be dropped: ${(cause as Error).message}. Remove what depends on it first, or run this without --drop.`;
    throw new QuarryError("constraint_violated", message, { cause });
  }
}
