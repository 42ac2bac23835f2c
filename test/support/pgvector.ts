import { PGlite } from "@electric-sql/pglite";
import { vector } from "@electric-sql/pglite-pgvector";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";

/**
 * A PostgreSQL that has pgvector: the server of TEST_PGVECTOR_URL, or PGlite (PostgreSQL compiled to WebAssembly)
 * behind a socket. PGlite has one session; connections take turns on it.
 */
export async function startPgvector(): Promise<{ url: string; description: string; stop(): Promise<void> }> {
  const external = process.env.TEST_PGVECTOR_URL;
  if (external) return { url: external, description: "TEST_PGVECTOR_URL", stop: async () => undefined };
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
