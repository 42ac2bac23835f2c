import { createHash } from "node:crypto";
import type { Database, Row, Session } from "../database/database.ts";
import { stringify } from "../queue/enqueue.ts";
import { cleanText } from "../queue/text.ts";

/**
 * What became of each row of the old tables, kept in `legacy_rows`. It makes a second run find nothing to do, even
 * when the items have long been done and forgotten, and says whether a table can be dropped.
 */
export type LegacyOutcome = "brought" | "merged" | "finished" | "unmapped";

export interface LegacyRecord {
  readonly id: string;
  readonly table: string;
  readonly key: string;
  readonly outcome: LegacyOutcome;
  readonly queueId?: string;
  readonly reason?: string;
}

const KEY_CHARS_MAX = 1_000;
/** Each statement must end well before it is taken for a broken connection. */
const ITEMS_PER_TOUCH = 5_000;

/** The same row has the same id, from whichever copy of the old database it comes. */
export function recordId(...parts: readonly (string | null | undefined)[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}

/** Of the ids given, those that are known; false when nothing stands for the row any more. */
export async function knownRecords(
  session: Session,
  { dialect }: Database,
  ids: readonly string[],
): Promise<Map<string, boolean>> {
  const rows = await session.query(
    {
      name: "legacy.known",
      sql: `select l.id, case when l.finished_at is not null or u.queue_id is not null then 1 else 0 end as stands from legacy_rows as l left join unified_queue as u on u.queue_id = l.queue_id where ${dialect.isOneOf("l.id", 1, "text")}`,
    },
    [dialect.keys(ids)],
  );
  return new Map(rows.map((row) => [String(row.id), Number(row.stands) === 1]));
}

export async function writeRecords(
  session: Session,
  database: Database,
  records: readonly LegacyRecord[],
  at: string,
): Promise<void> {
  if (records.length === 0) return;
  const rows = records.map(
    ({ id, table, key, outcome, queueId, reason }): Row => ({
      id,
      table_name: table,
      row_key: cleanText(key.slice(0, KEY_CHARS_MAX)),
      outcome,
      queue_id: queueId ?? null,
      reason: reason ?? null,
      recorded_at: at,
      finished_at: outcome === "finished" ? at : null,
    }),
  );
  const names = Object.keys(rows[0]!);
  const source = database.dialect.recordset("legacy_rows", 1);
  const values = names.map((name) => source.column(name, "plain")).join(", ");
  await session.query(
    `insert into legacy_rows (${names.join(", ")}) select ${values} from ${source.from} where true on conflict (id) do nothing`,
    [stringify(database, rows)],
  );
}

/** They are looked at anew each time: somebody may have mended them. */
export async function forgetUnmapped(session: Session, { dialect }: Database, table: string): Promise<void> {
  await session.query(
    `delete from legacy_rows where table_name = ${dialect.mark(1)} and outcome = 'unmapped'`,
    [table],
  );
}

/** Rows went in with the time of their request; from now on it is the time when the queue got them. */
export async function touchItems(session: Session, { dialect }: Database, at: string): Promise<void> {
  const { mark } = dialect;
  const select = `select id, queue_id from legacy_rows where id > ${mark(1)} and recorded_at = ${mark(2)} and queue_id is not null order by id limit ${ITEMS_PER_TOUCH}`;
  const update = `update unified_queue set updated_at = ${mark(1)} where ${dialect.isOneOf("queue_id", 2, "text")}`;
  for (let after = ""; ; ) {
    const rows = await session.query({ name: "legacy.recorded", sql: select }, [after, at]);
    if (rows.length === 0) return;
    const ids = rows.map((row) => String(row.queue_id));
    await session.query({ name: "legacy.touch", sql: update }, [at, dialect.keys(ids)]);
    after = String(rows.at(-1)!.id);
  }
}
