import { PGlite } from "@electric-sql/pglite";
import { vector } from "@electric-sql/pglite-pgvector";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";
import { freshPostgres } from "./postgres.ts";

/**
 * A PostgreSQL that has pgvector: a database of its own on the server of TEST_PGVECTOR_URL or PGVECTOR_DATABASE_URL, or
 * PGlite (PostgreSQL compiled to WebAssembly) behind a socket. PGlite has one session; connections take turns on it.
 */
export async function startPgvector(): Promise<{ url: string; description: string; stop(): Promise<void> }> {
  const external = process.env.TEST_PGVECTOR_URL ?? process.env.PGVECTOR_DATABASE_URL;
  if (external) {
    const { url, drop } = await freshPostgres({ server: external });
    return { url, description: "TEST_PGVECTOR_URL", stop: drop };
  }
  const database = await PGlite.create({ extensions: { vector } });
  const server = new PGLiteSocketServer({ db: database, host: "127.0.0.1", port: 0, maxConnections: 20 });
  await server.start();
  return {
    url: `postgres://postgres@${server.getServerConn()}/postgres`,
    description: "PGlite",
    stop: async () => {
      await server.stop();
      await database.close();
    },
  };
}
