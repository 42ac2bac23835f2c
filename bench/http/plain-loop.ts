import { DatabaseSync } from "node:sqlite";
import type { Embedder } from "../../src/adapters/embed.ts";
import { postgresDialect } from "../../src/database/dialect.ts";
import { toStored } from "../../src/embeddings/vectors.ts";
import { countRows, openPool, settleDown } from "../postgres.ts";
import type { Contender, DrainLoad, Filled } from "./embedding.ts";
import { BATCH, DIMENSIONS, openTimedModel, textOf } from "./model.ts";
import { isPostgres } from "./scene.ts";

interface Text {
  readonly id: number;
  readonly text: string;
}

/** Two tables and nothing else: ids from 1 to count, in batches that are read, embedded and stored. */
interface Store {
  read(first: number, last: number): Promise<Text[]>;
  write(texts: readonly Text[], vectors: readonly Float32Array[]): Promise<void>;
}

type FilledStore = Omit<Filled, "drain"> & { readonly store: Store };

/** The least that can be stored: a vector for a text. What became of a text, when, and for how much, is not. */
export function plainLoop(callsAtOnce: number): Contender {
  return {
    name: `two bare tables in a plain loop, ${callsAtOnce} calls at once`,
    fill: async (url, load) => {
      const { store, ...rest } = isPostgres(url)
        ? await fillPostgres(url, load.jobs, callsAtOnce)
        : fillSqlite(url, load.jobs);
      return { ...rest, drain: () => drain(store, load, callsAtOnce) };
    },
  };
}

async function drain(store: Store, { jobs, pace }: DrainLoad, callsAtOnce: number): Promise<number> {
  const model = openTimedModel(pace);
  let taken = 0;
  const work = async () => {
    while (taken < jobs) {
      const first = taken + 1;
      taken += BATCH;
      await embedSome(store, model.embedder, first);
    }
  };
  await Promise.all(Array.from({ length: callsAtOnce }, work));
  return performance.now() - model.firstCallAt();
}

async function embedSome(store: Store, embedder: Embedder, first: number): Promise<void> {
  const rows = await store.read(first, first + BATCH - 1);
  const texts = rows.map(({ text }) => text);
  const { vectors } = await embedder.embed(texts, new AbortController().signal);
  await store.write(rows, vectors);
}

function fillSqlite(path: string, count: number): FilledStore {
  const database = new DatabaseSync(path);
  database.exec("pragma journal_mode = wal; pragma synchronous = full");
  database.exec("create table texts (id integer primary key, text text not null)");
  database.exec("create table vectors (id integer primary key, vector blob not null)");
  const fill = database.prepare("insert into texts (id, text) values (?, ?)");
  database.exec("begin");
  for (let id = 1; id <= count; id++) fill.run(id, textOf(id));
  database.exec("commit; pragma wal_checkpoint(truncate)");
  const read = database.prepare("select id, text from texts where id between ? and ?");
  const insert = database.prepare("insert into vectors (id, vector) values (?, ?)");
  const store: Store = {
    read: async (first, last) => read.all(first, last) as unknown as Text[],
    write: async (texts, vectors) => {
      database.exec("begin");
      for (const [position, { id }] of texts.entries()) insert.run(id, toStored(vectors[position]!, "blob"));
      database.exec("commit");
    },
  };
  return {
    store,
    countVectors: async () => Number(database.prepare("select count(*) as count from vectors").get()!.count),
    close: async () => database.close(),
  };
}

/** One statement is a transaction by itself. Vectors come in one array, in the driver's binary form. */
const INSERT = {
  name: "plain.insert",
  text: "insert into vectors (id, vector) select v.id, ($2::real[])[(v.nth - 1) * $3::integer + 1 : v.nth * $3::integer] from unnest($1::integer[]) with ordinality as v (id, nth)",
};
const READ = { name: "plain.read", text: "select id, text from texts where id between $1 and $2" };

async function fillPostgres(url: string, count: number, connections: number): Promise<FilledStore> {
  const pool = openPool(url, connections);
  await pool.query("create table texts (id integer primary key, text text not null)");
  await pool.query("create table vectors (id integer primary key, vector real[] not null)");
  const ids = Array.from({ length: count }, (_, index) => index + 1);
  await pool.query("insert into texts (id, text) select * from unnest($1::integer[], $2::text[])", [
    ids,
    ids.map(textOf),
  ]);
  await settleDown(url);
  const store: Store = {
    read: async (first, last) => (await pool.query<Text>({ ...READ, values: [first, last] })).rows,
    write: async (texts, vectors) => {
      const packed = postgresDialect.pack("floats", vectors);
      await pool.query({ ...INSERT, values: [texts.map(({ id }) => id), packed, DIMENSIONS] });
    },
  };
  return {
    store,
    countVectors: () => countRows(url, "vectors"),
    close: () => pool.end(),
  };
}
