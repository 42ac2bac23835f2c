import { postgresDialect, sqliteDialect } from "../../src/database/dialect.ts";
import {
  type Database,
  defineQueue,
  fixedDelays,
  indexesOf,
  manualClock,
  type Queue,
  type QueueDeclaration,
  type Row,
} from "../../src/index.ts";

/** One database for a suite: empty tables for every test, and a clock that is moved by hand. */
export interface Fixture {
  readonly database: Database;
  readonly clock: ReturnType<typeof manualClock>;
  /** Empties every table. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

const COLUMNS = {
  status: "status",
  token: "lease_token",
  lease: "lease_until",
  runAfter: "run_after",
  attempts: "attempts",
  error: "error_message",
  worker: "worker_id",
  createdAt: "created_at",
  startedAt: "started_at",
  finishedAt: "finished_at",
  updatedAt: "updated_at",
  errorAt: "last_error_at",
} as const;

export interface MailPayload {
  recipient: string;
  payload: unknown;
}

/** Counts claims, has words of its own for retrying and cancelled, shares its table with `sms`. */
export const mail = defineQueue<MailPayload>({
  name: "mail",
  table: "messages",
  key: { column: "id", type: "uuid" },
  columns: COLUMNS,
  statuses: { retrying: "retrying", cancelled: "cancelled" },
  attempts: { count: "claims", max: "max_attempts" },
  lease: { ms: 60_000 },
  only: { kind: "mail" },
  order: [
    { column: "urgency", values: ["urgent", "high", "normal"] },
    { column: "priority", direction: "desc" },
    "created_at",
  ],
  retry: fixedDelays(5_000, 10_000, 30_000),
  reads: ["recipient", "payload"],
  results: ["receipt", "bytes", "weights", "priority"],
  kinds: { payload: "json", receipt: "json", bytes: "blob", weights: "floats" },
  dedupe: ["idempotency_key"],
  retention: { doneMs: 3_600_000, failedMs: 7_200_000 },
});

/** Counts failures, retries as pending, deletes what is cancelled. */
export const sms = defineQueue<MailPayload>({
  name: "sms",
  table: "messages",
  key: { column: "id", type: "uuid" },
  columns: COLUMNS,
  attempts: { count: "failures", max: 3 },
  lease: { ms: 60_000, column: "lease_ms" },
  only: { kind: "sms" },
  order: [{ column: "priority", direction: "desc" }, "created_at"],
  retry: fixedDelays(5_000, 10_000, 30_000),
  reads: ["recipient", "payload"],
  results: ["receipt", "bytes", "priority"],
  kinds: { payload: "json", receipt: "json", bytes: "blob" },
});

/** A page has two phases; `failed` with attempts left is picked up again, before anything new. */
function pagePhase(phase: "ocr" | "vector", gate: Queue["gate"]) {
  return defineQueue<{ page_number: number; document_id: number }>({
    name: `pages.${phase}`,
    table: "pages",
    key: { column: "id", type: "uuid" },
    columns: {
      status: `${phase}_status`,
      token: `${phase}_lease_token`,
      lease: `${phase}_last_heartbeat`,
      runAfter: `${phase}_run_after`,
      attempts: `${phase}_retry_count`,
      error: `${phase}_error`,
      worker: `${phase}_worker_id`,
      createdAt: "created_at",
      startedAt: `${phase}_started_at`,
      finishedAt: `${phase}_completed_at`,
      updatedAt: "updated_at",
    },
    statuses: { retrying: "failed" },
    attempts: { count: "failures", max: "max_retries" },
    lease: { ms: 60_000, holds: "heartbeat" },
    gate,
    order: [{ column: `${phase}_status`, values: ["failed"] }, `${phase}_retry_count`, "created_at"],
    retry: fixedDelays(5_000, 10_000, 30_000),
    rollUp: [
      {
        table: "documents",
        key: { column: "id", type: "integer" },
        via: "document_id",
        status: `${phase}_status`,
        startedAt: `${phase}_started_at`,
        finishedAt: `${phase}_completed_at`,
      },
    ],
    reads: ["page_number", "document_id"],
    results: ["page_file_path"],
    wakes: phase === "ocr" ? ["pages.vector"] : [],
  });
}

export const pageOcr = pagePhase("ocr", []);
export const pageVector = pagePhase("vector", [{ column: "ocr_status", is: "completed" }]);

/** Two levels up: chunk → section → book. */
export const chunks = defineQueue<{ position: number }>({
  name: "chunks",
  table: "chunks",
  key: { column: "id", type: "uuid" },
  columns: COLUMNS,
  attempts: { count: "failures", max: 3 },
  lease: { ms: 60_000 },
  order: ["created_at"],
  retry: fixedDelays(5_000, 10_000, 30_000),
  rollUp: [
    { table: "sections", key: { column: "id", type: "integer" }, via: "section_id", status: "status" },
    {
      table: "books",
      key: { column: "id", type: "integer" },
      via: "book_id",
      status: "status",
      finishedAt: "finished_at",
    },
  ],
  reads: ["position"],
  results: ["note"],
  retention: { doneMs: 3_600_000, failedMs: 3_600_000 },
});

type Step = { entity_type: string; entity_id: string; position: number };

const STEPS = {
  name: "steps",
  table: "steps",
  key: { column: "id", type: "integer" },
  columns: COLUMNS,
  attempts: { count: "failures", max: 3 },
  lease: { ms: 60_000 },
  order: ["created_at"],
  group: { columns: ["entity_type", "entity_id"], turn: "has_turn" },
  retry: fixedDelays(5_000, 10_000, 30_000),
  reads: ["entity_type", "entity_id", "position"],
  results: ["note"],
} as const satisfies QueueDeclaration<Step>;

/** One row of an entity at a time. Integer keys made by the database. */
export const steps = defineQueue<Step>(STEPS);

/** The same over indexes that the table has anyway. */
export const strides = defineQueue<Step>({
  ...STEPS,
  name: "strides",
  table: "strides",
  lease: { ...STEPS.lease, index: "strides_running" },
  group: { ...STEPS.group, index: "strides_entity" },
});

/** Rows that name a place are taken there only. */
export const errands = defineQueue<{ place: string; position: number }>({
  name: "errands",
  table: "errands",
  key: { column: "id", type: "integer" },
  columns: COLUMNS,
  attempts: { count: "failures", max: 3 },
  lease: { ms: 60_000 },
  reserved: { column: "place", for: "here" },
  order: [{ column: "priority", direction: "desc" }, "created_at"],
  retry: fixedDelays(5_000, 10_000, 30_000),
  reads: ["place", "position"],
  results: ["note"],
});

export const QUEUES: readonly Queue[] = [mail, sms, pageOcr, pageVector, chunks, steps, strides, errands];
const TABLES = [
  "messages",
  "pages",
  "documents",
  "chunks",
  "sections",
  "books",
  "steps",
  "strides",
  "errands",
];

/** The tables as a user would write them, in each database's own types. */
export function schema(name: "sqlite" | "postgres"): string[] {
  const isPostgres = name === "postgres";
  const dialect = isPostgres ? postgresDialect : sqliteDialect;
  const time = isPostgres ? "timestamptz" : "text";
  const uuid = isPostgres ? "uuid" : "text";
  const json = isPostgres ? "jsonb" : "text";
  const blob = isPostgres ? "bytea" : "blob";
  const floats = isPostgres ? "real[]" : "blob";
  const serial = isPostgres ? "bigserial primary key" : "integer primary key";
  const statusOf = (words: string) => (isPostgres ? "task_status" : `text check (status in (${words}))`);
  const phaseStatus = isPostgres ? "task_status" : "text";
  const four = "'pending', 'processing', 'completed', 'failed'";
  const engine = `
    lease_token bigint not null default 0, lease_until ${time}, run_after ${time},
    attempts integer not null default 0, error_message text, worker_id text, created_at ${time},
    started_at ${time}, finished_at ${time}, updated_at ${time}, last_error_at ${time}`;
  const phase = (name: string) => `
    ${name}_status ${phaseStatus} not null default 'pending', ${name}_lease_token bigint not null default 0,
    ${name}_last_heartbeat ${time}, ${name}_run_after ${time}, ${name}_retry_count integer not null default 0,
    ${name}_error text, ${name}_worker_id text, ${name}_started_at ${time}, ${name}_completed_at ${time}`;
  return [
    ...(isPostgres ? [`create type task_status as enum (${four})`] : []),
    `create table messages (id ${uuid} primary key, kind text not null, recipient text, payload ${json},
      urgency text not null default 'normal', priority integer not null default 0, receipt ${json}, bytes ${blob}, weights ${floats},
      status text not null default 'pending', max_attempts integer not null default 3,
      idempotency_key text unique, lease_ms integer, ${engine},
      check (attempts >= 0 and attempts <= max_attempts), check (priority >= 0 and priority <= 10))`,
    `create table documents (id ${serial}, ocr_status ${phaseStatus} not null default 'pending',
      vector_status ${phaseStatus} not null default 'pending', ocr_started_at ${time}, ocr_completed_at ${time},
      vector_started_at ${time}, vector_completed_at ${time})`,
    `create table pages (id ${uuid} primary key, document_id integer references documents(id) on delete cascade,
      page_number integer not null default 0, page_file_path text, max_retries integer not null default 3,
      created_at ${time}, updated_at ${time}, ${phase("ocr")}, ${phase("vector")},
      check (vector_status <> 'processing' or ocr_status = 'completed'))`,
    `create table books (id ${serial}, status ${statusOf(four)} not null default 'pending', finished_at ${time})`,
    `create table sections (id ${serial}, book_id integer references books(id),
      status ${statusOf(four)} not null default 'pending')`,
    `create table chunks (id ${uuid} primary key, section_id integer references sections(id), position integer not null default 0,
      note text, status ${statusOf(four)} not null default 'pending', ${engine})`,
    ...["steps", "strides"].map(
      (
        table,
      ) => `create table ${table} (id ${serial}, entity_type text not null, entity_id text not null, position integer not null default 0,
      note text, has_turn boolean not null default false, status ${statusOf(four)} not null default 'pending', ${engine})`,
    ),
    "create index strides_entity on strides (entity_id, entity_type)",
    "create index strides_running on strides (started_at) where status = 'processing'",
    `create table errands (id ${serial}, place text not null default '', priority integer not null default 0,
      position integer not null default 0, note text, status ${statusOf(four)} not null default 'pending', ${engine})`,
    `create table bare (id ${serial}, status text not null default 'pending', lease_token bigint not null default 0,
      lease_until ${time}, run_after ${time}, attempts integer not null default 0, error text)`,
    ...QUEUES.flatMap((queue) => indexesOf(queue, dialect).map((index) => index.sql)),
  ];
}

export async function createFixture(
  open: (
    clock: ReturnType<typeof manualClock>,
  ) => Promise<{ database: Database; drop?: () => Promise<void> }>,
): Promise<Fixture> {
  const clock = manualClock();
  const { database, drop } = await open(clock);
  for (const statement of schema(database.dialect.name)) await database.query(statement);
  return {
    database,
    clock,
    reset: async () => {
      const isPostgres = database.dialect.name === "postgres";
      if (isPostgres) await database.query(`truncate ${TABLES.join(", ")} restart identity cascade`);
      else for (const table of TABLES) await database.query(`delete from ${table}`);
      // Every test starts at a later moment than the one before ended.
      clock.advance(1_000);
    },
    close: async () => {
      await database.close();
      await drop?.();
    },
  };
}

export async function rowOf(database: Database, table: string, key: string | number): Promise<Row> {
  const [row] = await database.query(`select * from ${table} where id = '${key}'`);
  if (!row) throw new Error(`${table} has no row ${key}`);
  return row;
}
