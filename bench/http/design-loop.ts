import { DatabaseSync } from "node:sqlite";
import { postgresDialect } from "../../src/database/dialect.ts";
import { hashOf } from "../../src/embeddings/twins.ts";
import { toStored } from "../../src/embeddings/vectors.ts";
import { uuidv7 } from "../../src/ids.ts";
import { openPool, settleDown } from "../postgres.ts";
import type { Contender, DrainLoad, Filled } from "./embedding.ts";
import { BATCH, DIMENSIONS, openTimedModel, textOf } from "./model.ts";
import { isPostgres } from "./scene.ts";

interface Job {
  readonly id: string;
  readonly text: string;
}

interface Made {
  readonly jobs: readonly Job[];
  readonly vectors: readonly Float32Array[];
  readonly startedAt: Date;
  readonly tokens: number;
  readonly tookMs: number;
}

/** The table of the design with bare statements, each prepared once. */
interface Table {
  /** The next 50 after this one, in the order of the key, which is that of their making. */
  read(after: string): Promise<Job[]>;
  /** In one transaction. */
  write(made: Made): Promise<void>;
}

type FilledTable = Omit<Filled, "drain"> & { readonly table: Table };

const FIRST = "00000000-0000-0000-0000-000000000000";
const WORKER = "loop";

/**
 * The same loop without a queue: the design's own table with its columns, checks and indexes, the bare driver, as many
 * calls at once, and the same row in the end. Where it is stands in memory only: a second one would do the same jobs
 * again, and after a crash nobody knows what was under way. It asks about no known texts and passes on no vector.
 */
export function designLoop(callsAtOnce: number): Contender {
  return {
    name: `the design's table in a plain loop, ${callsAtOnce === 1 ? "1 call" : `${callsAtOnce} calls`} at once`,
    fill: async (url, load) => {
      const { table, ...rest } = isPostgres(url)
        ? await fillPostgres(url, load.jobs, callsAtOnce)
        : fillSqlite(url, load.jobs);
      return { ...rest, drain: () => drain(table, load, callsAtOnce) };
    },
  };
}

async function drain(table: Table, { pace }: DrainLoad, callsAtOnce: number): Promise<number> {
  const model = openTimedModel(pace);
  const { signal } = new AbortController();
  let last = Promise.resolve(FIRST);
  const next = () => {
    const read = last.then((after) => table.read(after));
    last = read.then((jobs) => jobs.at(-1)?.id ?? "~");
    return read;
  };
  const work = async () => {
    for (let jobs = await next(); jobs.length > 0; jobs = await next()) {
      const startedAt = new Date();
      const texts = jobs.map(({ text }) => text);
      const { vectors, tokens } = await model.embedder.embed(texts, signal);
      await table.write({ jobs, vectors, startedAt, tokens, tookMs: Date.now() - startedAt.getTime() });
    }
  };
  await Promise.all(Array.from({ length: callsAtOnce }, work));
  return performance.now() - model.firstCallAt();
}

/** What the design writes down, column by column; tokens are kept with each job too. */
const COLUMNS = (types: { key: string; time: string; status: string; priority: string; vector: string }) => `
  id ${types.key} primary key not null, rule_id ${types.key}, status ${types.status} not null default 'pending',
  priority ${types.priority} not null default 'normal', embedding_model text not null default 'bench-model',
  input_text text not null, text_hash text not null, attempts integer not null default 0,
  max_attempts integer not null default 3, created_at ${types.time} not null, started_at ${types.time},
  completed_at ${types.time}, embedding_vector ${types.vector}, embedding_dimensions integer, error_message text,
  processing_time_ms integer, tokens_used integer, worker_id text, worker_version text, project_id ${types.key},
  created_by ${types.key},
  constraint valid_attempts check (attempts >= 0 and attempts <= max_attempts),
  constraint completed_jobs_have_embedding check (
    (status = 'completed' and embedding_vector is not null) or (status != 'completed'))`;

const INDEXES = [
  "create index idx_embedding_jobs_status on embedding_jobs(status)",
  "create index idx_embedding_jobs_priority on embedding_jobs(priority, created_at)",
  "create index idx_embedding_jobs_rule_id on embedding_jobs(rule_id)",
  "create index idx_embedding_jobs_text_hash on embedding_jobs(text_hash)",
  "create index idx_embedding_jobs_created_at on embedding_jobs(created_at)",
  "create index idx_embedding_jobs_pending on embedding_jobs(priority, created_at) where status = 'pending'",
  "create index idx_embedding_jobs_processing on embedding_jobs(started_at) where status = 'processing'",
];

const READ = (mark: string) =>
  `select id, input_text as text from embedding_jobs where id > ${mark} order by id limit ${BATCH}`;

