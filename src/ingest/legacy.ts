import { isoTime } from "../clock.ts";
import type { Database, Row, Session } from "../database/database.ts";
import type { Queue } from "../queue/declaration.ts";
import { type LegacyMeaning, meaningOf } from "./legacy-item.ts";
import { LegacyMerge } from "./legacy-merge.ts";
import { forgetUnmapped, knownRecords, type LegacyRecord, touchItems, writeRecords } from "./legacy-rows.ts";
import {
  dropTable,
  type LegacySource,
  lockTables,
  markDeprecated,
  pagesOf,
  viewsOf,
} from "./legacy-source.ts";
import type { ItemQueues } from "./queue.ts";
import { FairTags } from "./turns.ts";

/** Each row is in one of the five counts after `rows`. */
export interface LegacyTableReport {
  readonly table: string;
  readonly rows: number;
  readonly brought: number;
  /** Into an item of the same key, be it from another row or from the queue. */
  readonly merged: number;
  /** Done by the old system; not brought over. */
  readonly finished: number;
  readonly unmapped: number;
  /** Accounted for by an earlier run. */
  readonly alreadyThere: number;
  /** Of those already there: their item has left the queue and was not done. */
  readonly gone: number;
  /** What stands in the way of dropping the table; the first hundred of it. */
  readonly problems: readonly LegacyProblem[];
  readonly isDeprecated: boolean;
  readonly isDropped: boolean;
}

export interface LegacyProblem {
  readonly key: string;
  readonly reason: string;
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };
type Tally = Mutable<Omit<LegacyTableReport, "problems">> & { problems: LegacyProblem[] };

interface Parts {
  readonly database: Database;
  readonly queues: ItemQueues;
  readonly source: LegacySource;
}

export interface LegacyQueuesOptions {
  /** Drops the tables of which every row is accounted for. */
  readonly isDropping?: boolean;
}

const PROBLEMS_NAMED_MAX = 100;

/**
 * Brings the rows of the five old queues into the unified queue, in one transaction, and marks the tables as
 * deprecated. Nobody can write to them meanwhile. A second run finds only what has come since.
 */
export async function migrateQueues(
  parts: Parts,
  options: LegacyQueuesOptions = {},
): Promise<LegacyTableReport[]> {
  const { database, source, queues } = parts;
  if (source.tables.length === 0) return [];
  const isDropping = options.isDropping ?? false;
  const tallies =
    source.database === database
      ? await database.transaction(async (transaction) => {
          await lockTables(transaction, source);
          const found = await bringOver(transaction, transaction, parts);
          await leaveBehind(transaction, source, found, isDropping);
          await recordDrops(transaction, parts, found);
          return found;
        })
      : await fromElsewhere(parts, isDropping);
  for (const { name } of Object.values(queues)) database.notify(name);
  return tallies.map(({ at: _at, ...report }) => report);
}

/** Rows are only marked or dropped there once they are safe here; were the commit there to fail, a second run does it. */
async function fromElsewhere(parts: Parts, isDropping: boolean): Promise<Dated[]> {
  const { database, source } = parts;
  const tallies = await source.database.transaction(async (old) => {
    await lockTables(old, source);
    const found = await database.transaction((transaction) => bringOver(transaction, old, parts));
    await leaveBehind(old, source, found, isDropping);
    return found;
  });
  await recordDrops(database, parts, tallies);
  return tallies;
}

/** With the time of the run in which something was new, as `legacy_tables` has it. */
type Dated = Tally & { readonly at: string | undefined };

async function bringOver(session: Session, old: Session, parts: Parts): Promise<Dated[]> {
  const { database, source } = parts;
  const now = isoTime(database.clock.now());
  const run = new Run(session, parts, now);
  const tallies: Dated[] = [];
  for (const table of source.tables) {
    const tally = emptyTally(table.name);
    await forgetUnmapped(session, database, table.name);
    for await (const page of pagesOf(old, source.database, table))
      await run.take(
        page.map((row) => meaningOf(table, row, database, now)),
        tally,
      );
    const isNews = await recordTable(session, parts, tally, now);
    tallies.push({ ...tally, isDeprecated: true, at: isNews ? now : undefined });
  }
  await touchItems(session, database, now);
  return tallies;
}

function emptyTally(table: string): Tally {
  const counts = { rows: 0, brought: 0, merged: 0, finished: 0, unmapped: 0, alreadyThere: 0, gone: 0 };
  return { table, ...counts, problems: [], isDeprecated: false, isDropped: false };
}

/** One pass over all tables. */
class Run {
  readonly #session: Session;
  readonly #database: Database;
  readonly #merge: LegacyMerge;
  readonly #tags: FairTags;
  readonly #now: string;

  constructor(session: Session, { database, queues }: Parts, now: string) {
    this.#session = session;
    this.#database = database;
    this.#merge = new LegacyMerge(database);
    this.#tags = new FairTags(session, { database, queue: queues.items as Queue });
    this.#now = now;
  }

