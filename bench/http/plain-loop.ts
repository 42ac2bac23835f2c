import { DatabaseSync } from "node:sqlite";
import type { Embedder } from "../../src/adapters/embed.ts";
import { toStored } from "../../src/embeddings/vectors.ts";
import { countRows, openPool, settleDown } from "../postgres.ts";
import type { Contender, DrainLoad, Filled } from "./embedding.ts";
import { BATCH, openTimedModel, textOf } from "./model.ts";
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

/** The same model and the same encoding of vectors without a queue. What is under way when it is killed is lost. */
export function plainLoop(callsAtOnce: number): Contender {
  return {
    name: `plain loop, ${callsAtOnce} ${callsAtOnce === 1 ? "call" : "calls"} at once`,
    fill: async (url, load) => {
      const { store, ...rest } = isPostgres(url)
        ? await fillPostgres(url, load.jobs, callsAtOnce)
        : fillSqlite(url, load.jobs);
      return { ...rest, drain: () => drain(store, load, callsAtOnce) };
    },
  };
}

async function drain(store: Store, { jobs, callMs }: DrainLoad, callsAtOnce: number): Promise<number> {
  const model = openTimedModel(callMs);
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

/** One statement is a transaction by itself. */
const INSERT = {
  name: "plain.insert",
  text: "insert into vectors (id, vector) select v.id, v.vector::real[] from unnest($1::integer[], $2::text[]) as v (id, vector)",
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
      const stored = vectors.map((vector) => toStored(vector, "real[]"));
      await pool.query({ ...INSERT, values: [texts.map(({ id }) => id), stored] });
    },
  };
  return {
    store,
    countVectors: () => countRows(url, "vectors"),
    close: () => pool.end(),
  };
}
