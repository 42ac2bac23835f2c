import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { DatabaseSync } from "node:sqlite";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { openPool } from "../postgres.ts";
import { isPostgres } from "./scene.ts";
import type { Serving } from "./serving.ts";

/** A table with a key and a text. */
interface Texts {
  insert(id: string, text: string): Promise<void>;
  read(id: string): Promise<unknown>;
  close(): Promise<void>;
}

/** The limit: a route with one statement behind it. No guards, no validation, no headers, no queue. */
export async function serveBare(url: string): Promise<Serving> {
  const texts = isPostgres(url) ? await openPostgres(url) : openSqlite(url);
  const app = new Hono();
  app.post("/jobs/embedding", async (c) => {
    const { input_text: text } = await c.req.json();
    const id = randomUUID();
    await texts.insert(id, text);
    return c.json({ id, input_text: text }, 201);
  });
  app.get("/jobs/embedding/:id", async (c) => {
    const row = await texts.read(c.req.param("id"));
    return row ? c.json(row) : c.notFound();
  });
  const server = serve({ fetch: app.fetch, hostname: "127.0.0.1", port: 0 });
  if (!server.listening) await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    stop: async () => {
      const closed = once(server, "close");
      server.close();
      await closed;
      await texts.close();
    },
  };
}

function openSqlite(path: string): Texts {
  const database = new DatabaseSync(path);
  database.exec("pragma journal_mode = wal; pragma synchronous = full");
  database.exec("create table bare_texts (id text primary key, input_text text not null)");
  const insert = database.prepare("insert into bare_texts (id, input_text) values (?, ?)");
  const select = database.prepare("select id, input_text from bare_texts where id = ?");
  return {
    insert: async (id, text) => void insert.run(id, text),
    read: async (id) => select.get(id),
    close: async () => database.close(),
  };
}

const INSERT = { name: "bare.insert", text: "insert into bare_texts (id, input_text) values ($1, $2)" };
const SELECT = { name: "bare.select", text: "select id, input_text from bare_texts where id = $1" };

async function openPostgres(url: string): Promise<Texts> {
  // As many connections as Quarry has.
  const pool = openPool(url, 10);
  await pool.query("create table bare_texts (id uuid primary key, input_text text not null)");
  return {
    insert: async (id, text) => void (await pool.query({ ...INSERT, values: [id, text] })),
    read: async (id) => (await pool.query({ ...SELECT, values: [id] })).rows[0],
    close: () => pool.end(),
  };
}