  async take(meanings: readonly LegacyMeaning[], tally: Tally): Promise<void> {
    const known = await knownRecords(
      this.#session,
      this.#database,
      meanings.map(({ id }) => id),
    );
    const records: LegacyRecord[] = [];
    const items: Extract<LegacyMeaning, { kind: "item" }>[] = [];
    tally.rows += meanings.length;
    for (const meaning of meanings) {
      const { id, key, kind } = meaning;
      const common = { id, key, table: tally.table };
      const stands = known.get(id);
      if (kind === "unmapped") {
        tally.unmapped += 1;
        addProblem(tally, meaning);
        records.push({ ...common, outcome: kind, reason: meaning.reason });
      } else if (stands !== undefined) {
        tally.alreadyThere += 1;
        if (!stands) addGone(tally, key);
      } else if (kind === "finished") {
        tally.finished += 1;
        records.push({ ...common, outcome: kind });
      } else items.push(meaning);
    }
    records.push(...(await this.#mergeItems(items, tally)));
    await writeRecords(this.#session, this.#database, records, this.#now);
  }

  async #mergeItems(
    items: readonly Extract<LegacyMeaning, { kind: "item" }>[],
    tally: Tally,
  ): Promise<LegacyRecord[]> {
    const rows: Row[] = [];
    for (const { item } of items) {
      const { tenant_id: tenant, priority } = item;
      const line = { tenant: String(tenant), priority: Number(priority), seenOn: "" };
      rows.push({ ...item, fair_tag: await this.#tags.next(line) });
    }
    const merged = await this.#merge.run(this.#session, rows);
    return items.map(({ id, key }, index) => {
      const { queue_id: queueId, verdict } = merged[index]!;
      const outcome = verdict === "queued" || verdict === "requeued" ? "brought" : "merged";
      tally[outcome] += 1;
      return { id, key, table: tally.table, outcome, queueId };
    });
  }
}

function addProblem(tally: Tally, { key, reason }: LegacyProblem): void {
  if (tally.problems.length < PROBLEMS_NAMED_MAX) tally.problems.push({ key, reason });
}

function addGone(tally: Tally, key: string): void {
  tally.gone += 1;
  const reason =
    "its item has left unified_queue without having been done; delete the row if that was meant so";
  addProblem(tally, { key, reason });
}

/** Says whether there was anything new, so that a second run changes nothing. */
async function recordTable(
  session: Session,
  { database, source }: Parts,
  tally: Tally,
  now: string,
): Promise<boolean> {
  const { mark } = database.dialect;
  const isNew = tally.brought + tally.merged + tally.finished > 0;
  const params = [source.name, tally.table, tally.rows, now];
  const [written] = await session.query(
    `insert into legacy_tables (source, name, rows, migrated_at, deprecated_at) values (${mark(1)}, ${mark(2)}, ${mark(3)}, ${mark(4)}, ${mark(4)}) on conflict (source, name) do update set rows = excluded.rows, migrated_at = excluded.migrated_at, dropped_at = null where ${isNew ? "true" : "legacy_tables.dropped_at is not null"} returning name`,
    params,
  );
  return written !== undefined;
}

/** Marks the tables where they are, and drops those that may go. */
async function leaveBehind(
  old: Session,
  source: LegacySource,
  tallies: readonly Dated[],
  isDropping: boolean,
): Promise<void> {
  for (const tally of tallies) {
    const { table: name, rows, at } = tally;
    if (!source.isWritable) {
      tally.isDeprecated = false;
      if (isDropping) addProblem(tally, { key: name, reason: "this login may not drop the table" });
      continue;
    }
    if (at !== undefined) await markDeprecated(old, source, { name, rows, at });
    if (!isDropping) continue;
    for (const view of await viewsOf(old, source.database, name))
      addProblem(tally, { key: view, reason: "this view reads the table; drop it first" });
    if (tally.problems.length > 0) continue;
    await dropTable(old, name);
    tally.isDropped = true;
  }
}

async function recordDrops(
  session: Session,
  { database, source }: Parts,
  tallies: readonly Dated[],
): Promise<void> {
  const { mark } = database.dialect;
  for (const { table } of tallies.filter(({ isDropped }) => isDropped))
    await session.query(
      `update legacy_tables set dropped_at = ${mark(3)} where source = ${mark(1)} and name = ${mark(2)}`,
      [source.name, table, isoTime(database.clock.now())],
    );
}

/** Tables that an earlier run has dropped. */
export async function droppedTables(database: Database, sourceName: string): Promise<string[]> {
  const rows = await database.query(
    `select name from legacy_tables where source = ${database.dialect.mark(1)} and dropped_at is not null order by name`,
    [sourceName],
  );
  return rows.map((row) => String(row.name));
}