function fillSqlite(path: string, count: number): FilledTable {
  const database = new DatabaseSync(path);
  database.exec("pragma journal_mode = wal; pragma synchronous = full");
  const types = {
    ...{ key: "text", time: "text", vector: "blob" },
    status: "text check (status in ('pending', 'processing', 'completed', 'failed', 'retrying'))",
    priority: "text check (priority in ('low', 'normal', 'high', 'urgent'))",
  };
  database.exec(`create table embedding_jobs (${COLUMNS(types)})`);
  for (const index of INDEXES) database.exec(index);
  const fill = database.prepare(
    "insert into embedding_jobs (id, input_text, text_hash, created_at) values (?, ?, ?, ?)",
  );
  database.exec("begin");
  for (let nth = 1; nth <= count; nth++) {
    const text = textOf(nth);
    fill.run(uuidv7(Date.now()), text, hashOf(text), new Date().toISOString());
  }
  database.exec("commit; pragma wal_checkpoint(truncate)");
  const read = database.prepare(READ("?"));
  const complete = database.prepare(
    "update embedding_jobs set status = 'completed', attempts = 1, started_at = ?, completed_at = ?, embedding_vector = ?, embedding_dimensions = ?, processing_time_ms = ?, tokens_used = ?, worker_id = ?, worker_version = ? where id = ?",
  );
  const table: Table = {
    read: async (after) => read.all(after) as unknown as Job[],
    write: async ({ jobs, vectors, startedAt, tokens, tookMs }) => {
      const [started, completed] = [startedAt.toISOString(), new Date().toISOString()];
      const each = Math.round(tokens / jobs.length);
      database.exec("begin immediate");
      for (const [position, { id }] of jobs.entries()) {
        const vector = vectors[position]!;
        const stored = toStored(vector, "blob");
        complete.run(started, completed, stored, vector.length, tookMs, each, WORKER, "bench", id);
      }
      database.exec("commit");
    },
  };
  const countCompleted = database.prepare(
    `select count(*) as count from embedding_jobs where status = 'completed' and length(embedding_vector) = ${4 * DIMENSIONS}`,
  );
  return {
    table,
    countVectors: async () => Number(countCompleted.get()!.count),
    close: async () => database.close(),
  };
}

/** One statement is a transaction by itself. Vectors come in one array, in the driver's binary form. */
const COMPLETE = {
  name: "loop.complete",
  text: "update embedding_jobs as j set status = 'completed', attempts = 1, started_at = $4, completed_at = now(), embedding_vector = ($2::real[])[(v.nth - 1) * $3::integer + 1 : v.nth * $3::integer], embedding_dimensions = $3::integer, processing_time_ms = $5, tokens_used = $6, worker_id = $7, worker_version = 'bench' from unnest($1::uuid[]) with ordinality as v (id, nth) where j.id = v.id",
};

async function fillPostgres(url: string, count: number, connections: number): Promise<FilledTable> {
  const pool = openPool(url, connections);
  await pool.query(
    "create type job_status as enum ('pending', 'processing', 'completed', 'failed', 'retrying')",
  );
  await pool.query("create type job_priority as enum ('low', 'normal', 'high', 'urgent')");
  const types = {
    ...{ key: "uuid", time: "timestamptz", status: "job_status", priority: "job_priority" },
    vector: "real[]",
  };
  await pool.query(`create table embedding_jobs (${COLUMNS(types)})`);
  for (const index of INDEXES) await pool.query(index);
  const texts = Array.from({ length: count }, (_, nth) => textOf(nth));
  await pool.query(
    "insert into embedding_jobs (id, input_text, text_hash, created_at) select v.*, now() from unnest($1::uuid[], $2::text[], $3::text[]) as v",
    [texts.map(() => uuidv7(Date.now())), texts, texts.map(hashOf)],
  );
  await settleDown(url);
  const table: Table = {
    read: async (after) =>
      after === "~"
        ? []
        : (await pool.query<Job>({ name: "loop.read", text: READ("$1"), values: [after] })).rows,
    write: async ({ jobs, vectors, startedAt, tokens, tookMs }) => {
      const ids = jobs.map(({ id }) => id);
      const packed = postgresDialect.pack("floats", vectors);
      const each = Math.round(tokens / jobs.length);
      const values = [ids, packed, vectors[0]!.length, startedAt, tookMs, each, WORKER];
      await pool.query({ ...COMPLETE, values });
    },
  };
  return {
    table,
    countVectors: async () => {
      const { rows } = await pool.query(
        `select count(*) as count from embedding_jobs where status = 'completed' and cardinality(embedding_vector) = ${DIMENSIONS}`,
      );
      return Number(rows[0].count);
    },
    close: () => pool.end(),
  };
}
